"""``python killed_replicat.py FORM replicat --home DIR --group NAME``: a lake Replicat killed after a batch's first table."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from ggshell.connectors.lake import replicat
from ggshell.connectors.lake.forms.delta import DeltaTables
from ggshell.connectors.lake.forms.iceberg import IcebergTables
from ggshell.connectors.lake.forms.parquet import ParquetTables
from ggshell.groups.__main__ import run_as

FORMS: dict[str, type[Any]] = {"parquet": ParquetTables, "delta": DeltaTables, "iceberg": IcebergTables}


def kill_after_first_table(tables: type[Any]) -> None:
    apply = tables.apply

    def apply_and_kill(*arguments: Any) -> None:
        apply(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    tables.apply = apply_and_kill


if __name__ == "__main__":
    kill_after_first_table(FORMS[sys.argv[1]])
    sys.exit(run_as(sys.argv[2:], lambda kind, home, group: replicat.run(home, group)))
