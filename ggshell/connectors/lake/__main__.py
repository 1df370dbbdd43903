"""Entry point of a lake Replicat's process: ``python -m ggshell.connectors.lake replicat --home DIR --group NAME``."""

from __future__ import annotations

import sys

from ggshell.connectors.lake import replicat
from ggshell.groups.__main__ import run_as

if __name__ == "__main__":
    sys.exit(run_as(sys.argv[1:], lambda kind, home, group: replicat.run(home, group)))
