"""The lag archive: every heartbeat that a Replicat applied, as Parquet files in one folder per day, and queries on it.

A file is written under a temporary name and then renamed, so a reader sees all of it or nothing. After the end of a day
its files are merged into one per group. A crash between the two steps of a merge leaves duplicate rows, which every
query counts once.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.clock import Clock, to_datetime
from ggshell.durations import PERIODS
from ggshell.errors import DiskError
from ggshell.home.home import Home
from ggshell.monitoring.heartbeat_lag import parts_between, path_text
from ggshell.monitoring.spreads import HOPS, Arrival, Spread
from ggshell.pipeline.heartbeat.names import HISTORY_COLUMNS
from ggshell.pipeline.heartbeat.row import Beat
from ggshell.types import text_literal

if TYPE_CHECKING:
    import duckdb

_PLACES = range(2, 21)


class ArchiveRow(NamedTuple):
    """A heartbeat and the time when it was received, in microseconds since 1970."""

    beat: Beat
    received: int

    @property
    def day(self) -> str:
        """The day (UTC) that names the folder of this row."""
        return to_datetime(self.received).date().isoformat()

    @property
    def values(self) -> tuple[str | int | None, ...]:
        """The values in the order of HISTORY_COLUMNS; times in microseconds since 1970."""
        return (self.beat.local_database, self.received, *(self.beat[place] for place in _PLACES))


_COLUMNS = ", ".join(f"{name} {'TIMESTAMP' if name.endswith('_ts') else 'VARCHAR'}" for name in HISTORY_COLUMNS)
_PARTIAL = ".partial"
_BEAT = ("remote_database", "incoming_extract", "incoming_routing_path", "incoming_replicat", "incoming_heartbeat_ts")
"""The names of a path, and the time of birth."""
_TIMES = ("incoming_heartbeat_ts", "incoming_extract_ts", "incoming_routing_ts", "incoming_replicat_ts")


def write(folder: Path, group: str, rows: Sequence[ArchiveRow]) -> list[Path]:
    """Add rows to the archive, in a new file for each day (UTC) on which they arrived. Raises DiskError."""
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
        marks = ", ".join(
            "make_timestamp(unnest(?::BIGINT[]))" if name.endswith("_ts") else "unnest(?::VARCHAR[])"
            for name in HISTORY_COLUMNS
        )
        columns = [list(values) for values in zip(*(row.values for row in rows), strict=True)]
        engine.execute(f"INSERT INTO beats SELECT {marks}", columns)  # one statement, as each needs 0.5 ms
        _copy(engine, "SELECT * FROM beats ORDER BY heartbeat_received_ts", path)


def _copy(engine: duckdb.DuckDBPyConnection, query: str, path: Path) -> None:
    import duckdb

    partial = path.with_suffix(_PARTIAL)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        engine.execute(f"COPY ({query}) TO {text_literal(str(partial))} (FORMAT parquet, COMPRESSION zstd)")
        partial.replace(path)
    except (OSError, duckdb.IOException) as error:
        partial.unlink(missing_ok=True)
        raise DiskError(f"cannot write the lag archive {path}: {error}") from error


def gather(folder: Path, group: str, today: str) -> list[Path]:
    """Merge a group's files of each day before today into one. Return the new files. Raises DiskError."""
    made = []
    for day in sorted(folder.glob("day=*")):
        files = sorted(day.glob(f"{group}-*.parquet"))
        if day.name.removeprefix("day=") >= today or len(files) < 2:
            continue
        whole = files[0].with_name(f"{group}-all-{files[-1].stem.rpartition('-')[2]}.parquet")
        with _engine() as engine:
            query = f"SELECT DISTINCT * FROM {_read(files)} ORDER BY heartbeat_received_ts"
            with _readable(engine, files):
                _copy(engine, query, whole)
        for file in files:
            if file != whole:
                file.unlink(missing_ok=True)
        made.append(whole)
    return made


def spreads(folder: Path, period: str, since: int, remote: str = "") -> list[Spread]:
    """Percentiles of each hop by period, path and remote database, from a time on (microseconds since 1970)."""
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
    with _engine() as engine, _readable(engine, files):
        rows = engine.execute(query, [since, remote, remote]).fetchall()
    found = [Spread(began, who, path_text(*way), hop, count, *ranks) for began, who, *way, hop, count, ranks in rows]
    return sorted(found, key=lambda each: (each.begin, each.remote, each.path, HOPS.index(each.hop)))


def read_arrivals(folder: Path, since: int, remote: str = "") -> list[Arrival]:
    """The heartbeats that arrived at a time or later, in order of arrival."""
    files = _files(folder, since)
    if not files:
        return []
    times = ", ".join(f"epoch_us({name})" for name in (*_TIMES, "heartbeat_received_ts"))
    query = (
        f"SELECT remote_database, incoming_extract, incoming_routing_path, incoming_replicat, {times}"
        f" FROM ({_beats(files)}) ORDER BY heartbeat_received_ts"
    )
    with _engine() as engine, _readable(engine, files):
        rows = engine.execute(query, [since, remote, remote]).fetchall()
    return [Arrival(str(row[0]), path_text(*row[1:4]), row[8], parts_between(row[4:9])) for row in rows]


def newest(folder: Path, since: int) -> dict[str, int]:
    """Return when each group received its last heartbeat after a time (both in microseconds since 1970).

    Reads only the last file of each group on its last day. Raises DiskError.
    """
    last = {file.stem.partition("-")[0]: file for file in _files(folder, since)}
    found = {}
    with _engine() as engine:
        for group, file in last.items():
            with _readable(engine, [file]):
                row = engine.execute(f"SELECT max(epoch_us(heartbeat_received_ts)) FROM {_read([file])}").fetchone()
            if row and row[0] is not None:
                found[group] = int(row[0])
    return found


@contextlib.contextmanager
def _readable(engine: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> Iterator[None]:
    """Raise DiskError naming the file of the archive that a query could not read."""
    import duckdb

    try:
        yield
    except (duckdb.Error, DiskError) as error:
        for file in files:
            try:
                engine.execute(f"SELECT count(COLUMNS(*)) FROM {_read([file])}").fetchall()
            except duckdb.Error as damage:
                first = str(damage).splitlines()[0]
                raise DiskError(
                    f"lag archive file {file} cannot be read: {first}",
                    hint="restore it from a backup, or remove it: lag reports then lack its heartbeats",
                ) from error
        if isinstance(error, DiskError):
            raise
        first = str(error).splitlines()[0]
        raise DiskError(f"the lag archive {files[0].parents[1]} cannot be read: {first}") from error


def _beats(files: Iterable[Path]) -> str:
    """SQL that returns each heartbeat once, as it first arrived, even if a crash caused it to be applied or merged twice."""
    return (
        f"SELECT * FROM (SELECT DISTINCT ON ({', '.join(_BEAT)}) * FROM {_read(files)}"
        f" ORDER BY {', '.join(_BEAT)}, heartbeat_received_ts)"
        " WHERE heartbeat_received_ts >= make_timestamp(?) AND (? = '' OR lower(remote_database) = lower(?))"
    )


def _parts() -> dict[str, str]:
    """SQL for each hop's lag in seconds.

    A hop without a time has no lag, and the next hop counts from the last known time.
    """
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
    return f"read_parquet([{', '.join(text_literal(str(file)) for file in files)}], union_by_name = true)"


def _engine() -> Any:
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1})


WRITE_SECONDS = 60.0

MOST_ROWS = 1000


def lag_folder(home: Home) -> Path:
    """Return the folder of a home's lag archive."""
    return home.root / "dirlag"


class LagArchive:
    """Collects one group's heartbeats. If the process is killed, only unwritten rows of the archive are lost."""

    def __init__(self, folder: Path, group: str, clock: Clock) -> None:
        self._folder = folder
        self._group = group
        self._clock = clock
        self._rows: list[ArchiveRow] = []
        self._first = 0.0
        self._day = ""

    def add(self, beat: Beat, received: int) -> None:
        """Add a committed heartbeat."""
        if not self._rows:
            self._first = self._clock.steady()
        self._rows.append(ArchiveRow(beat, received))

    def due(self) -> bool:
        """Whether it is time to write."""
        full = len(self._rows) >= MOST_ROWS
        return full or (bool(self._rows) and self._clock.steady() >= self._first + WRITE_SECONDS)

    def write(self) -> None:
        """Write the collected rows, and merge the files of past days. Raises DiskError."""
        rows, self._rows = self._rows, []
        if not rows:
            return
        write(self._folder, self._group, rows)
        today = to_datetime(self._clock.now()).date().isoformat()
        if today != self._day:
            self._day = today
            gather(self._folder, self._group, today)
