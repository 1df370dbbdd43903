"""Entry point of a lake's processes: ``python -m ggshell.connectors.lake replicat|maintain --home DIR --group NAME``."""

from __future__ import annotations

import sys

from ggshell.groups.__main__ import run_as
from ggshell.home.home import Home


def _run(kind: str, home: Home, group: str) -> int:
    """Run a group's Replicat, or maintain its lake once."""
    if kind == "maintain":
        from ggshell.connectors.lake.maintenance import run_maintenance

        return run_maintenance(home, group)
    from ggshell.connectors.lake import replicat

    return replicat.run(home, group)


if __name__ == "__main__":
    sys.exit(run_as(sys.argv[1:], _run))
