"""Statements as administrators write them: odd but legal forms are parsed, errors are refused at the right column."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.check.cli import check_sources
from ggshell.check.findings import FindingSeverity
from ggshell.check.parameter_files import kind_of
from ggshell.errors import StatementError
from ggshell.language import grammar, pages
from ggshell.language.expressions import parse_expression
from ggshell.language.grammar import parse
from ggshell.parameters.lines import parse_all

HERE = Path(__file__).parent
KINDS = {"c": grammar.COMMANDS, "p": grammar.PARAMETERS}
FILES = sorted(path for path in (HERE / "files").iterdir() if path.suffix != ".inc")


def _lines(name: str) -> list[str]:
    text = (HERE / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


LEGAL = [(line[0], line[2:].replace("\\t", "\t")) for line in _lines("legal.txt")]
_WRONG = _lines("wrong.txt")
WRONG = [(line[0], line[2:], mark.index("^") - 1) for line, mark in zip(_WRONG[::2], _WRONG[1::2], strict=True)]


def test_there_are_enough_examples() -> None:
    assert min(len(LEGAL), len(WRONG)) >= 60
    assert len(FILES) >= 12


@pytest.mark.parametrize(("kind", "text"), LEGAL, ids=[text for _, text in LEGAL])
def test_odd_but_legal_forms_are_parsed(kind: str, text: str) -> None:
    parse(text, KINDS[kind])


@pytest.mark.parametrize(("kind", "text", "column"), WRONG, ids=[text for _, text, _ in WRONG])
def test_errors_are_refused_at_the_right_column(kind: str, text: str, column: int) -> None:
    with pytest.raises(StatementError) as caught:
        parse(text, KINDS[kind])
    assert caught.value.column == column, str(caught.value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_odd_parameter_files_are_parsed(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    kind = kind_of(text, str(path))
    assert kind.lower() == {"pump": "extract", "mgr": "manager"}.get(path.stem, path.stem.split("_")[0].lower())
    _, errors = parse_all(text, path, kind)
    assert [error for error in errors if "is not supported" not in error.message] == []
    found = check_sources([(str(path), text)]).findings
    assert [each for each in found if each.severity is not FindingSeverity.NOTE and each.code != "GGS-00103"] == []


@pytest.mark.parametrize("stem", sorted(pages.index("functions")))
def test_every_example_of_a_function_is_parsed(stem: str) -> None:
    for example in pages.read(pages.index("functions")[stem]).examples:
        parse_expression(example)
