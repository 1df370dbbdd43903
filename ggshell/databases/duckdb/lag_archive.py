"""The lag archive: every heartbeat that a Replicat applied, as Parquet in a folder for each day, and questions to it.

Files are written whole under another name and then renamed, so a reader sees all of a file or nothing.  A day that is over
is gathered into one file a group; a crash between the two steps of that leaves rows twice, which every question counts once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ggshell.clock import to_datetime
from ggshell.errors import DiskError
from ggshell.heartbeat.archive import ArchiveRow
from ggshell.heartbeat.history import HOPS, PERIODS, Arrival, Spread
from ggshell.heartbeat.lag import parts_between, path_text
from ggshell.heartbeat.names import HISTORY_COLUMNS

if TYPE_CHECKING:
    import duckdb

_COLUMNS = ", ".join(f"{name} {'TIMESTAMP' if name.endswith('_ts') else 'VARCHAR'}" for name in HISTORY_COLUMNS)
_PARTIAL = ".partial"
_TIMES = ("incoming_heartbeat_ts", "incoming_extract_ts", "incoming_routing_ts", "incoming_replicat_ts")


def write(folder: Path, group: str, rows: Sequence[ArchiveRow]) -> list[Path]:
    """Add rows to the archive: one new file for each day (UTC) that they came on.  Raises DiskError."""
    days: dict[str, list[ArchiveRow]] = defaultdict(list)
    for row in rows:
        days[row.day].append(row)
    made = []
    for day, of_day in days.items():
        path = folder / f"day={day}" / f"{group}-{of_day[0].received:020}.parquet"
        _write(path, of_day)
        made.append(path)
    return made


def _write(path: Path, rows: Sequence[ArchiveRow]) -> None:
    with _engine() as engine:
        engine.execute(f"CREATE TABLE beats ({_COLUMNS})")
        marks = ", ".join("make_timestamp(?)" if name.endswith("_ts") else "?" for name in HISTORY_COLUMNS)
        engine.executemany(f"INSERT INTO beats VALUES ({marks})", [list(row.values) for row in rows])
        _copy(engine, "SELECT * FROM beats ORDER BY heartbeat_received_ts", path)


def _copy(engine: duckdb.DuckDBPyConnection, query: str, path: Path) -> None:
    import duckdb

    partial = path.with_suffix(_PARTIAL)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        engine.execute(f"COPY ({query}) TO {_literal(partial)} (FORMAT parquet, COMPRESSION zstd)")
        partial.replace(path)
    except (OSError, duckdb.IOException) as error:
        partial.unlink(missing_ok=True)
        raise DiskError(f"cannot write the lag archive {path}: {error}") from error


def gather(folder: Path, group: str, today: str) -> list[Path]:
    """Put a group's files of each day before today into one; the new files.  Raises DiskError."""
    made = []
    for day in sorted(folder.glob("day=*")):
        files = sorted(day.glob(f"{group}-*.parquet"))
        if day.name.removeprefix("day=") >= today or len(files) < 2:
            continue
        whole = files[0].with_name(f"{group}-all-{files[-1].stem.rpartition('-')[2]}.parquet")
        with _engine() as engine:
            _copy(engine, f"SELECT DISTINCT * FROM {_read(files)} ORDER BY heartbeat_received_ts", whole)
        for file in files:
            if file != whole:
                file.unlink(missing_ok=True)
        made.append(whole)
    return made


def spreads(folder: Path, period: str, since: int, remote: str = "") -> list[Spread]:
    """Percentiles of each hop by period, way and remote database, from a moment (microseconds since 1970) on."""
    files = _files(folder, since)
    if not files:
        return []
    length = PERIODS[period] * 1_000_000
    lags = ", ".join(f"({sql}) AS {hop}" for hop, sql in _parts().items())
    query = f"""
        WITH beats AS ({_beats(files)}),
             ways AS (SELECT *, {lags},
                        epoch_us(heartbeat_received_ts) // {length} * {length} AS began
                        FROM beats),
             hops AS (UNPIVOT ways ON {", ".join(HOPS)} INTO NAME hop VALUE seconds)
        SELECT began, remote_database, incoming_extract, incoming_routing_path, incoming_replicat, hop, count(*),
               quantile_disc(seconds, [0.5, 0.95, 0.99, 1.0])
          FROM hops GROUP BY ALL"""
    with _engine() as engine:
        rows = engine.execute(query, [since, remote, remote]).fetchall()
    found = [Spread(began, who, path_text(*way), hop, count, *ranks) for began, who, *way, hop, count, ranks in rows]
    return sorted(found, key=lambda each: (each.begin, each.remote, each.path, HOPS.index(each.hop)))


def read_arrivals(folder: Path, since: int, remote: str = "") -> list[Arrival]:
    """The heartbeats that came at a moment or later, in the order they came."""
    files = _files(folder, since)
    if not files:
        return []
    times = ", ".join(f"epoch_us({name})" for name in (*_TIMES, "heartbeat_received_ts"))
    query = (
        f"SELECT remote_database, incoming_extract, incoming_routing_path, incoming_replicat, {times}"
        f" FROM ({_beats(files)}) ORDER BY heartbeat_received_ts"
    )
    with _engine() as engine:
        rows = engine.execute(query, [since, remote, remote]).fetchall()
    return [Arrival(str(row[0]), path_text(*row[1:4]), row[8], parts_between(row[4:9])) for row in rows]


def _beats(files: Iterable[Path]) -> str:
    """Each heartbeat once, though it may have been applied, or gathered, again after a crash."""
    return (
        f"SELECT DISTINCT ON (remote_database, incoming_extract, incoming_routing_path, incoming_replicat,"
        f" incoming_heartbeat_ts) * FROM {_read(files)} WHERE heartbeat_received_ts >= make_timestamp(?)"
        " AND (? = '' OR lower(remote_database) = lower(?))"
    )


def _parts() -> dict[str, str]:
    """SQL of each hop's lag in seconds; a hop that is not there has none, and the next counts from the last time known."""
    sent, extract, routing, replicat = _TIMES
    received = "heartbeat_received_ts"
    steps = (
        (extract, [sent]),
        (routing, [extract, sent]),
        (replicat, [routing, extract, sent]),
        (received, [replicat, routing, extract, sent]),
    )
    found = {
        hop: f"(epoch_us({later}) - epoch_us(coalesce({', '.join(earlier)}))) / 1e6"
        for hop, (later, earlier) in zip(HOPS, steps, strict=False)
    }
    found["total"] = f"(epoch_us({received}) - epoch_us({sent})) / 1e6"
    return found


def _files(folder: Path, since: int) -> list[Path]:
    first = to_datetime(since).date().isoformat() if since > 0 else ""
    return [
        file for day in sorted(folder.glob("day=*")) if day.name[4:] >= first for file in sorted(day.glob("*.parquet"))
    ]


def _read(files: Iterable[Path]) -> str:
    return f"read_parquet([{', '.join(_literal(file) for file in files)}], union_by_name = true)"


def _literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _engine() -> Any:
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1})
