"""A heartbeat as a value, and its conversion from and to the row image in a trail."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from ggshell.clock import from_datetime, to_datetime
from ggshell.pipeline.heartbeat.names import HEARTBEAT_COLUMNS
from ggshell.record.definition import TableDefinition
from ggshell.record.image import decode_image, encode_image


class Beat(NamedTuple):
    """A row of the heartbeat table or seed table; times in microseconds since 1970 UTC, None for no value."""

    local_database: str | None = None
    heartbeat_timestamp: int | None = None
    remote_database: str | None = None
    incoming_extract: str | None = None
    incoming_routing_path: str | None = None
    incoming_replicat: str | None = None
    incoming_heartbeat_ts: int | None = None
    incoming_extract_ts: int | None = None
    incoming_routing_ts: int | None = None
    incoming_replicat_ts: int | None = None
    outgoing_extract: str | None = None
    outgoing_routing_path: str | None = None
    outgoing_replicat: str | None = None
    outgoing_heartbeat_ts: int | None = None
    outgoing_extract_ts: int | None = None
    outgoing_routing_ts: int | None = None
    outgoing_replicat_ts: int | None = None
    incoming_replicat_lw_csn: str | None = None
    incoming_extract_heartbeat_csn: str | None = None
    incoming_extract_restart_csn: str | None = None
    incoming_extract_restart_ts: int | None = None


_IS_TIME = tuple(name.endswith(("_ts", "_timestamp")) for name in HEARTBEAT_COLUMNS)
_NEEDED = frozenset(HEARTBEAT_COLUMNS[:17])
"""The columns that identify a heartbeat table. Tables of older releases lack the columns after these."""


class Layout(NamedTuple):
    """The layout of a heartbeat table: the image column for each field of ``Beat``, None if the table lacks it."""

    definition: TableDefinition
    columns: tuple[int | None, ...]
    seed: bool

    def decode(self, image: bytes | memoryview) -> Beat:
        """Decode an image. Raises ValueError if the image or a time in it is not valid."""
        values = dict(decode_image(image))
        found: list[str | int | None] = []
        for index, is_time in zip(self.columns, _IS_TIME, strict=True):
            value = values.get(index) if index is not None else None
            text = value.decode() if value is not None else None
            found.append(parse_time(text) if is_time and text is not None else text)
        return Beat(*found)  # type: ignore[arg-type]  # the fields are texts and times in a fixed order

    def encode(self, beat: Beat) -> bytes:
        return encode_image(
            sorted(
                (index, as_text(value)) for index, value in zip(self.columns, beat, strict=True) if index is not None
            )
        )


def as_text(value: str | int | None) -> bytes | None:
    """Return a column's value in the form that trails contain."""
    return None if value is None else (time_text(value) if isinstance(value, int) else value).encode()


def layout_of(definition: TableDefinition) -> Layout | None:
    """Return the layout of a heartbeat table, or None if the table is not a heartbeat table.

    The columns decide, not the name, because the schema can differ between source and target.
    """
    places = {column.name.lower(): index for index, column in enumerate(definition.columns)}
    if not places.keys() >= _NEEDED:
        return None
    columns = tuple(places.get(name) for name in HEARTBEAT_COLUMNS)
    return Layout(definition, columns, definition.name.name.lower().endswith("_seed"))


def time_text(microseconds: int) -> str:
    """Format a time for a timestamp column: UTC, without time zone, in microseconds."""
    return to_datetime(microseconds).replace(tzinfo=None).isoformat(" ", "microseconds")


def parse_time(text: str) -> int:
    """Parse a timestamp without time zone, taken as UTC, to microseconds since 1970. Raises ValueError."""
    return from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC))
