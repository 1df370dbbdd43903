"""The settings of the session of a statement in the log: the status variables of its event.

The codes and lengths are those of ``Query_log_event`` in the sources of MySQL and MariaDB. A reader stops at a code that it
does not know, because only the code says how long its value is.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

_FLAGS, _SQL_MODE, _INCREMENT, _CHARSET, _TIME_ZONE = 0, 1, 3, 4, 5
_MICROSECONDS, _EXPLICIT, _MARIADB_MICROSECONDS = 13, 16, 128
_LENGTHS: Final = {
    _FLAGS: 4,
    _SQL_MODE: 8,
    _INCREMENT: 4,
    _CHARSET: 6,
    7: 2,
    8: 2,
    9: 8,
    10: 4,
    _MICROSECONDS: 3,
    _EXPLICIT: 1,
    17: 8,
    18: 2,
    19: 1,
    20: 1,
    _MARIADB_MICROSECONDS: 3,
    129: 8,
    130: 2,
}
"""The bytes of values of a fixed length; those above 127 are MariaDB's."""
_TEXTS: Final = {_TIME_ZONE: 1, 6: 1, 11: 2}
"""Values that are texts with a length: how many of them."""
_CATALOG: Final = 2
_DATABASES: Final = 12
_MANY: Final = 254
NO_FOREIGN_KEY_CHECKS: Final = 1 << 26
_EXPLICIT_DEFAULTS: Final = 1 << 24
"""MariaDB's flag for explicit_defaults_for_timestamp. MySQL has a value of its own."""


class QueryVariables(NamedTuple):
    """``flags``: options of the session; ``charset``: the collation of the text; ``offset``: auto_increment_offset.

    ``time_zone``: empty if the statement does not depend on it; ``microseconds``: of the time at which it began;
    ``explicit_defaults``: explicit_defaults_for_timestamp.
    """

    flags: int = 0
    sql_mode: int = 0
    offset: int = 1
    charset: int = 0
    time_zone: str = ""
    microseconds: int = 0
    explicit_defaults: bool = False


def query_variables(data: bytes) -> QueryVariables:
    """Read the status variables of a query event."""
    found, place = QueryVariables(), 0
    while place < len(data):
        code, place = data[place], place + 1
        size = _size(data, code, place)
        if size is None or place + size > len(data):
            break
        if code == _FLAGS:
            flags = int.from_bytes(data[place : place + 4], "little")
            found = found._replace(flags=flags, explicit_defaults=bool(flags & _EXPLICIT_DEFAULTS))
        elif code == _SQL_MODE:
            found = found._replace(sql_mode=int.from_bytes(data[place : place + 8], "little"))
        elif code == _INCREMENT:
            found = found._replace(offset=struct.unpack_from("<HH", data, place)[1])
        elif code == _CHARSET:
            found = found._replace(charset=int.from_bytes(data[place : place + 2], "little"))
        elif code == _TIME_ZONE:
            found = found._replace(time_zone=data[place + 1 : place + size].decode("ascii", "replace"))
        elif code in (_MICROSECONDS, _MARIADB_MICROSECONDS):
            found = found._replace(microseconds=int.from_bytes(data[place : place + 3], "little"))
        elif code == _EXPLICIT:
            found = found._replace(explicit_defaults=bool(data[place]))
        place += size
    return found


def _size(data: bytes, code: int, place: int) -> int | None:
    """The bytes of a value; None if the code is not known or the value is cut."""
    if code in _LENGTHS:
        return _LENGTHS[code]
    end = place
    try:
        if code in _TEXTS:
            for _ in range(_TEXTS[code]):
                end += 1 + data[end]
            return end - place
        if code == _CATALOG:
            return 2 + data[place]
        if code == _DATABASES:
            count = data[place]
            for _ in range(0 if count == _MANY else count):
                end = data.index(0, end + 1)
            return end + 1 - place
    except (IndexError, ValueError):
        return None
    return None
