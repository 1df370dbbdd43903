"""The tables of what parameters and statements name on the machine: complete, and true to the pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ggshell.language import pages
from ggshell.language.grammar import COMMANDS, PARAMETERS
from ggshell.language.notation import Alternatives, Many, Node, Option, Series, Slot, Symbol, Word, python_name
from ggshell.language.unsupported import lacks
from ggshell.service import named_places
from ggshell.service.named_places import STATEMENTS, PlaceUse
from ggshell.service.permissions import ROLES

_PLACES = (
    "collector_parameters directory file key_file library repair report source target trail trail_location url userid"
)
PLACES = frozenset(_PLACES.split())
"""The placeholders that name something on a machine, or a login, which can name a file."""
_OTHERS = """
    address alias begin_value body buffer_size bytes centiseconds character character_set checkpoint_table clock columns
    container csn database_name day days delimiter deployment_name device domain driver encoding end_value error feature
    fingerprint format_name frequency group_name heartbeattable_name hint host hours instance interval key_bits key_name
    level limit_in_seconds log_format lsn macro_name megabytes milliseconds minutes n name number number_in_days
    number_in_seconds number_of_errors object_name object_type objective operation parameter parameter_name password
    path_name peer_name port predicate prefix profile_name program_name proxy quoted release remote_database replacement
    response rest role_mapping routine schema scn search_text seconds sequence service_name shared_secret signed size
    source_column source_schema source_table sql string suffix table tag target_column target_schema target_table template
    text text_value thread_id thread_range threads time timezone transaction_id transaction_name umask undocumented until
    user user_id user_name value when width
"""
OTHERS = frozenset(_OTHERS.split())
"""All other placeholders. Put a new one here, or into ``PLACES`` if it can name a file, a folder, a trail or a login."""


def slots(node: Node) -> Iterator[str]:
    """The placeholders of a node."""
    if isinstance(node, Slot):
        yield node.name
    elif isinstance(node, Series | Alternatives):
        for item in node.items if isinstance(node, Series) else node.arms:
            yield from slots(item)
    elif isinstance(node, Option | Many):
        yield from slots(node.item)


def operands(node: Node, fixed: frozenset[str] = frozenset(), *, top: bool = False) -> Iterator[tuple[str, str]]:
    """The arguments of a syntax line that have placeholders: (the name of the argument, the placeholder)."""
    if isinstance(node, Slot):
        yield node.name, node.name
    elif isinstance(node, Option | Many):
        yield from operands(node.item)
    elif isinstance(node, Alternatives):
        for arm in node.arms:
            yield from operands(arm)
    elif isinstance(node, Series):
        yield from operands_of_series(node, fixed, top=top)


def operands_of_series(node: Series, fixed: frozenset[str], *, top: bool) -> Iterator[tuple[str, str]]:
    first = node.items[0]
    if not top and isinstance(first, Word):
        yield from ((python_name(first.text), name) for name in slots(node))
        return
    items = list(node.items)
    while items:
        item = items.pop(0)
        if isinstance(item, Word | Symbol):
            named = isinstance(item, Word) and (not top or item.text not in fixed)
            if named and items and not isinstance(items[0], Option | Word):
                yield from ((python_name(item.text), name) for name in slots(items.pop(0)))
        else:
            yield from operands(item)


def all_operands(kind: str) -> Iterator[tuple[str, str, str, str]]:
    """(key, argument, placeholder, page) of every syntax line of a kind of pages."""
    for line in map(pages.compiled, pages.all_syntax_lines(kind)):
        for argument, name in operands(line.body, frozenset(line.key.split()), top=True):
            if kind == PARAMETERS or line.key in ROLES:
                yield line.key, argument, name, line.page


@pytest.mark.parametrize(("kind", "table"), [(PARAMETERS, named_places.PARAMETERS), (COMMANDS, STATEMENTS)])
def test_every_argument_that_can_name_a_file_has_a_decision(kind: str, table: dict[tuple[str, str], PlaceUse]) -> None:
    found = {(key, argument) for key, argument, name, _ in all_operands(kind) if name in PLACES}
    assert found == table.keys()


def test_every_placeholder_is_known_to_name_a_place_or_not() -> None:
    found = {name for kind in (PARAMETERS, COMMANDS) for _, _, name, _ in all_operands(kind)}
    assert found <= PLACES | OTHERS
    assert not PLACES & OTHERS


@pytest.mark.parametrize(("kind", "table"), [(PARAMETERS, named_places.PARAMETERS), (COMMANDS, STATEMENTS)])
def test_what_is_unused_is_not_supported(kind: str, table: dict[tuple[str, str], PlaceUse]) -> None:
    for key, argument, _, page in all_operands(kind):
        if table.get((key, argument)) is PlaceUse.UNUSED:
            assert lacks(kind, page, argument.upper()) or lacks(kind, page, key.split()[-1]), (key, argument)
