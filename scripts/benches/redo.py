"""``redo``: SQL_REDO to columns compared with the required 100,000 rows a second; a log to committed batches compared with what
json.loads alone takes for the same lines. Seconds are those of this process's CPU: nothing is waited for."""

from __future__ import annotations

import gc
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benches.figures import Figure, alternate, more_is_better
from ggshell.connectors.oracle_redo.definitions import Definitions, read_definitions
from ggshell.connectors.oracle_redo.folder import open_rows
from ggshell.connectors.oracle_redo.log import RedoLog
from ggshell.connectors.oracle_redo.rows import Operation, RedoRow
from ggshell.connectors.oracle_redo.sql import RedoStatement, parse_delete, parse_insert, parse_update
from ggshell.demo.redo_workload import Workload, WorkloadShape, redo_writers, write_definitions
from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.pipeline.capture.stream import Capture
from ggshell.record.transaction import Completed
from ggshell.types import Csn, CsnForm, LogPosition

ASKED = 100_000.0
_PARSE: dict[int, Callable[[bytes], RedoStatement]] = {
    Operation.INSERT: parse_insert,
    Operation.UPDATE: parse_update,
    Operation.DELETE: parse_delete,
}
_BEGINNING = LogPosition(0, 0, 0)


def run(rounds: int, quick: bool) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="ggshell-bench-") as name:
        folder = Path(name)
        write_log(folder, 20.0 if quick else 120.0)
        found = changes(folder)
        rates = [parsed(found) for _ in range(rounds)]
        del found
        lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines()]
        gc.collect()
        gc.freeze()  # as Extract does: what is loaded by now need not be looked at again
        whole, peer = alternate(rounds, lambda _: _captured(folder, len(lines)), lambda _: _loaded(lines))
    return [
        more_is_better("redo", "SQL_REDO to columns", "rows/s", rates, [ASKED], "the goal", 1.0),
        more_is_better("redo", "log to batches", "rows/s", whole, peer, "json.loads alone", None),
    ]


def write_log(folder: Path, span: float) -> None:
    """Write a log of so many seconds into a folder."""
    Workload(WorkloadShape(span=span, rate=200.0), list(redo_writers(folder, 1))).run()


def changes(folder: Path) -> list[tuple[int, bytes]]:
    """Read the operations of a log and their SQL_REDO."""
    rows = open_rows(f"redo://{folder}", _BEGINNING)
    found: list[RedoRow] = []
    while taken := rows.take():
        found += taken
    rows.close()
    return [(row.operation, row.redo.encode()) for row in found if row.operation in _PARSE and not row.rollback]


def parsed(found: list[tuple[int, bytes]]) -> float:
    """Parse statements; how many in a second."""
    began = time.process_time()
    for operation, redo in found:
        _PARSE[operation](redo)
    return len(found) / (time.process_time() - began)


def _captured(folder: Path, rows: int) -> float:
    definitions = Definitions(read_definitions(write_definitions(folder)), lambda _: ())
    began = time.process_time()
    log = RedoLog(open_rows(f"redo://{folder}", _BEGINNING), _BEGINNING, lambda _: True, definitions, _untold)
    capture = Capture(log, TransactionCache(256 << 20, folder / "spill"), Completed(Csn(0, CsnForm.NUMBER)))
    while capture.read() is not None or not capture.drained:
        continue
    capture.close()
    return rows / (time.process_time() - began)


def _untold(code: str, text: str) -> None:
    raise AssertionError(f"{code} {text}")


def _loaded(lines: list[bytes]) -> float:
    began = time.process_time()
    for line in lines:
        json.loads(line)
    return len(lines) / (time.process_time() - began)
