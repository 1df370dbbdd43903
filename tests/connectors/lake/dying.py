"""``python dying.py FORM replicat --home DIR --group NAME``: a lake Replicat; SIGKILL ends it behind a batch's first table."""

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


def arm(tables: type[Any]) -> None:
    merge = tables.merge

    def deadly(*given: Any) -> None:
        merge(*given)
        os.kill(os.getpid(), signal.SIGKILL)

    tables.merge = deadly


if __name__ == "__main__":
    arm(FORMS[sys.argv[1]])
    sys.exit(run_as(sys.argv[2:], lambda kind, home, group: replicat.run(home, group)))
