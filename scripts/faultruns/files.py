"""Files of a home are damaged, one at a time: everything arrives, or a message names a remedy that makes it arrive."""

from __future__ import annotations

import contextlib
import enum
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from benches.ground import Failed, wait_until

from faultruns import live_files, redo_files
from faultruns.home_files import DAMAGES, Case, Hands, Moment, Told, cases, clear, remedies
from faultruns.verdict import Verdict
from ggshell.cli.main import main
from ggshell.demo import load
from ggshell.demo.cli import store_aliases
from ggshell.demo.processes import end_processes
from ggshell.demo.servers import DemoServers, open_servers
from ggshell.home import checkpoint
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, read_process_file, state_of
from ggshell.trail.durable import MarkReader
from ggshell.trail.name import TrailName
from ggshell.types import Csn, parse_lsn

KINDS = {
    "classic": ("", ""),
    "parallel": ("PARALLEL, ", "APPLY_PARALLELISM 2\n"),
    "coordinated": ("COORDINATED MAXTHREADS 3, ", "MAP a.items, TARGET b.items, THREAD (2);\n"),
    "duckdb": ("", ""),
    "lake": ("SPARK, ", ""),
    "redo": ("", ""),
}
"""What ADD REPLICAT and the parameter file say for each kind of target."""
GROUPS = ("EXT1.pce", "PMP1.pce", "DP1.pcd", "REP1.pcr")
"""The chain, as the process files name it: Extract, pump, path and Replicat."""
_TYPES = {".pce": "EXTRACT", ".pcd": "DISTPATH", ".pcr": "REPLICAT"}
ARRIVAL_SECONDS = 40.0
REMEDIES_AT_MOST = 4
_TABLES = """
CREATE SCHEMA {schema} AUTHORIZATION ggadmin;
SET ROLE ggadmin;
CREATE TABLE {schema}.ledger (line bigint, note text);
CREATE TABLE {schema}.items (id int PRIMARY KEY, n bigint NOT NULL);
RESET ROLE;
"""


def missing() -> str:
    """Files are everywhere."""
    return ""


class Outcome(NamedTuple):
    """Of one case: whether it was refused (and what was followed), and what is missing or there twice at the end."""

    case: str
    remedies: tuple[str, ...]
    verdict: Verdict
    fault: str = ""

    @property
    def kind(self) -> str:
        """How it counts in the summary."""
        if self.fault or any(self.verdict):
            return "wrong"
        return "exact after a remedy" if self.remedies else "exact"


class Now(enum.Enum):
    """What a home shows after START."""

    ARRIVED = "everything is applied"
    REFUSED = "a group is down"
    WAITS = "every group runs, and rows are missing"


class FileGround:
    """A chain of Extract, pump, path and Replicat of one kind with everything that a home can hold, and its administrator."""

    def __init__(self, servers: DemoServers, kind: str) -> None:
        self.servers = servers
        self.root = servers.home
        self.home = Home(self.root)
        self.kind = kind
        self.line = 0
        self.slow = 4.0 if kind == "lake" else 1.0

    # --- the administrator

    def obey(self, *statements: str, must: bool = True) -> str:
        """Run statements as one batch; everything that was printed. Raises Failed when one is refused that must not be."""
        printed = io.StringIO()
        words = ["--home", str(self.root), "--continue-on-error", "-c", "\n".join(statements)]
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main(words)
        if must and code:
            raise Failed(f"{statements} refused:\n{printed.getvalue()}\n{self.reports()}")
        return printed.getvalue()

    def add_again(self, group: str) -> None:
        """The statements that added a group, for one whose checkpoint file is lost."""
        self.obey(*self._added(group, again=True))

    def _added(self, group: str, *, again: bool = False) -> list[str]:
        if group == "EXT1":
            place = "BEGIN NOW"
            if again:
                query = "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 'ggs_ext1'"
                place = f"LSN {self.north(query)[0][0]}"
            return [
                "DBLOGIN USERIDALIAS north",
                f"ADD EXTRACT ext1, TRANLOG, {place}",
                "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 2",
            ]
        if group == "PMP1":
            return [
                "ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea",
                "ADD EXTTRAIL ./dirdat/pa, EXTRACT pmp1, MEGABYTES 2",
            ]
        if group == "DP1":
            return ["ADD DISTPATH dp1, SOURCE ./dirdat/pa, TARGET ./dirdat/da"]
        how = KINDS[self.kind][0]
        end = "TARGET ./lake" if self.kind == "lake" else "CHECKPOINTTABLE b.checks"
        return [f"ADD REPLICAT rep1, {how}EXTTRAIL ./dirdat/da, {end}"]

    # --- both sides

    def north(self, *statements: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.servers.dsn("north"), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def work(self) -> Csn:
        """Three transactions of a line or two and an item each; a place in the log before the last of them."""
        before = 0
        for _ in range(3):
            ((text,),) = self.north("SELECT pg_current_wal_insert_lsn()::text")
            before = parse_lsn(text)
            self.line += 2
            self.north(
                f"INSERT INTO a.ledger VALUES ({self.line - 1}, 'a line'), ({self.line}, 'a line');"
                f" INSERT INTO a.items VALUES ({self.line % 7}, 1) ON CONFLICT (id) DO UPDATE SET n = a.items.n + 1"
            )
        return Csn(before)

    def compare(self) -> Verdict:
        """What the target lacks and what it has too often; it is read when Replicat stands still, if it must."""
        lines, items = self._target()
        source = Counter(line for (line,) in self.north("SELECT line FROM a.ledger"))
        steps = dict(self.north("SELECT id, n FROM a.items"))
        lost = sum(max(0, n - items.get(number, 0)) for number, n in steps.items())
        twice = sum(max(0, n - steps.get(number, 0)) for number, n in items.items())
        return Verdict((source - lines).total() + lost, (lines - source).total() + twice)

    def _target(self) -> tuple[Counter[int], dict[int, int]]:
        queries = ("SELECT line FROM b.ledger", "SELECT id, n FROM b.items")
        if self.kind in ("duckdb", "lake"):
            import duckdb

            self.obey("STOP REPLICAT rep1", must=False)
            self._ended("REP1.pcr")
            if self.kind == "lake":
                queries = self._lake_queries()
            file = ":memory:" if self.kind == "lake" else str(self.root / "south.duckdb")
            with duckdb.connect(file) as connection:
                lines, items = (connection.execute(query).fetchall() for query in queries)
        else:
            with psycopg.connect(self.servers.dsn("south")) as connection:
                lines, items = (connection.execute(query).fetchall() for query in queries)
        return Counter(int(line) for (line,) in lines), {int(number): int(n) for number, n in items}

    def _lake_queries(self) -> tuple[str, str]:
        """The log of the table without a key, and the present rows of the other, by the last commit."""
        lake = self.root / "lake"
        last = max((lake / "_ggshell").rglob("0*.json"))
        version = json.loads(last.read_text())["tables"]["a.items"]
        return (
            f"SELECT columns['line'] FROM read_parquet('{lake}/log/*/*/*/*.parquet', union_by_name=true)"
            " WHERE \"table\" = 'ledger'",
            f"SELECT id, n FROM read_parquet('{lake}/current/a.items/v={version:012d}/*.parquet')",
        )

    # --- the processes

    def trail_holds(self, prefix: str, csn: Csn) -> None:
        """Wait until a transaction after a place of the log is durable in a trail."""
        reader = MarkReader(TrailName(self.root / "dirdat", prefix))

        def there() -> bool:
            mark = reader.read()
            return mark is not None and mark.csn is not None and mark.csn > csn

        try:
            self.until(f"trail {prefix} holds what was written", there)
        finally:
            reader.close()

    def arrived(self, csn: Csn) -> bool:
        """Whether Replicat's checkpoint file says that a transaction after a place of the log is applied."""
        try:
            latest = checkpoint.load(self.root / "dirchk" / "REP1.cpr").latest_csn
        except Exception:  # noqa: BLE001 - it may be what was damaged
            return False
        return bool(latest) and Csn.parse(latest) > csn

    def down(self) -> list[str]:
        """The groups that do not run."""
        running = (ProcessState.RUNNING, ProcessState.STARTING)
        return [name for name in GROUPS if state_of(self.root / "dirpcs" / name)[0] not in running]

    def until(self, what: str, done: Any, seconds: float = ARRIVAL_SECONDS) -> None:
        try:
            wait_until(what, done, seconds=seconds * self.slow, every=0.05)
        except Failed as error:
            raise Failed(f"{error}\n{self.obey('INFO ALL', must=False)}\n{self.reports()}") from error

    def start(self, *, must: bool = False) -> str:
        """Start every process that is not running; the output of START. Raises Failed when one is refused that must not be."""
        found = [f"START {_typed(name)}" for name in self.down()]
        return self.obey(*found, must=must) if found else ""

    def end(self, name: str, *, killed: bool) -> None:
        """End a group: by STOP, or as a failing machine would."""
        path = self.root / "dirpcs" / name
        if killed:
            entry = read_process_file(path)
            if entry is not None:
                os.kill(entry.pid, signal.SIGKILL)
                self.until(f"{name} is dead", lambda: state_of(path)[0] is ProcessState.ABENDED)
        else:
            self.obey(f"STOP {_typed(name)}")
            self._ended(name)

    def _ended(self, name: str) -> None:
        """Wait for the end of a group that was stopped: STOP does not wait as long as a busy machine takes."""
        self.until(f"{name} has ended", lambda: name in self.down())

    def reports(self, since: float = 0.0) -> str:
        """The last lines of reports that were written since a moment."""
        return "\n".join(
            "\n".join([f"--- {path.name}", *path.read_text(errors="replace").splitlines()[-14:]])
            for path in sorted((self.root / "dirrpt").glob("*1.rpt"))
            if path.is_file() and path.stat().st_mtime >= since
        )

    # --- setting up

    def set_up(self) -> None:
        """Tables, wallet, parameter files and groups; everything runs after this."""
        self.obey("CREATE SUBDIRS")
        for name, schema in (("north", "a"), ("south", "b")):
            load.prepare_database(self.servers, name, ())
            with psycopg.connect(self.servers.dsn(name), autocommit=True) as connection:
                connection.execute(_TABLES.format(schema=schema))
                connection.execute("GRANT CREATE ON SCHEMA b TO ggadmin" if name == "south" else "SELECT 1")
        store_aliases(self.servers)
        if self.kind == "duckdb":
            self._duckdb()
        more = KINDS[self.kind][1]
        target = "MAP a.*, TARGET a.*;" if self.kind == "lake" else "MAP a.*, TARGET b.*;"
        login = "" if self.kind == "lake" else "USERIDALIAS south\nCHECKPOINTSECS 1\n"
        for group, text in (
            ("mgr", "PORT 7809\n"),
            ("ext1", "EXTRACT ext1\nUSERIDALIAS north\nENCRYPTTRAIL AES128\nEXTTRAIL ./dirdat/ea\nTABLE a.*;\n"),
            ("pmp1", "EXTRACT pmp1\nPASSTHRU\nEXTTRAIL ./dirdat/pa\nTABLE a.*;\n"),
            ("rep1", f"REPLICAT rep1\n{login}{more}{target}\n"),
        ):
            self.home.parameters(group).write_text(text)
        self.obey("CREATE WALLET", "ADD MASTERKEY", "START MANAGER")
        table = [] if self.kind == "lake" else ["DBLOGIN USERIDALIAS south", "ADD CHECKPOINTTABLE b.checks"]
        self.obey("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.*", "REGISTER EXTRACT ext1")
        self.obey(*self._added("EXT1"), *self._added("PMP1"), *self._added("DP1"), *table, *self._added("REP1"))

    def _duckdb(self) -> None:
        import duckdb

        file = self.root / "south.duckdb"
        with duckdb.connect(str(file)) as connection:
            connection.execute("CREATE SCHEMA b")
            connection.execute("CREATE TABLE b.ledger (line bigint, note text)")
            connection.execute("CREATE TABLE b.items (id int PRIMARY KEY, n bigint NOT NULL)")
        CredentialStore(self.home).add("south", f"duckdb://{file}", "", replace=True)

    # --- a case

    def prepare(self, killed: str, backup: Path) -> None:
        """Rows wait in the source and in both trails, each of which has a file that is done and one that is not; nothing but
        Manager runs. ``backup`` gets a copy of the home."""
        self.end("REP1.pcr", killed=killed == "REP1.pcr")
        self.trail_holds("da", self.work())
        self.end("DP1.pcd", killed=killed == "DP1.pcd")
        self.trail_holds("pa", self.work())
        self.obey("SEND EXTRACT pmp1 ROLLOVER")
        self.grow("pa", backup)
        self.end("PMP1.pce", killed=False)
        self.trail_holds("ea", self.work())
        self.obey("SEND EXTRACT ext1 ROLLOVER")
        self.grow("ea", backup)
        self.end("EXT1.pce", killed=killed == "EXT1.pce")
        self.work()
        self.back_up(backup)

    def back_up(self, backup: Path) -> None:
        """Copy the home; a file that a process only writes and renames may go meanwhile."""
        shutil.rmtree(backup, ignore_errors=True)
        ignored = shutil.ignore_patterns("demo", "*.sock", "spark*", "lake", "*.wake")
        shutil.copytree(self.root, backup, ignore=ignored, copy_function=_copy_what_stays)

    def grow(self, prefix: str, backup: Path) -> None:
        """Write to a trail's newest file, copy it and its mark, and write on: a copy that is older than the file."""
        self.trail_holds(prefix, self.work())
        earlier = _earlier(backup)
        earlier.mkdir(parents=True, exist_ok=True)
        newest = max((self.root / "dirdat").glob(f"{prefix}[0-9]*"))
        for path in (newest, self.root / "dirdat" / f".{prefix}.durable"):
            shutil.copyfile(path, earlier / path.name)
        self.trail_holds(prefix, self.work())

    def case(self, case: Case, older: Path, backup: Path, chance: random.Random) -> Outcome:
        """Damage one file, START, follow what messages say; the outcome."""
        if case.file.moment is Moment.STOPPED:
            self.prepare(case.file.killed, backup)
        else:
            live_files.prepare(self, case.file, backup)
        path = case.file.find(self.root)
        name = path.relative_to(self.root)
        if not path.is_file():
            raise Failed(f"{path} is not there to be damaged")
        grown = _earlier(backup) / name.name
        DAMAGES[case.damage](path, grown if grown.exists() else older / name, chance)
        if case.file.alone:
            clear(path.with_name(f"{path.name}.previous"))
        damaged = _content(path)
        live_files.go_on(self, case.file)
        found = self._followed(case, path, backup / name)
        if _content(path) == damaged and not found.fault:  # nobody needed it, or has written it since
            _put_back(path, backup / name)
        return found

    def _followed(self, case: Case, path: Path, good: Path) -> Outcome:
        """START, and again after each remedy that a message names, until everything has arrived or nothing helps."""
        last, followed, again = self.work(), list[str](), False
        restart = case.file.moment is Moment.WRITTEN
        for _ in range(REMEDIES_AT_MOST + 2 * restart + 1):
            began = time.time()
            text = self.start()
            now = self._now(last)
            if now is Now.ARRIVED and restart:  # what a process has open hides what a new one finds
                self.end_all()
                restart, last = False, self.work()
                continue
            if now is Now.ARRIVED:
                return Outcome(str(case), tuple(followed), self.compare())
            text += self.obey("INFO ALL", must=False) + self.reports(began)
            if now is Now.WAITS:
                return Outcome(str(case), tuple(followed), Verdict(0, 0), f"{now.value}:\n{text}")
            if self.arrived(last) and not self.down():
                continue
            remedy = self._follow(case, Told(text, path, good), followed)
            if remedy is None and followed and not again:
                again = True  # a group that was only starting has met the same damage: it is started again
                continue
            if remedy is None:
                return Outcome(str(case), tuple(followed), Verdict(0, 0), f"no remedy is named:\n{text}")
            followed.append(remedy)
        return Outcome(str(case), tuple(followed), Verdict(0, 0), f"no remedy helped: {followed}\n{text}")

    def end_all(self) -> None:
        """End every group; a path is none of ER."""
        self.obey("STOP ER *", "STOP DISTPATH dp1", must=False)
        self.until("every group has ended", lambda: len(self.down()) == len(GROUPS))

    def _now(self, last: Csn) -> Now:
        """Wait until everything has arrived or a group is down."""
        limit = time.monotonic() + ARRIVAL_SECONDS * self.slow

        def settled() -> bool:
            return bool(self.down()) or self.arrived(last) or time.monotonic() > limit

        wait_until("an outcome", settled, seconds=ARRIVAL_SECONDS * self.slow + 5, every=0.05)
        if self.down():
            return Now.REFUSED
        return Now.ARRIVED if self.arrived(last) else Now.WAITS

    def _follow(self, case: Case, told: Told, followed: list[str]) -> str | None:
        """Do what the first message says that names the file; where the copy that was restored is too old, HELP RECOVERY."""
        for found, follow in remedies(told):
            if case.file.moment is Moment.WRITTEN and found[0] in followed and "HELP RECOVERY" in told.text:
                live_files.make_again(self, case.file)
                return "HELP RECOVERY"
            follow(told, Hands(self.obey, self.add_again), found)
            return found[0]
        return None

    def mend(self, case: Case, backup: Path) -> None:
        """After a case that failed: put everything back, so that the next can be tried. Raises Failed where that fails."""
        path = case.file.find(backup)
        _put_back(self.root / path.relative_to(backup), path)
        self.start()
        last = self.work()
        self.until(f"rows arrive after {case} is put right", lambda: self.arrived(last))


def run(kind: str, rounds: int, seed: int, named: str = "") -> tuple[int, int, Verdict]:
    """So many cases of the table, chosen by the seed (all of them where there are fewer) among those whose name has a text:
    their number, that of the transactions, and what was lost or came twice.

    Raises Failed naming the cases that were neither exact nor refused with a remedy that helps.
    """
    if kind == "redo":
        return redo_files.run(rounds, seed)
    chance = random.Random(f"files {kind} {seed}")
    chosen = [each for each in cases() if named in str(each)]
    chance.shuffle(chosen)
    chosen = chosen[:rounds]
    lost = twice = 0
    faults: list[str] = []
    kinds: Counter[str] = Counter()
    with _ground(kind) as (ground, older, backup):
        for case in chosen:
            began = time.monotonic()
            found = ground.case(case, older, backup, chance)
            lost, twice = lost + found.verdict.lost, twice + found.verdict.twice
            kinds[found.kind] += 1
            sys.stderr.write(
                f"{kind}: {case}: {time.monotonic() - began:.1f} s, {found.verdict.lost} lost, {found.verdict.twice} twice"
                f"{''.join(f', followed: {each}' for each in found.remedies)}{' FAULT' if found.fault else ''}\n"
            )
            if found.fault or any(found.verdict):
                faults.append(str(case))
                sys.stderr.write(f"{found.fault or found.verdict}\n{ground.reports()}\n")
                ground.mend(case, backup)
            ground.start(must=True)
            shutil.rmtree(older, ignore_errors=True)
            backup.rename(older)
    sys.stderr.write(f"{kind}: {len(chosen)} cases: {', '.join(f'{n} {name}' for name, n in sorted(kinds.items()))}\n")
    if faults and not lost and not twice:
        raise Failed(f"neither exact nor refused with a remedy that helps: {'; '.join(faults)}")
    return len(chosen), ground.line // 2, Verdict(lost, twice)


def _typed(name: str) -> str:
    """A group as commands name it, by the name of its process file."""
    return f"{_TYPES[Path(name).suffix]} {Path(name).stem.lower()}"


def _earlier(backup: Path) -> Path:
    """Where copies of the newest trail files and marks are kept that are a little older than the backup."""
    return backup.with_name("earlier")


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _copy_what_stays(source: str, target: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)


def _put_back(path: Path, kept: Path) -> None:
    clear(path)
    shutil.copyfile(kept, path)


@contextlib.contextmanager
def _ground(kind: str) -> Iterator[tuple[FileGround, Path, Path]]:
    folder = Path(tempfile.mkdtemp(prefix="ggshell-files-"))
    folder.chmod(0o755)
    home = folder / "home"
    home.mkdir(mode=0o755)
    servers = open_servers(home)
    ground = FileGround(servers, kind)
    try:
        servers.start()
        ground.set_up()
        ground.start()
        last = ground.work()
        ground.until("the first rows arrive", lambda: ground.arrived(last))
        ground.prepare("", folder / "older")
        ground.start()
        last = ground.work()
        ground.until("the next rows arrive", lambda: ground.arrived(last))
        yield ground, folder / "older", folder / "backup"
    finally:
        end_processes(home)
        servers.remove()
        shutil.rmtree(folder, ignore_errors=True)
