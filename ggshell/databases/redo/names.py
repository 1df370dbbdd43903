"""Oracle's names in the house's spelling.

Oracle folds unquoted names to upper case, the house (and a PostgreSQL target) to lower case.  So a name that needs no quotes
there needs none here: ``SHOP`` becomes ``shop``.  A name that was quoted to be lower case becomes upper case, hence no two
names fall together; all others stay as they are.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ggshell.types import TableName

_ONE_CASE = re.compile(r"[A-Z_][A-Z0-9_$#]*|[a-z_][a-z0-9_$#]*")


@lru_cache(maxsize=1 << 14)
def folded(name: str) -> str:
    """A name's other spelling; twice gives the name again."""
    return name.swapcase() if _ONE_CASE.fullmatch(name) else name


@lru_cache(maxsize=1 << 12)
def table_name(owner: str, name: str) -> TableName:
    """A table as the house spells it."""
    return TableName(folded(owner), folded(name))
