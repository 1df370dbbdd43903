"""Parser and completion agree: every sentence of the trees is parsed, and completion expects each of its words."""

from __future__ import annotations

from functools import cache

import pytest
from amounts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from language.sentences import Piece, sentences

from ggshell.errors import StatementError
from ggshell.language import grammar, pages
from ggshell.language.completion import expected, partial_word
from ggshell.language.expressions import EXPRESSION_CODE
from ggshell.language.notation import Line, Slot, compile_line
from ggshell.language.values import VALUE_CODE

pytestmark = pytest.mark.slow

KINDS = tuple(kind for kind in (grammar.COMMANDS, grammar.PARAMETERS, grammar.LOGDUMP) if pages.index(kind))
_OF_VALUES = {VALUE_CODE, EXPRESSION_CODE}


@cache
def lines() -> list[tuple[str, Line]]:
    """Every syntax line of the manual, compiled when the first test asks."""
    return [
        (kind, compile_line(text, stem))
        for kind in KINDS
        for stem, path in pages.index(kind).items()
        for text in pages.read(path).syntax
    ]


def text_of(pieces: list[Piece]) -> str:
    return " ".join(piece.text for piece in pieces)


@settings(max_examples=examples(600), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_every_sentence_is_parsed_and_each_of_its_words_is_expected(data: st.DataObject) -> None:
    kind, line = data.draw(st.sampled_from(lines()))
    pieces = data.draw(sentences(line))
    text = text_of(pieces)
    try:
        found = grammar.parse(text, kind)
    except StatementError as error:
        assert error.code in _OF_VALUES, f"{text}\n{' ' * (error.column - 1)}^ {error}"
    else:
        assert found.key.split()[0] == line.key.split()[0]
    number = data.draw(st.integers(0, len(pieces) - 1))
    if number:
        before = text_of(pieces[:number]) + " "
        offered = expected(before, len(before), kind)
        leaf = pieces[number].leaf
        wanted = {each.slot for each in offered} if isinstance(leaf, Slot) else {each.word for each in offered}
        name = leaf.name if isinstance(leaf, Slot) else leaf.text
        assert name in wanted, f"{before}| {name} is not offered, but {offered}"


@pytest.mark.parametrize(
    ("text", "partial"),
    [("info ext", "ext"), ("info ext ", ""), ("add x 'a b", "'a b"), ("add x 'a b' c", "c"), ("a (b", "b"), ("", "")],
)
def test_the_word_at_the_cursor(text: str, partial: str) -> None:
    assert partial_word(text, len(text)) == partial


@pytest.mark.parametrize(
    ("kind", "text", "there", "absent"),
    [
        ("parameters", "MAP a.b, ", {"TARGET"}, {"MAP"}),
        ("parameters", "MAP a.b, TARGET c.d, ", {"FILTER", "COLMAP", "KEYCOLS"}, {"TARGET"}),
        ("parameters", "MAP a.b, TARGET c.d, KEYCOLS (a), ", {"FILTER"}, {"KEYCOLS"}),
        ("parameters", "BR BRINTERVAL ", {"<hours>"}, {"BRDIR"}),
        ("parameters", "", {"EXTRACT", "MAP", "BR"}, {"ADD"}),
        ("commands", "HELP ADD ", {"<rest>"}, {"ADD"}),
        ("commands", "INFO ALL; ", set(), {"TASKS"}),
    ],
)
def test_the_words_expected_at_a_position(kind: str, text: str, there: set[str], absent: set[str]) -> None:
    found = {each.word or f"<{each.slot}>" for each in expected(text, len(text), kind)}
    assert there <= found
    assert not absent & found
