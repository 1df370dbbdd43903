"""``python dying.py FORM FUNCTION before|after replicat --home DIR --group NAME``: a lake Replicat that SIGKILL ends when it
first comes to, or is done with, a function of its tables."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from ggshell.lake import replicat
from ggshell.lake.forms.delta import DeltaTables
from ggshell.lake.forms.iceberg import IcebergTables
from ggshell.lake.forms.parquet import ParquetTables
from ggshell.process.__main__ import run_as

FORMS: dict[str, type[Any]] = {"parquet": ParquetTables, "delta": DeltaTables, "iceberg": IcebergTables}


def arm(tables: type[Any], function: str, when: str) -> None:
    original = getattr(tables, function)

    def deadly(*given: Any) -> None:
        if when == "after":
            original(*given)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(tables, function, deadly)


if __name__ == "__main__":
    form, function, when, *rest = sys.argv[1:]
    arm(FORMS[form], function, when)
    sys.exit(run_as(rest, lambda kind, home, group: replicat.run(home, group)))
