"""``mysql``: Extract and Replicat with MariaDB at both ends, compared with ``mariadb-binlog`` and MariaDB's own replica.

The columns are eleven of many types. Extract and ``mariadb-binlog --raw`` read the same log from the server. Replicat applies a
finished trail; the replica, with four threads, applies the same log, which it has received before.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from benches.figures import Figure, alternate, less_is_better, more_is_better, percentile
from benches.ground import Failed, ggshell, wait_until
from benches.memory import LIMIT_MB, peak
from ggshell.clock import SystemClock, pause
from ggshell.connectors.mysql.log import LastRead, MysqlLog, TableRules
from ggshell.connectors.mysql.session import connect
from ggshell.connectors.mysql.wire import ReplicationWire, StartAt
from ggshell.demo.mariadb_server import REPLICATION_SETTINGS, MariadbServer, find_binaries, find_program
from ggshell.demo.processes import end_processes
from ggshell.demo.servers import free_ports
from ggshell.home.checkpoint import GroupKind
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.home.process_file import read_process_file
from ggshell.pipeline.capture.cache import TransactionCache
from ggshell.pipeline.capture.stream import whole_runs
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader

IMAGES_A_SECOND = 250_000.0
VISIBLE_MS = 2.0
RATE = 200
_SETTINGS = {
    "loose-innodb-use-native-aio": "0",
    "slave-parallel-threads": "4",
    "log-slave-updates": "1",
    "gtid-strict-mode": "0",
}
"""The replica applies the same log again in each round, and writes a log of its own, as the target does."""
_TABLE = (
    "CREATE TABLE bench.rows (id bigint PRIMARY KEY, kind tinyint, amount decimal(12,2), ratio double, placed datetime(6),"
    " seen timestamp(6) NULL, day date, name varchar(40), note text, data varbinary(32), state enum('new','paid','sent'))"
)
_FILL = (
    "INSERT INTO bench.rows SELECT seq, seq % 100, seq * 1.25, seq / 7, '2026-01-01 10:00:00.5', '2026-01-01 10:00:00',"
    " '2026-01-01', CONCAT('customer ', seq), REPEAT('x', 64), UNHEX(MD5(seq)), 1 + seq % 3 FROM seq_{first}_to_{last}"
)


class _Ground:
    """A source, a target and a replica of the source, and a home."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "home")
        self.home.ensure()
        self.gtid_before: dict[str, str] = {}
        self.servers: dict[str, MariadbServer] = {}
        for number, name in enumerate(("north", "south", "replica"), 1):
            server = MariadbServer(root / name, root / f"s{number}", free_ports(1)[0], find_binaries())
            self.servers[name] = server
            server.initialize()
            server.start({**REPLICATION_SETTINGS, **_SETTINGS, "server-id": str(number)})
            self.execute(name, "CREATE DATABASE bench", _TABLE)
            CredentialStore(self.home).add(name, server.login("bench"), "")
        self.obey("DBLOGIN USERIDALIAS south", "ADD CHECKPOINTTABLE bench.checks")

    def execute(self, name: str, *statements: str) -> list[tuple[Any, ...]]:
        with closing(connect(self.servers[name].login())) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def obey(self, *statements: str) -> None:
        command = [ggshell(), "--home", str(self.home.root), "--auto-manager", "-c", "\n".join(statements)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if result.returncode:
            raise Failed(f"{statements} refused:\n{result.stdout}{result.stderr}")

    def parameters(self, group: str, *lines: str) -> None:
        self.home.parameters(group).write_text("\n".join([*lines, ""]))

    def fill(self, transactions: int, size: int) -> None:
        """Insert rows into the empty table."""
        with closing(connect(self.servers["north"].login("bench"))) as connection, connection.cursor() as cursor:
            cursor.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 2, GLOBAL sync_binlog = 0")
            for number in range(transactions):
                cursor.execute(_FILL.format(first=number * size + 1, last=(number + 1) * size))
            cursor.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1, GLOBAL sync_binlog = 1")

    def log_end(self, name: str = "north") -> tuple[str, int]:
        """The file and the position of the end of a server's log."""
        file, position, *_ = self.execute(name, "SHOW MASTER STATUS")[0]
        return str(file), int(position)

    def rows(self, name: str) -> int:
        return int(self.execute(name, "SELECT count(*) FROM bench.rows")[0][0])

    def rate_of(self, name: str, rows: int) -> float:
        """Rows by second from the first one that is visible until all are."""
        first = wait_until("the first row", lambda: self.rows(name), every=0.002)
        began = time.time()
        wait_until(f"{rows} rows", lambda: self.rows(name) == rows, every=0.01)
        if first == rows:
            raise Failed(f"{rows} rows are too few to measure a rate")
        return (rows - first) / (time.time() - began)

    def begin_extract(self, group: str, trail: str, place: tuple[str, int]) -> None:
        """Add an Extract that begins at a place of the source's log."""
        self.parameters(
            group, f"EXTRACT {group}", "USERIDALIAS north", f"EXTTRAIL ./dirdat/{trail}", "TABLE bench.rows;"
        )
        number = int(place[0].rpartition(".")[2])
        self.obey(
            "DBLOGIN USERIDALIAS north",
            f"ADD EXTRACT {group}, TRANLOG, LOGNUM {number} LOGPOS {place[1]}",
            f"ADD EXTTRAIL ./dirdat/{trail}, EXTRACT {group}, MEGABYTES 500",
        )

    def note_begin(self, group: str) -> None:
        """Note the GTID position before the rows of a group, where the replica begins."""
        self.gtid_before[group] = str(self.execute("north", "SELECT @@gtid_binlog_pos")[0][0])

    def replicate(self) -> None:
        """Let the replica follow the source by GTID."""
        port = self.servers["north"].port
        self.execute(
            "replica",
            f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'root',"
            " MASTER_USE_GTID = slave_pos",
        )

    def is_received(self) -> bool:
        """Whether the replica has the whole log."""
        with closing(connect(self.servers["replica"].login())) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW SLAVE STATUS")
            names = [each[0] for each in cursor.description or ()]
            row = dict(zip(names, cursor.fetchone() or (), strict=False))
        return (str(row.get("Master_Log_File")), int(row.get("Read_Master_Log_Pos") or 0)) == self.log_end()

    def visible(self, first: int, count: int) -> list[float]:
        """Commit a row at every beat, and ask the target until it is there; seconds each."""
        taken = list[float]()
        north, south = (connect(self.servers[name].login("bench")) for name in ("north", "south"))
        with closing(north), closing(south), north.cursor() as source, south.cursor() as target:
            due = time.perf_counter()
            for number in range(first + 1, first + count + 1):
                source.execute(_FILL.format(first=number, last=number))
                began = time.perf_counter()
                while not target.execute(f"SELECT 1 FROM bench.rows WHERE id = {number}"):
                    pass
                taken.append(time.perf_counter() - began)
                due = max(due + 1 / RATE, time.perf_counter() - 1 / RATE)
                pause(due - time.perf_counter())
        return taken[count // 10 :]

    def close(self) -> None:
        end_processes(self.home.root)
        for server in self.servers.values():
            server.kill()


def run(rounds: int, quick: bool) -> list[Figure]:
    rows = 50_000 if quick else 500_000
    with _ground() as place:
        begin = place.log_end()
        place.note_begin("load")
        place.fill(rows // 1000, 1000)
        figures = [_decoder(place, begin, rows, rounds), _extract(place, begin, rows, rounds)]
        place.begin_extract("load", "la", begin)
        figures.append(_replicat(place, "1,000-row transactions", rows, rounds, "load", "la"))
        place.execute("north", "TRUNCATE bench.rows")
        few = rows // 5
        place.note_begin("ones")
        place.begin_extract("ones", "oa", place.log_end())
        place.fill(few, 1)
        figures.append(_replicat(place, "one-row transactions", few, rounds, "ones", "oa"))
        figures.append(_latency(place, rounds, RATE * (3 if quick else 10)))
        return [*figures, *_memory(place, 100_000 if quick else 1_000_000)]


def _decoder(place: _Ground, begin: tuple[str, int], rows: int, rounds: int) -> Figure:
    """Images by processor second of one process that receives the log and encodes it for the trail."""

    def images(_: int) -> float:
        file, position = begin
        wire = ReplicationWire.open(place.servers["north"].login(), 77, StartAt(file, position), "bench")
        number = int(file.rpartition(".")[2])
        log = MysqlLog(
            wire, TableRules(lambda _: True), SystemClock(), 0, number << 32 | position, LastRead(), {}, lambda *_: None
        )
        cache, done, began = TransactionCache(1 << 30, place.home.root / "dirtmp"), 0, time.process_time()
        while done < rows:
            log.wait(1.0)
            runs = [run for item in log.feed(cache, 800) for run in whole_runs(item)]
            batch = log.encode(runs) if runs else None
            done += len(batch) if batch is not None else 0
        log.close()
        return rows / (time.process_time() - began)

    found = [images(number) for number in range(rounds)]
    return more_is_better("mysql", "log to rows of a trail", "images/CPU s", found, [IMAGES_A_SECOND], "the goal", 1.0)


def _extract(place: _Ground, begin: tuple[str, int], rows: int, rounds: int) -> Figure:
    """From the start of reading until the trail is durable; the peer is the server's own program, which discards its output."""
    end = place.log_end()

    def ours(number: int) -> float:
        group, trail = f"ext{number}", f"e{number}"
        place.begin_extract(group, trail, begin)
        place.obey(f"START EXTRACT {group}")
        mark = place.home.root / "dirdat" / f".{trail}.durable"
        header = place.home.root / "dirdat" / f"{trail}000000000"
        wait_until(f"{group} writes", header.exists, every=0.001)
        began = header.stat().st_mtime
        _settled(place, trail, rows)
        place.obey(f"STOP EXTRACT {group}")
        return rows / (mark.stat().st_mtime - began)

    def peer(_: int) -> float:
        program = find_program("mariadb-binlog", find_binaries())
        server = place.servers["north"]
        command = [
            *(str(program), "--no-defaults", "--read-from-remote-server", "--host=127.0.0.1", f"--port={server.port}"),
            *("--user=root", "--raw", f"--result-file={place.home.root}/dirtmp/peer-", f"--start-position={begin[1]}"),
            *(f"--stop-position={end[1]}", begin[0]),
        ]
        began = time.time()
        subprocess.run(command, check=True, capture_output=True)
        return rows / (time.time() - began)

    mine, other = alternate(rounds, ours, peer)
    return more_is_better(
        "mysql", "Extract, 1,000-row transactions", "rows/s", mine, other, "mariadb-binlog --raw", 0.5
    )


def _settled(place: _Ground, trail: str, rows: int) -> None:
    """Wait until a trail has all rows."""
    name = TrailName.parse(f"./dirdat/{trail}", place.home.root)
    reader, found = TrailReader(name), 0
    try:
        while found < rows:
            batch = reader.read()
            if batch is None:
                pause(0.02)
            else:
                found += len(batch)
    finally:
        reader.close()


def _replicat(place: _Ground, case: str, rows: int, rounds: int, group: str, trail: str) -> Figure:
    """The whole trail to an empty table, compared with the replica's SQL threads, which have received the log before."""
    place.obey(f"START EXTRACT {group}")
    _settled(place, trail, rows)
    place.obey(f"STOP EXTRACT {group}")
    map_line = "MAP bench.rows, TARGET bench.rows;"

    def ours(number: int) -> float:
        name = f"{trail}{number}"
        place.execute("south", "TRUNCATE bench.rows")
        place.parameters(name, f"REPLICAT {name}", "USERIDALIAS south", "APPLY_PARALLELISM 4", map_line)
        place.obey(
            "DBLOGIN USERIDALIAS south",
            f"ADD REPLICAT {name}, PARALLEL, EXTTRAIL ./dirdat/{trail}, CHECKPOINTTABLE bench.checks",
            f"START REPLICAT {name}",
        )
        rate = place.rate_of("south", rows)
        place.obey(f"STOP REPLICAT {name}")
        return rate

    def peer(_: int) -> float:
        place.execute("replica", "SET sql_log_bin = 0", "TRUNCATE bench.rows", "STOP SLAVE", "RESET SLAVE ALL")
        place.execute("replica", f"SET GLOBAL gtid_slave_pos = '{place.gtid_before[group]}'")
        place.replicate()
        place.execute("replica", "START SLAVE IO_THREAD")
        wait_until("the log is received", place.is_received)
        place.execute("replica", "START SLAVE SQL_THREAD")
        return place.rate_of("replica", rows)

    mine, other = alternate(rounds, ours, peer)
    return more_is_better("mysql", f"Replicat, {case}", "rows/s", mine, other, "MariaDB's replica", 1.0)


def _latency(place: _Ground, rounds: int, count: int) -> Figure:
    """From the return of a commit until the row is visible."""
    place.execute("north", "TRUNCATE bench.rows")
    place.execute("south", "TRUNCATE bench.rows")
    place.begin_extract("late", "ll", place.log_end())
    place.parameters("replate", "REPLICAT replate", "USERIDALIAS south", "MAP bench.rows, TARGET bench.rows;")
    place.obey(
        "DBLOGIN USERIDALIAS south",
        "ADD REPLICAT replate, EXTTRAIL ./dirdat/ll, CHECKPOINTTABLE bench.checks",
        "START EXTRACT late",
        "START REPLICAT replate",
    )
    found = [1000 * percentile(place.visible(number * count, count), 0.5) for number in range(rounds)]
    return less_is_better("mysql", "commit to visible, p50", "ms", found, [VISIBLE_MS], "the goal", 1.0)


def _memory(place: _Ground, rows: int) -> Iterator[Figure]:
    """The peaks of Extract and Replicat of ``_latency`` after one large transaction."""
    place.execute("north", "USE bench", _FILL.format(first=10_000_001, last=10_000_000 + rows))
    last = f"SELECT 1 FROM bench.rows WHERE id = {10_000_000 + rows}"
    wait_until("the last row", lambda: place.execute("south", last))
    for name, kind, group in (("Extract", GroupKind.EXTRACT, "LATE"), ("Replicat", GroupKind.REPLICAT, "REPLATE")):
        entry = read_process_file(place.home.process(group, kind))
        if entry is None:
            raise Failed(f"{name} has ended")
        case = f"memory of {name}, {rows:,}-row transaction"
        yield less_is_better("mysql", case, "MB", [peak(entry.pid)], [LIMIT_MB], "the limit", 1.0)


@contextmanager
def _ground() -> Iterator[_Ground]:
    root = Path(tempfile.mkdtemp(prefix="ggshell-bench-"))
    root.chmod(0o755)
    place = _Ground(root)
    try:
        yield place
    finally:
        place.close()
        shutil.rmtree(root, ignore_errors=True)
