"""Compiled syntax lines are kept in the user's cache, and a file that cannot be trusted is ignored and replaced."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ggshell.language import compiled, notation, pages
from ggshell.language.compiled import compiled_line
from ggshell.language.notation import compile_line

TEXT = "ADD EXTTRAIL trail_name, EXTRACT group_name[, MEGABYTES number][, SEQLEN {6 | 9}]".replace("{6 | 9}", "number")
PAGE = "add_exttrail"


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    """Forget what this process has read, as a new one would."""
    compiled._file.cache_clear()
    compiled._trees.cache_clear()


def only_file(folder: Path) -> Path:
    (file,) = folder.glob("ggshell/syntax/*/*.json")
    return file


@pytest.fixture
def not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second reading of the notation fails."""

    def refuse(text: str, page: str) -> object:
        raise AssertionError(f"{text} is compiled again")

    monkeypatch.setattr(compiled, "compile_line", refuse)


@pytest.mark.parametrize("kind", ["commands", "parameters", "logdump"])
def test_every_line_of_the_manual_is_kept_unchanged(kind: str) -> None:
    for line in pages.all_syntax_lines(kind):
        tree = compile_line(line.text, line.page)
        kept = json.loads(json.dumps(compiled._values(tree.body)))
        assert notation.line_of(compiled._node(kept), line.text, line.page) == tree


def test_a_line_is_compiled_once(request: pytest.FixtureRequest) -> None:
    first = compiled_line(TEXT, PAGE)
    request.getfixturevalue("not_compiled")
    forget()
    assert compiled_line(TEXT, PAGE) == first


def test_a_changed_line_is_compiled(cache_folder: Path) -> None:
    compiled_line(TEXT, PAGE)
    changed = TEXT.replace("MEGABYTES", "GIGABYTES")
    forget()
    assert compiled_line(changed, PAGE) == compile_line(changed, PAGE)
    assert changed in only_file(cache_folder).read_text()


def test_another_version_of_the_notation_does_not_use_the_file(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled_line(TEXT, PAGE)
    forget()
    monkeypatch.setattr(compiled, "_version", lambda: "another")
    assert compiled_line(TEXT, PAGE) == compile_line(TEXT, PAGE)
    assert len([*cache_folder.glob("ggshell/syntax/*")]) == 2


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def _flip(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"MEGABYTES", b"MEGABYTER"))


def _other_content(file: Path) -> None:
    content = json.dumps({TEXT: ["word", 1, "EXTTRAIL"]}).encode()
    file.write_bytes(compiled._checksum(content) + b"\n" + content)


def _writable_by_others(file: Path) -> None:
    content = json.dumps({TEXT: ["word", "FORGED", 6]}).encode()
    file.write_bytes(compiled._checksum(content) + b"\n" + content)
    file.chmod(0o666)


def _link(file: Path) -> None:
    content = json.dumps({TEXT: ["word", "FORGED", 6]}).encode()
    other = file.with_name("elsewhere")
    other.write_bytes(compiled._checksum(content) + b"\n" + content)
    file.unlink()
    file.symlink_to(other)


@pytest.mark.parametrize("spoil", [_cut, _flip, _other_content, _writable_by_others, _link])
def test_a_file_that_cannot_be_trusted_is_ignored_and_replaced(cache_folder: Path, spoil: object) -> None:
    whole = compiled_line(TEXT, PAGE)
    file = only_file(cache_folder)
    spoil(file)  # type: ignore[operator]
    forget()
    assert compiled_line(TEXT, PAGE) == whole
    forget()
    assert compiled._trees(file) == {TEXT: compiled._values(whole.body)}
    assert (file.is_symlink(), file.stat().st_mode & 0o777) == (False, 0o600)


def test_a_file_of_another_user_is_ignored(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled_line(TEXT, PAGE)
    forget()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert compiled._trees(only_file(cache_folder)) == {}


@pytest.mark.parametrize("value", ["", "not/absolute", "/proc/nowhere"])
def test_no_cache_folder_is_needed(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    monkeypatch.delenv("HOME", raising=False)
    forget()
    assert compiled_line(TEXT, PAGE) == compile_line(TEXT, PAGE)


@pytest.mark.slow
def test_a_statement_with_options_does_not_load_the_parser_of_the_notation_twice(cache_folder: Path) -> None:
    program = (
        "import sys; from ggshell.language.grammar import parse;"
        "parse('ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10'); print('pyparsing' in sys.modules)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache_folder)}
    loaded = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [each.stdout.strip() for each in loaded] == ["True", "False"]
