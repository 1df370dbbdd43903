"""What a current table records about its source in its own properties: the numbers of the columns, and the key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from ggshell.connectors.lake.forms import TableChange
from ggshell.connectors.lake.table_keys import KeyColumn
from ggshell.files import read_json

NUMBERS: Final = "ggshell.columns"
RECORDED_KEY: Final = "ggshell.key"


class SourceRecord(NamedTuple):
    """The numbers of the columns by their names in the lake, and the columns of the key (None: not recorded)."""

    numbers: Mapping[str, int]
    key: tuple[KeyColumn, ...] | None

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.key or ())


def source_record(properties: Mapping[str, str]) -> SourceRecord:
    """What the properties of a table say."""
    numbers = {str(name): int(number) for name, number in read_json(properties.get(NUMBERS, "{}")).items()}
    key = read_json(properties.get(RECORDED_KEY, "[]"))
    return SourceRecord(numbers, tuple(KeyColumn(*each) for each in key) or None)


def record_properties(change: TableChange) -> dict[str, str]:
    """The properties of a table after a change."""
    said = {NUMBERS: json.dumps(dict(change.numbers))} if change.numbers else {}
    return {**said, RECORDED_KEY: json.dumps(change.key)} if change.key else said
