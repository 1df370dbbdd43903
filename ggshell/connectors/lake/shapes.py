"""When the changes before and after a change of a table's columns can be reduced together.

They can if every column stays, under any name, and its texts keep their meaning. Otherwise the values from before would be
taken for values of the new type, or be lost with a dropped column, which stays in the lake.
"""

from __future__ import annotations

from ggshell.connectors.lake.type_changes import keeps_texts
from ggshell.query.values import arrow_type
from ggshell.record.definition import Column, TableDefinition, is_same_column


def continues(first: TableDefinition, second: TableDefinition) -> bool:
    """Whether changes under the second definition can be reduced together with those under the first."""
    if first.columns == second.columns or not first.columns or not second.columns:
        return True
    return all(
        any(is_same_column(old, new) and _keeps_texts(old, new) for new in second.columns) for old in first.columns
    )


def _keeps_texts(old: Column, new: Column) -> bool:
    """Whether the texts of the old type are texts of the new one with the same values. Those of float numbers are rounded."""
    if old.type_name == new.type_name and old.known_type == new.known_type:
        return True
    return keeps_texts(arrow_type(old.known_type), arrow_type(new.known_type))
