"""Changes of one table one after the other, as one change. A step begins where the columns change in another way than before.

The result is the same as if each step were a batch of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ggshell.connectors.lake.columns import Rules, earlier_rows, plain
from ggshell.connectors.lake.forms import KEY, HeldTable, TableChange
from ggshell.connectors.lake.shapes import continues
from ggshell.record.definition import TableDefinition

Part = TypeVar("Part")
_Step = Callable[[Sequence[Part], HeldTable | None, Rules], TableChange]


def in_steps(
    parts: Sequence[Part],
    definition: Callable[[Part], TableDefinition],
    step: _Step[Part],
    held: HeldTable | None,
    rules: Rules,
) -> TableChange:
    """The change that applies parts in order. ``definition``: that of a part; ``step``: the change of parts of one shape."""
    first, *others = _runs(parts, definition)
    change = step(first, held, rules)
    for run in others:
        change = _followed(held, change, step(run, _after(held, change), rules), rules)
    return change


def _runs(parts: Sequence[Part], definition: Callable[[Part], TableDefinition]) -> list[list[Part]]:
    """The parts, in runs that can be applied together."""
    found = list[list[Part]]()
    for part in parts:
        if found and continues(definition(found[-1][-1]), definition(part)):
            found[-1].append(part)
        else:
            found.append([part])
    return found


def _after(held: HeldTable | None, change: TableChange) -> HeldTable:
    """A table as it will be after a change."""

    def rows(keys: pa.Array | None) -> pa.Table:
        found = change.rows
        if held is not None and not change.cleared:
            found = pa.concat_tables([_without(earlier_rows(held, keys, change), change.replaced), found])
        return found if keys is None else found.filter(pc.is_in(found[KEY], keys))

    return HeldTable(change.rows.schema, rows, change.numbers, change.key)


def _followed(held: HeldTable | None, first: TableChange, second: TableChange, rules: Rules) -> TableChange:
    """Two changes as one. ``second`` is relative to the table after ``first``."""
    old, schema = plain(held.schema) if held is not None else pa.schema([]), second.rows.schema
    names, later = dict(first.renamed), dict(second.renamed)
    final = {name: later.get(names.get(name, name), names.get(name, name)) for name in old.names}
    before = {final[field.name]: field.type for field in old}
    other = [field for field in schema if before.get(field.name, field.type) != field.type]
    widened = tuple(field for field in other if rules.widens(before[field.name], field.type))
    changed = tuple(field.name for field in other if field not in widened)
    cleared = held is None or first.cleared or second.cleared or bool(changed)
    if cleared:
        rows = _after(_after(held, first), second).rows(None)
    else:
        made = HeldTable(first.rows.schema, lambda _: first.rows)
        rows = pa.concat_tables([_without(earlier_rows(made, None, second), second.replaced), second.rows])
    filled = {later.get(name, name): value for name, value in first.filled.items()}
    return second._replace(
        rows=rows,
        replaced=pa.concat_arrays([first.replaced, second.replaced]).unique(),
        cleared=cleared,
        added=tuple(field for field in schema if field.name not in before) if held is not None else (),
        changed=changed,
        renamed=tuple((old, new) for old, new in final.items() if old != new),
        widened=widened,
        stored_as=tuple({**dict(first.stored_as), **dict(second.stored_as)}.items()),
        nulled=tuple(dict.fromkeys([*first.nulled, *second.nulled])),
        filled={**filled, **second.filled},
        reused=tuple(dict.fromkeys([*first.reused, *second.reused])),
        rekeyed=first.rekeyed or second.rekeyed,
    )


def _without(rows: pa.Table, keys: pa.Array) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows[KEY], keys)))
