"""Manual and handlers agree: every syntax line has a function with its names, and every function has syntax lines."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator

import pytest

from ggshell.cli.registry import COMMANDS, Handler
from ggshell.errors import UsageError
from ggshell.language import pages
from ggshell.language.notation import (
    Alternatives,
    Line,
    Many,
    Node,
    Option,
    Series,
    Slot,
    Word,
    argument_names,
    compile_line,
    python_name,
)
from ggshell.language.unsupported import Gaps, gaps_of, idle_arguments
from ggshell.language.values import slot_type

LINES: tuple[Line, ...] = tuple(
    compile_line(text, stem) for stem, path in pages.index("commands").items() for text in pages.read(path).syntax
)


def unsupported_facts(line: Line) -> Gaps:
    return gaps_of(pages.index("commands")[line.page])


def missing_options(line: Line) -> set[str]:
    """The arguments of a line that are not supported, or without effect, according to its page."""
    missing = {python_name(subject.split()[0]) for subject, _ in unsupported_facts(line).missing if subject != line.key}
    return missing | idle_arguments(pages.index("commands")[line.page])


SUPPORTED = tuple(
    line
    for line in LINES
    if not unsupported_facts(line).status and line.key not in dict(unsupported_facts(line).missing)
)


def test_the_manual_has_lines() -> None:
    assert len(SUPPORTED) > 100


@pytest.mark.parametrize("line", SUPPORTED, ids=lambda line: line.text[:50])
def test_every_supported_line_has_a_handler_that_accepts_its_names(line: Line) -> None:
    taken = keyword_names(COMMANDS.find(line.key)[0])
    assert argument_names(line) - missing_options(line) <= taken


@pytest.mark.parametrize("line", [line for line in LINES if line not in SUPPORTED], ids=lambda line: line.text[:50])
def test_an_unsupported_line_has_no_handler_and_gives_a_reason(line: Line) -> None:
    found = unsupported_facts(line)
    assert not COMMANDS.module_of(line.key)
    assert found.status or dict(found.missing)[line.key]


def test_every_name_of_a_handler_is_in_one_of_its_lines() -> None:
    given: dict[Handler, set[str]] = defaultdict(set)
    for line in SUPPORTED:
        given[COMMANDS.find(line.key)[0]] |= argument_names(line)
    extra = {handler.__qualname__: keyword_names(handler) - names for handler, names in given.items()}
    # A handler of several lines can have names of only some of them, but each name must come from one of them.
    assert {name: names for name, names in extra.items() if names} == {}


def test_every_handler_has_a_line_and_every_line_a_handler() -> None:
    assert set(COMMANDS.load_all()) == {line.key for line in SUPPORTED}


def test_the_module_of_a_key_is_found_by_the_decorator_in_its_source() -> None:
    """The search needs no import: a command is a page and a function and is listed nowhere else."""
    for key, (handler, _) in COMMANDS.load_all().items():
        assert handler.__module__ == f"ggshell.cli.commands.{COMMANDS.module_of(key)}", key


@pytest.mark.slow
def test_the_search_for_one_command_imports_no_other() -> None:
    code = "import sys; from ggshell.cli.registry import COMMANDS; COMMANDS.find('INFO ALL'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if name.startswith("ggshell.cli.commands.")] == ["ggshell.cli.commands.info_all"]


def test_a_handler_requires_only_names_that_every_line_provides() -> None:
    """A statement with only the required arguments can run: every other argument has a default."""
    for line in SUPPORTED:
        signature = inspect.signature(COMMANDS.find(line.key)[0])
        required = {
            name
            for name, parameter in signature.parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.default is inspect.Parameter.empty
        }
        assert required <= argument_names(line), line.text


def test_a_key_without_a_handler_is_refused() -> None:
    with pytest.raises(UsageError, match="not available in this version"):
        COMMANDS.find("ADD WONDER")


NUMERIC = re.compile(r"number|.*_?(?:seconds|minutes|value)|n|megabytes|number_of_\w+")
NOT_INT = {
    **dict.fromkeys(("number_in_seconds", "number_in_days", "limit_in_seconds"), "with a fraction"),
    **dict.fromkeys(("value", "text_value", "float_value"), "another type's value"),
}


def slots(node: Node) -> Iterator[tuple[str, str]]:
    """For every value, alone or after its keyword: the handler's name for it and the name of its placeholder."""
    if isinstance(node, Slot):
        yield node.name, node.name
    elif isinstance(node, Option | Many):
        yield from slots(node.item)
    elif isinstance(node, Alternatives):
        for arm in node.arms:
            yield from slots(arm)
    elif isinstance(node, Series):
        for before, item in zip((None, *node.items), node.items, strict=False):
            named = isinstance(before, Word) and isinstance(item, Slot)
            yield from [(python_name(before.text), item.name)] if named else slots(item)  # type: ignore[union-attr]


def converted_seven(slot: str) -> object:
    """The value of a placeholder for ``7``; None if ``7`` is not valid for it."""
    try:
        return slot_type(slot).convert("7")
    except ValueError:
        return None


@pytest.mark.parametrize("kind", ["commands", "parameters", "logdump"])
def test_every_placeholder_for_an_integer_converts_to_a_number(kind: str) -> None:
    found = {
        name
        for path in pages.index(kind).values()
        for text in pages.read(path).syntax
        for _, name in slots(compile_line(text, path.stem).body)
        if NUMERIC.fullmatch(name) and name not in NOT_INT
    }
    assert "number" in found or kind == "logdump"
    assert {name for name in found if converted_seven(name) != 7} == set()


def test_handlers_get_values_of_their_annotated_type() -> None:
    """Regression: DELETE MASTERKEY RANGE compared numbers with strings, because its placeholders had no type."""
    compared = 0
    for line in SUPPORTED:
        parameters = inspect.signature(COMMANDS.find(line.key)[0]).parameters
        for own, slot in slots(line.body):
            wanted = next((str(parameters[name].annotation) for name in (own, slot) if name in parameters), "")
            if wanted in ("int", "int | None", "str"):
                compared += 1
                is_number = isinstance(converted_seven(slot), int)
                assert is_number is wanted.startswith("int"), f"{line.text}: {slot} for {wanted}"
    assert compared > 200


def keyword_names(handler: Handler) -> set[str]:
    signature = inspect.signature(handler)
    return {
        name for name, parameter in signature.parameters.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
