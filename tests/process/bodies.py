"""What the processes of these tests do instead of replicating: run ``python bodies.py BODY HOME GROUP`` for a real process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ggshell.errors import ApplyError, GgsError
from ggshell.process.lifecycle import GroupContext, run_group
from ggshell.store.checkpoint import GroupType
from ggshell.store.home import Home
from ggshell.types import TableName


def idle(context: GroupContext) -> None:
    """Wait until told to stop."""

    def status(_: dict[str, Any]) -> dict[str, Any]:
        return {"status": "At EOF", "read": {}, "write": []}

    def bug(_: dict[str, Any]) -> dict[str, Any]:
        return {"never": 1 // 0}

    def refuse(_: dict[str, Any]) -> dict[str, Any]:
        raise ApplyError("not now", where="here", hint="later")

    context.verb("STATUS", status)
    context.verb("BUG", bug)
    context.verb("REFUSE", refuse)
    table = TableName("shop", "items")
    context.statistics.add(table, table, 5, 3)
    while not context.runner.stop_requested:
        context.runner.wait([], 30)


def refuse(context: GroupContext) -> None:
    """Abend at once."""
    raise ApplyError("no row has this key", where="shop.items", hint="look at the discard file")


def crash(context: GroupContext) -> None:
    """Fail in a way that nobody foresaw."""
    raise RuntimeError("a bug with PASSWORD hidden")


BODIES = {"idle": idle, "refuse": refuse, "crash": crash}


def main() -> int:
    body, home, group = sys.argv[1:]
    try:
        return run_group(Home(Path(home)), group, GroupType.EXTRACT, BODIES[body])
    except GgsError as error:
        sys.stderr.write(f"{error.code}  {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
