"""The chain that is spoilt: Extract, pump, path and a Replicat of one kind, with Manager, between two servers of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benches.ground import Failed, wait_until

from faultruns.proxy import Proxy
from faultruns.sides import MariadbSide, PostgresSide, Side
from ggshell.demo.processes import end_processes
from ggshell.demo.servers import DemoServers, open_servers
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, state_of

_MARIADB = "mariadb"
COMMAND_LINE = [sys.executable, "-P", "-m", "ggshell.cli.main"]
"""What the console script calls."""


class Kind(NamedTuple):
    """A kind of chain: what ADD REPLICAT and the parameter file say, and which databases are at its ends."""

    added: str = ""
    parameters: str = ""
    maps: str = ""
    source: str = "postgres"
    target: str = "postgres"


KINDS = {
    "classic": Kind(),
    "parallel": Kind("PARALLEL, ", "APPLY_PARALLELISM 4\n"),
    "coordinated": Kind(
        "COORDINATED MAXTHREADS 4, ",
        "",
        "MAP a.counters, TARGET b.counters, THREADRANGE (2-3);\nMAP a.ledger, TARGET b.ledger, THREAD (4);\n",
    ),
}
MARIADB_KINDS = {
    "to-mariadb": Kind(target=_MARIADB),
    "to-mariadb-parallel": Kind("PARALLEL, ", "APPLY_PARALLELISM 4\n", target=_MARIADB),
    "from-mariadb": Kind(source=_MARIADB),
}
"""Chains with a MariaDB server at one end. Faults that need PostgreSQL at both do not have them."""


class Member(NamedTuple):
    """A process of the chain: its file in dirpcs, and how it is started."""

    file: str
    start: str


MEMBERS = {
    "Manager": Member("MGR.pcm", "START MANAGER"),
    "Extract": Member("EXT1.pce", "START EXTRACT ext1"),
    "pump": Member("PMP1.pce", "START EXTRACT pmp1"),
    "path": Member("DP1.pcd", "START DISTPATH dp1"),
    "Replicat": Member("REP1.pcr", "START REPLICAT rep1"),
}


class Chain:
    """a.ledger and a.counters of the source become b.ledger and b.counters of the target."""

    def __init__(self, servers: DemoServers, kind: str) -> None:
        self.servers = servers
        self.home = servers.home
        self.kind = kind
        self.how = {**KINDS, **MARIADB_KINDS}[kind]
        self.sides: dict[str, Side] = {
            alias: MariadbSide(self.home, schema) if database == _MARIADB else PostgresSide(servers, alias, schema)
            for alias, schema, database in (("north", "a", self.how.source), ("south", "b", self.how.target))
        }
        """The databases by the alias of their login."""
        self.ends = ExitStack()
        """What a fault has to put away behind itself."""
        self.proxies: dict[str, Proxy] = {}
        self.notes: list[str] = []
        """What a fault has measured, a line each."""
        self._pause = threading.Event()

    def obey(self, *statements: str, must: bool = True) -> str:
        """Run statements as a script; the output. Raises Failed with it when one is refused that ``must`` not be."""
        command = [*COMMAND_LINE, "--home", str(self.home), "-c", "\n".join(statements)]
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        if must and result.returncode != 0:
            raise Failed(f"{statements} refused:\n{result.stdout}{result.stderr}\n{self.reports()}")
        return result.stdout

    def wait(self, seconds: float) -> None:
        """Let the load go on for a moment whose length the seed decides."""
        self._pause.wait(seconds)

    def path(self, member: str) -> Path:
        return self.home / "dirpcs" / MEMBERS[member].file

    def state(self, member: str) -> ProcessState:
        return state_of(self.path(member))[0]

    def start(self, *members: str) -> None:
        """Start what is named, Manager first, and wait until it runs."""
        wanted = [name for name in MEMBERS if name in members and self.state(name) is not ProcessState.RUNNING]
        if wanted:
            self.obey(*(MEMBERS[name].start for name in wanted))
        for name in wanted:
            self._runs(name)

    def _runs(self, member: str) -> None:
        self.until(f"{member} runs", lambda: self.state(member) is ProcessState.RUNNING, seconds=30)

    def until(self, what: str, done: Callable[[], Any], *, seconds: float) -> None:
        """Raises Failed with the reports when it does not come about in time."""
        try:
            wait_until(what, done, seconds=seconds, every=0.02)
        except Failed as error:
            raise Failed(f"{error}\n{self.reports()}") from error

    def require_alive(self) -> None:
        """Raises Failed, with its report, when a process has ended that was not killed."""
        dead = [name for name in MEMBERS if self.state(name) is not ProcessState.RUNNING]
        if dead:
            raise Failed(f"ended by themselves: {', '.join(dead)}\n{self.reports()}")

    def reports(self) -> str:
        """The last lines of every report."""
        return "\n".join(
            "\n".join([f"--- {path.name}", *path.read_text(errors="replace").splitlines()[-12:]])
            for path in sorted(self.home / "dirrpt" / f"{each.file.partition('.')[0]}.rpt" for each in MEMBERS.values())
            if path.exists()
        )

    def start_databases(self) -> None:
        """Start what does not run."""
        for side in self.sides.values():
            side.start()

    def set_up(self) -> None:
        """Tables on both sides, parameter files, groups; then everything runs."""
        store = CredentialStore(Home(self.home))
        for alias, side in self.sides.items():
            side.prepare()
            store.add(alias, *side.login())
        how, checks = self.how, self.sides["south"].checks
        self._parameters("mgr", "PORT 7809\n")
        self._parameters("ext1", "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nTABLE a.*;\n")
        self._parameters("pmp1", "EXTRACT pmp1\nPASSTHRU\nEXTTRAIL ./dirdat/pa\nTABLE a.*;\n")
        self._parameters(
            "rep1",
            f"REPLICAT rep1\nUSERIDALIAS south\nCHECKPOINTSECS 1\n{how.parameters}{how.maps}MAP a.*, TARGET b.*;\n",
        )
        self.obey(
            "DBLOGIN USERIDALIAS north",
            *(["ADD TRANDATA a.*", "REGISTER EXTRACT ext1"] if how.source != _MARIADB else []),
            "ADD EXTRACT ext1, TRANLOG, BEGIN NOW",
            "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 2",
            "ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea",
            "ADD EXTTRAIL ./dirdat/pa, EXTRACT pmp1, MEGABYTES 2",
            "ADD DISTPATH dp1 SOURCE trail://localhost:9002/services/v2/sources?trail=./dirdat/pa"
            " TARGET file://./dirdat/da, MEGABYTES 2",
            "DBLOGIN USERIDALIAS south",
            f"ADD CHECKPOINTTABLE {checks}",
            f"ADD REPLICAT rep1, {how.added}EXTTRAIL ./dirdat/da, CHECKPOINTTABLE {checks}",
        )

    def _parameters(self, group: str, text: str) -> None:
        folder = self.home / "dirprm"
        folder.mkdir(exist_ok=True)
        (folder / f"{group}.prm").write_text(text)


@contextmanager
def chain(kind: str, prepare: Callable[[Chain], None]) -> Iterator[Chain]:
    """A running chain on fresh servers; ``prepare`` is done before anything starts. Everything ends with the block."""
    home = Path(tempfile.mkdtemp(prefix="ggshell-faults-"))
    home.chmod(0o755)
    servers = open_servers(home)
    ground = Chain(servers, kind)
    try:
        ground.start_databases()
        ground.set_up()
        prepare(ground)
        ground.start(*MEMBERS)
        yield ground
    finally:
        end_processes(home)
        ground.ends.close()
        for side in ground.sides.values():
            side.remove()
        servers.remove()
        shutil.rmtree(home, ignore_errors=True)
