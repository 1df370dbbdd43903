"""The manual and the handlers say the same: every syntax line has a function with its names, every function its lines."""

from __future__ import annotations

import inspect
from collections import defaultdict

import pytest

from ggshell.errors import UsageError
from ggshell.shell import registry
from ggshell.syntax import pages
from ggshell.syntax.gaps import Gaps, gaps_of
from ggshell.syntax.notation import compile_line
from ggshell.syntax.tree import Line, argument_names, python_name

LINES: tuple[Line, ...] = tuple(
    compile_line(text, stem) for stem, path in pages.index("commands").items() for text in pages.read(path).syntax
)


def gaps(line: Line) -> Gaps:
    return gaps_of(pages.index("commands")[line.page])


def missing_options(line: Line) -> set[str]:
    """The arguments of a line that its page says are not carried out."""
    return {python_name(subject.split()[0]) for subject, _ in gaps(line).missing if subject != line.key}


CARRIED_OUT = tuple(line for line in LINES if not gaps(line).status and line.key not in dict(gaps(line).missing))


def test_the_manual_has_lines() -> None:
    assert len(CARRIED_OUT) > 100


@pytest.mark.parametrize("line", CARRIED_OUT, ids=lambda line: line.text[:50])
def test_every_line_that_is_carried_out_has_a_handler_that_takes_its_names(line: Line) -> None:
    taken = keyword_names(registry.find(line.key))
    assert argument_names(line) - missing_options(line) <= taken


@pytest.mark.parametrize("line", [line for line in LINES if line not in CARRIED_OUT], ids=lambda line: line.text[:50])
def test_a_line_that_is_not_carried_out_has_no_handler_and_gives_a_reason(line: Line) -> None:
    found = gaps(line)
    assert line.key not in registry.MODULES
    assert found.status or dict(found.missing)[line.key]


def test_every_handler_has_no_name_that_none_of_its_lines_gives() -> None:
    given: dict[registry.Handler, set[str]] = defaultdict(set)
    for line in CARRIED_OUT:
        given[registry.find(line.key).handler] |= argument_names(line)
    extra = {
        handler.__qualname__: keyword_names(registry.Entry(handler, ())) - names for handler, names in given.items()
    }
    # A handler of several lines may pass on what only some of them name; none of it may come from nowhere.
    assert {name: names for name, names in extra.items() if names} == {}


def test_every_handler_has_a_line_and_every_key_its_module() -> None:
    keys = {line.key for line in CARRIED_OUT}
    assert set(registry.load_all()) == keys
    assert set(registry.MODULES) == keys


def test_names_that_a_line_requires_have_no_default_elsewhere_needed() -> None:
    """A statement that gives only what must be given can be carried out: everything else has a default."""
    for line in CARRIED_OUT:
        signature = inspect.signature(registry.find(line.key).handler)
        required = {
            name
            for name, parameter in signature.parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.default is inspect.Parameter.empty
        }
        assert required <= argument_names(line), line.text


def test_a_key_without_a_handler_is_refused_in_words() -> None:
    with pytest.raises(UsageError, match="not available in this version"):
        registry.find("ADD WONDER")


def keyword_names(entry: registry.Entry) -> set[str]:
    signature = inspect.signature(entry.handler)
    return {
        name for name, parameter in signature.parameters.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
