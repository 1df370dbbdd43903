"""The numbers that trails use for operation types and places in a transaction (Logdump: SHOW RECTYPE, TransInd)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType


class IoType(IntEnum):
    """The operation type of a trail record; only the types that ggshell itself writes or reads."""

    DELETE = 3
    INSERT = 5
    UPDATE = 10
    FIELD_COMP = 15
    PURGE_DATA = 100
    KEY_FIELD_COMP = 115
    LARGE_OBJECT = 116
    KEY_FIELD_COMP_32 = 117
    SEQUENCE_OP = 132
    UNIFIED_UPDATE = 134
    UNIFIED_KEY_UPDATE = 135
    RESTART_ABEND = 150
    RESTART_OK = 151
    DDL = 160
    RECORD_FRAGMENT = 161
    METADATA = 170
    COMMENT = 205


KEY_UPDATES: frozenset[int] = frozenset({IoType.KEY_FIELD_COMP, IoType.UNIFIED_KEY_UPDATE})
TWO_IMAGES: frozenset[int] = KEY_UPDATES | {IoType.UNIFIED_UPDATE}
"""The operations whose data area holds a before image and an after image."""

NO_OPERATIONS: frozenset[int] = frozenset()
DDL_OPERATIONS: frozenset[int] = frozenset({IoType.DDL})
TRUNCATES: frozenset[int] = frozenset({IoType.PURGE_DATA})
OPERATIONS: Mapping[str, frozenset[int]] = MappingProxyType(
    {
        "INSERTS": frozenset({IoType.INSERT}),
        "UPDATES": frozenset({IoType.UPDATE, IoType.FIELD_COMP}) | TWO_IMAGES,
        "DELETES": frozenset({IoType.DELETE}),
    }
)
"""The operation types of GETINSERTS, IGNOREUPDATES and similar parameters."""


class TransInd(IntEnum):
    """A record's place in its transaction."""

    BEGIN = 0
    MIDDLE = 1
    END = 2
    SOLE = 3
