"""Every file, folder and socket of a full run is in the home and has the permissions of the rule.

The run begins with umask 0 and with empty folders for TMPDIR, HOME and XDG_*; its processes are known by that TMPDIR.
"""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pipelines import REP1, Pipeline
from processes import until

from ggshell import sockets
from ggshell.connectors.duckdb import session as duckdb
from ggshell.demo.redo_writer import RedoWriter
from ggshell.files import close_to_others

SECRET_FOLDERS = ("dircrd", "dirwlt", "dirpcs")
SHARED = (Path("/", "tmp"), Path("/", "dev", "shm"), Path("/", "var", "tmp"))
EVERY_GROUP = ("ext1", "redo1", "pump1", "dp1", "rep1", "rep2", "rep3")
SOURCES = "EXTRACT ext1\nUSERIDALIAS north\nENCRYPTTRAIL AES192\nEXTTRAIL ./dirdat/ea\nTABLE a.*;\n"
REDO = "EXTRACT redo1\nSOURCEDB redo://{}\nCACHEMGR CACHESIZE 1K\nBR BRINTERVAL 20M\nCHECKPOINTSECS 1\nEXTTRAIL ./dirdat/ra\n"
REPLICAT = "REPLICAT {}\nUSERIDALIAS {}\n{}MAP a.*, TARGET {}.*;\n"
MINUTE = 60_000_000
BY_USERS = ("repair.sql", "today.txt", "lag.html", "south.duckdb")
"""Files that this run requests outside the folders of the home."""


class Outside(NamedTuple):
    """Folders that a run must not change: empty ones of its own, and the state of the shared ones."""

    root: Path
    shared: dict[Path, set[str]]

    def created(self) -> list[Path]:
        return list(self.root.glob("*/*"))

    def processes(self) -> list[int]:
        """Processes of the run, including those that are no longer registered."""
        mark = f"TMPDIR={self.root / 'tmpdir'}".encode()
        return [
            int(each.name) for each in Path("/proc").glob("[0-9]*") if mark in content(each / "environ").split(b"\0")
        ]


def files_of(home: Path) -> list[str]:
    """The files of a home, by their relative paths."""
    return sorted(str(each.relative_to(home)) for each in home.rglob("*") if not each.is_dir())


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def content(path: Path) -> bytes:
    """The content of a file of a process; empty if the process has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def open_for_writing(process: int) -> Iterator[Path]:
    """Named files and sockets that a process has open for writing or shares as memory."""
    folder = Path(f"/proc/{process}")
    sockets = {line.split()[6]: line.split()[7] for line in bound(folder)}
    for each in (folder / "fd").iterdir():
        flags = next(
            line.split()[1] for line in (folder / "fdinfo" / each.name).read_text().splitlines() if "flags" in line
        )
        target = str(each.readlink())
        if target.startswith("/") and int(flags, 8) & os.O_ACCMODE:
            yield Path(target.removesuffix(" (deleted)"))
        elif target.startswith("socket:[") and target[8:-1] in sockets:
            yield Path(sockets[target[8:-1]])
    for words in (line.split(maxsplit=5) for line in content(folder / "maps").decode().splitlines()):
        if len(words) == 6 and words[1][1] == "w" and words[1][3] == "s":
            yield Path(words[5].removesuffix(" (deleted)"))


def bound(folder: Path) -> list[str]:
    return [line for line in content(folder / "net" / "unix").decode().splitlines()[1:] if len(line.split()) == 8]


def is_in(home: Path, path: Path) -> bool:
    """Whether a file or socket is in the home; a socket with a long path is bound through a descriptor of its folder."""
    if path.is_relative_to("/proc/self/fd"):
        return any(stat.S_ISSOCK(each.lstat().st_mode) for each in home.rglob(path.name))
    return path.is_relative_to(home) or path == Path(os.devnull)


def wrong_modes(home: Path) -> list[str]:
    """Files of a home with a mode that the rule does not allow."""
    return [
        f"{stat.filemode(each.lstat().st_mode)} {each}" for each in [home, *home.rglob("*")] if breaks_rule(home, each)
    ]


def breaks_rule(home: Path, path: Path) -> bool:
    status = path.lstat()
    mode, kind = stat.S_IMODE(status.st_mode), stat.S_IFMT(status.st_mode)
    inner = path.relative_to(home).parts
    if status.st_uid != os.geteuid():
        return True
    if kind == stat.S_IFDIR:
        return bool(mode & ~(0o700 if inner and inner[0] in SECRET_FOLDERS else 0o750))
    if kind == stat.S_IFREG:
        secret = inner[0] in ("dircrd", "dirwlt") and status.st_size > 0  # lock files are empty
        return bool(mode & ~(0o600 if secret else 0o640))
    return bool(mode & ~0o600) or bool(stat.S_IMODE(path.parent.lstat().st_mode) & 0o077)


@pytest.fixture
def kind_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """The row of ``scripts/faults files`` for a file, or the reason why it has none."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "scripts"))
    from faultruns.home_files import kind_of

    found: Callable[[str], str] = kind_of
    return found


@pytest.fixture
def umask() -> Iterator[None]:
    """Start the run with umask 0."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def outside(real_starts: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outside:
    root = tmp_path / "outside"
    for name in ("tmpdir", "home", "state", "cache", "config", "data", "runtime"):
        (root / name).mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(root / "tmpdir"))
    monkeypatch.setenv("HOME", str(root / "home"))
    for name in ("state", "cache", "config", "data"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(root / name))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(root / "runtime"))
    return Outside(root, {each: names(each) for each in SHARED if each.is_dir()})


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str, outside: Outside, umask: None) -> Iterator[Pipeline]:
    root = tmp_path / "home"
    command = [sys.executable, "-m", "ggshell.cli.main", "--home", str(root)]
    subprocess.run([*command, "-c", "CREATE SUBDIRS\nCREATE WALLET\nADD MASTERKEY"], check=True, capture_output=True)
    pipeline = Pipeline(root, north, south)
    yield pipeline
    pipeline.close()


def write_files(pipeline: Pipeline, redo: Path) -> None:
    """Write the parameter files, and a DuckDB file with a table."""
    os.umask(0o027)
    pipeline.home.globals.write_text("GGSCHEMA ggadmin\n")
    pipeline.write("ext1", SOURCES)
    pipeline.write("redo1", REDO.format(redo) + "TABLE shop.items, KEYCOLS (id);\n")
    pipeline.write("pump1", "EXTRACT pump1\nRMTTRAIL ./dirdat/pa\nTABLE a.*;\n")
    pipeline.write("rep1", REPLICAT.format("rep1", "south", "LAGARCHIVE\n", "b"))
    pipeline.write("rep2", REPLICAT.format("rep2", "south", "APPLY_PARALLELISM 2\n", "c"))
    pipeline.write("rep3", REPLICAT.format("rep3", "duck", "", "b"))
    file = pipeline.home.root / "south.duckdb"
    connection = duckdb.connect(duckdb.login_of(file))
    for statement in ("CREATE SCHEMA b", "CREATE TABLE b.items (id int PRIMARY KEY, name text, price numeric)"):
        duckdb.execute(connection, statement)
    connection.close()
    for each in pipeline.home.root.glob("dirprm/*"):
        each.chmod(0o640)
    os.umask(0)


def add_everything(pipeline: Pipeline, redo: Path) -> None:
    pipeline.in_north("CREATE SCHEMA ggadmin")
    pipeline.in_south("CREATE SCHEMA ggadmin", "CREATE SCHEMA c", "CREATE TABLE c.items (LIKE b.items INCLUDING ALL)")
    pipeline.run(
        f"ALTER CREDENTIALSTORE ADD USER {duckdb.login_of(pipeline.home.root / 'south.duckdb')} PASSWORD none ALIAS duck",
        "DBLOGIN USERIDALIAS south",
        "ADD HEARTBEATTABLE, FREQUENCY 0",
        "DBLOGIN USERIDALIAS north",
        "ADD HEARTBEATTABLE, FREQUENCY 0",
    )
    pipeline.add()
    pipeline.run(
        "ADD EXTRACT pump1, EXTTRAILSOURCE ./dirdat/ea",
        "ADD RMTTRAIL ./dirdat/pa, EXTRACT pump1",
        "ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET ./dirdat/da",
        f"DBLOGIN SOURCEDB redo://{redo}",
        "ADD EXTRACT redo1, TRANLOG, SCN 1",
        "ADD EXTTRAIL ./dirdat/ra, EXTRACT redo1",
        "DBLOGIN USERIDALIAS south",
        "ADD REPLICAT rep2, PARALLEL, EXTTRAIL ./dirdat/pa, CHECKPOINTTABLE b.checks",
        "DBLOGIN USERIDALIAS duck",
        "ADD CHECKPOINTTABLE b.checks",
        "ADD REPLICAT rep3, EXTTRAIL ./dirdat/da, CHECKPOINTTABLE b.checks",
    )


def write_redo(writer: RedoWriter) -> None:
    """An hour of redo with an open transaction that exceeds the memory limit and is old enough to be saved."""
    still = writer.begin()
    for number in range(200):
        writer.insert(still, "ITEMS", {"ID": f"open{number}", "NAME": "x" * 200})
    for minute in range(70):
        writer.time += MINUTE
        xid = writer.begin()
        writer.insert(xid, "ITEMS", {"ID": str(minute), "NAME": "x"})
        writer.commit(xid)
    writer.flush()


def ask(pipeline: Pipeline) -> None:
    """Run every query, and the commands that write a file for it."""
    trail = pipeline.home.root / "dirdat" / "pa000000000"
    pipeline.in_south("UPDATE b.items SET name = 'spoiled' WHERE id = 1")
    compare = "COMPARE north TO south, TABLE a.items, INTO b.items, LAG 0 SEC, REPAIR ./repair.sql"
    assert "differ" in pipeline.run(compare, fails=True)
    pipeline.run(
        "SPOOL today.txt",
        "INFO ALL",
        *(f"STATS {group}" for group in EVERY_GROUP),
        "SEND ext1 REPORT",
        "TRAIL COUNT FROM ./dirdat/pa",
        "TRAIL SQL 'select op, count(*) from trail group by op' FROM ./dirdat/ea, ./dirdat/ra",
        "SPOOL OFF",
        "LAG REPORT TO ./lag.html, FROM south",
    )
    command = [sys.executable, "-m", "ggshell.cli.main", "logdump", "-c", "n", "-c", "count", str(trail)]
    subprocess.run(command, check=True, capture_output=True, cwd=pipeline.home.root)


def test_a_full_run_creates_files_only_in_the_home_and_with_allowed_modes(
    pipeline: Pipeline, outside: Outside, tmp_path: Path, kind_of: Callable[[str], str]
) -> None:
    redo, home = tmp_path / "redo", pipeline.home.root
    writer = RedoWriter(redo)
    write_files(pipeline, redo)
    add_everything(pipeline, redo)
    write_redo(writer)
    pipeline.start(*EVERY_GROUP)
    pipeline.in_north(
        "INSERT INTO a.items SELECT n, 'x', n FROM generate_series(1, 500) n", "CALL ggadmin.gg_update_hb_tab()"
    )
    pipeline.wait_for_rows(500)
    until(
        "the parallel Replicat has applied the rows",
        lambda: pipeline.in_south("SELECT count(*) FROM c.items") == [(500,)],
    )
    until("a heartbeat arrives", lambda: bool(pipeline.in_south("SELECT 1 FROM ggadmin.gg_heartbeat_history")))
    until("an open transaction is saved", lambda: any(each.is_file() for each in home.glob("BR/**/*")))
    ask(pipeline)
    running = outside.processes()
    assert len(running) >= len(EVERY_GROUP) + 1
    held = {path for process in running for path in open_for_writing(process)}
    assert [each for each in held if not is_in(home, each)] == []
    assert any(each.parent.name == "dirtmp" for each in held), "nothing was spilled"
    assert any(stat.S_ISSOCK(each.lstat().st_mode) for each in home.rglob("*"))
    assert wrong_modes(home) == []
    pipeline.run(*(f"STOP {group}" for group in EVERY_GROUP))
    until("Replicat has stopped", lambda: not pipeline.is_running(REP1))
    until("the archive is written", lambda: any(home.glob("dirlag/*/*")))
    assert wrong_modes(home) == []
    assert outside.created() == [outside.root / "cache" / "ggshell"]  # compiled syntax lines
    for folder, before in outside.shared.items():
        new = names(folder) - before
        assert [name for name in new if any(str(process) in name.split("-") for process in running)] == []
    assert [name for name in files_of(home) if name not in BY_USERS and not kind_of(name)] == [], "kinds without a row"
    made = {each.relative_to(home).parts[0] for each in home.rglob("*")}
    assert {"repair.sql", "today.txt", "lag.html", "south.duckdb", "dirlag", "BR", "ggserr.log"} <= made
    writer.close()


@pytest.mark.parametrize(("before", "after"), [(0, 0o027), (0o022, 0o027), (0o077, 0o077), (0o002, 0o027)])
def test_the_rule_removes_permissions_and_never_adds_any(tmp_path: Path, before: int, after: int) -> None:
    previous = os.umask(before)
    try:
        close_to_others()
        (tmp_path / "file").touch()
        (tmp_path / "folder").mkdir()
        assert os.umask(before) == after
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~after
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o777 & ~after


def test_binding_a_socket_does_not_change_the_mode_of_files_of_other_threads(tmp_path: Path) -> None:
    """The thread creates files as fast as it can; a changed umask would appear in the mode of one of them."""
    bound, begun = threading.Event(), threading.Event()
    modes: list[int] = []

    def create() -> None:
        while not bound.is_set():
            path = tmp_path / f"file{len(modes)}"
            path.touch()
            modes.append(stat.S_IMODE(path.stat().st_mode))
            begun.set()

    previous = os.umask(0o027)
    thread = threading.Thread(target=create)
    thread.start()
    try:
        begun.wait()
        for number in range(300):
            with socket.socket(socket.AF_UNIX) as listener:
                sockets.bind(listener, tmp_path / f"s{number}")
                assert stat.S_IMODE((tmp_path / f"s{number}").lstat().st_mode) == 0o600
    finally:
        bound.set()
        thread.join()
        os.umask(previous)
    assert set(modes) == {0o640}


@pytest.mark.parametrize("mask", [0, 0o022, 0o077, 0o177])
def test_a_socket_belongs_to_its_owner_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    long = tmp_path / ("long" * 40)
    long.mkdir()
    previous = os.umask(mask)
    try:
        for path in (tmp_path / "short", long / "socket"):
            with socket.socket(socket.AF_UNIX) as listener:
                sockets.bind(listener, path)
                assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        assert os.umask(mask) == mask
    finally:
        os.umask(previous)
