"""``python -m ggshell.lake replicat --home DIR --group NAME``: the entry of a lake Replicat's process."""

from __future__ import annotations

import sys

from ggshell.lake import replicat
from ggshell.process.__main__ import run_as

if __name__ == "__main__":
    sys.exit(run_as(sys.argv[1:], lambda kind, home, group: replicat.run(home, group)))
