"""Random and mutated statements and files give an answer or one of the project's own errors, within a time limit.

Takes about five seconds. ``--rounds N`` tries N thousand statements; the default is 350.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from ggshell.check.cli import check_sources
from ggshell.errors import GgsError, StatementError
from ggshell.language import grammar, pages
from ggshell.language.completion import expected
from ggshell.language.expressions import parse_expression
from ggshell.language.statement import split
from ggshell.parameters.lines import parse_all

pytestmark = pytest.mark.slow

LIMIT_SECONDS = 1.0
KINDS = tuple(kind for kind in (grammar.COMMANDS, grammar.PARAMETERS, grammar.LOGDUMP) if pages.index(kind))
EXAMPLES = [
    (kind, example) for kind in KINDS for path in pages.index(kind).values() for example in pages.read(path).examples
]
NASTY = [
    *("(", ")", "((((", "))", "'", '"', ";", ",", ",,", "&", "&\n", "\n", "\t", "--", "@", "@@", "@STRCAT (", "="),
    *("!", "#m", "#", "MACRO #m BEGIN", "END;", "INCLUDE x", "\\", "\x00", "\u2028", "\ufeff", "é", "٣", "²"),
    *("[", "{", "}", "*", "%", "$", "..."),
    *(
        "(" * 2000,
        "a" * 5000,
        "9" * 5000,
        "'" * 999,
        "(a," * 700,
        "@IF (" * 300,
        "- " * 3000,
        "x.y." * 900,
        ", " * 4000,
    ),
]


@st.composite
def statements(draw: DrawFn) -> tuple[str, str]:
    """(kind, text): an example of the manual with random changes, or random text."""
    kind, text = draw(st.sampled_from(EXAMPLES))
    if draw(st.integers(0, 9)) == 0:
        return kind, draw(st.text(max_size=60))
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = draw(st.integers(begin, min(len(text), begin + 12)))
        other = draw(st.sampled_from(EXAMPLES))[1]
        put = draw(st.sampled_from(["", text[begin:end] * 2, other, other.split()[-1], *NASTY]))
        text = text[:begin] + put + text[end:]
    return kind, text


def in_time(work: Callable[[], object], text: str) -> None:
    """Run it within the time limit; only the project's own errors are allowed."""
    began = time.process_time()
    try:
        work()
    except StatementError as error:
        assert error.column >= 1
    except GgsError as error:
        assert error.message
    assert time.process_time() - began < LIMIT_SECONDS, text[:200]


def _check(kind: str, text: str) -> None:
    def one_by_one() -> None:
        for statement in split(text):
            in_time(partial(grammar.parse, statement.text, kind), statement.text)

    in_time(one_by_one, text)
    in_time(lambda: grammar.parse(text, kind), text)
    in_time(lambda: expected(text, len(text) // 2, kind), text)
    in_time(lambda: parse_expression(text), text)
    in_time(lambda: parse_all(text, Path("x.prm"), "Replicat"), text)
    in_time(lambda: check_sources([("x.oby" if kind == grammar.COMMANDS else "x.prm", text)]), text)


def test_random_statements_give_an_answer_or_an_own_error_in_time(request: pytest.FixtureRequest) -> None:
    for kind in KINDS:
        for line in {line.split()[0] for path in pages.index(kind).values() for line in pages.read(path).syntax}:
            expected(f"{line} ", len(line) + 1, kind)  # compiling is not measured

    @settings(
        max_examples=1000 * int(request.config.getoption("--rounds")) or 350,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(statements())
    def check_drawn(drawn: tuple[str, str]) -> None:
        _check(*drawn)

    check_drawn()


@pytest.mark.parametrize("piece", NASTY, ids=range(len(NASTY)))
@pytest.mark.parametrize("around", ["MAP a.b, TARGET c.d, COLMAP (x = {});", "MAP {}, TARGET {};", "{}"])
def test_long_and_strange_pieces_take_linear_time(piece: str, around: str) -> None:
    _check(grammar.PARAMETERS, around.replace("{}", piece))
