"""Every syntax line of the manual has a function with the same names, and every function a line."""

from __future__ import annotations

import inspect

import pytest

from ggshell.shell import registry
from ggshell.syntax import grammar, pages
from ggshell.syntax.tree import argument_names

LINES = {
    line.text: line
    for stem in pages.index(grammar.COMMANDS)
    for line in grammar.lines_of(stem.split("_")[0], grammar.COMMANDS)
}


@pytest.mark.parametrize("text", LINES)
def test_every_line_has_a_handler_that_takes_its_names(text: str) -> None:
    line = LINES[text]
    handler = registry.handler(line.key)
    parameters = [
        name
        for name, parameter in inspect.signature(handler).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    assert argument_names(line) <= set(parameters)


def test_every_handler_has_a_line() -> None:
    literal = {text for page in map(pages.read, pages.index(grammar.COMMANDS).values()) for text in page.syntax}
    known = {line.key for line in LINES.values()} | literal
    assert set(registry.handlers()) - known == set()
