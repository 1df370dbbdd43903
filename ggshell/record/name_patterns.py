"""Names of tables and other objects as patterns with ``*`` and ``?``."""

from __future__ import annotations

import re
from functools import lru_cache

from ggshell.types import TableName, split_name


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    owner, name = split_name(pattern)[-2:]
    return _part(owner), _part(name)


def _part(text: str) -> re.Pattern[str]:
    escaped = re.escape(text).replace(r"\*", ".*").replace(r"\?", ".")
    return re.compile(escaped, re.DOTALL)


def is_name_pattern(text: str) -> bool:
    """Whether a text is a pattern of an owner and a name, optionally after a catalog."""
    try:
        return len(split_name(text)) in (2, 3)
    except ValueError:
        return False


def matches(pattern: str, table: TableName) -> bool:
    """Whether a table matches ``owner.name`` with wildcards; unquoted parts are folded to lower case as in PostgreSQL."""
    owner, name = _matcher(pattern)
    return owner.fullmatch(table.owner) is not None and name.fullmatch(table.name) is not None
