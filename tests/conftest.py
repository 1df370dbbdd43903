"""Session fixtures: PostgreSQL servers, a Spark session and an object store, started once for the whole run."""

from __future__ import annotations

import gc
import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import java_archive
import pytest
from copied_clusters import copy_clusters
from forked_processes import REAL, fork_from
from hypothesis import settings
from mariadb_servers import FAST, binaries_or_skip, new_schema, private_server
from object_stores import Bucket, StoreServer, new_bucket, serve_objects
from rest_catalog import CATALOG_LOGIN
from servers import new_database
from short_folders import short_folder

from ggshell.demo.mariadb_server import MariadbServer
from ggshell.demo.postgres_server import REPLICATION_SETTINGS, PostgresServer, find_binaries
from ggshell.errors import StateError
from ggshell.query.driver import find_java
from ggshell.query.session import WarmSession
from ggshell.query.settings import QuerySettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import LoadFileScheduling

pytest_plugins = ("marks",)

# The suite starts Python over a thousand times; with bytecode files each start takes two thirds of the time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Thousands of collected tests make the garbage collector expensive; running it less often saves 8 % of the CPU time.
gc.set_threshold(10_000, 20, 20)
# No test depends on the configuration file of the user who runs it.
os.environ["XDG_CONFIG_HOME"] = "/nonexistent"
# A service of a test checks each of its answers against the declaration of the route; a wrong one becomes an error 500.
os.environ["GGSHELL_CHECK_ANSWERS"] = "1"
# How long an example takes depends on what else the machine does.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
# Java's optimizing compiler pays off after minutes; here each Java runs for seconds only.
SHORT_LIVED_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
os.environ.setdefault("JDK_JAVA_OPTIONS", f"{SHORT_LIVED_JAVA} {java_archive.OPTIONS}")

fork_from()
copy_clusters()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rounds", type=int, default=0, help="rounds of each fault, and of the random tests of the language"
    )
    parser.addoption(
        "--regress",
        default="",
        help="a folder of SQL files for tests/ddl/test_regress_files.py, such as PostgreSQL's own",
    )


SLOWEST = (
    "connectors/lake/",
    "query/",
    "test_readme",
    "faults/",
    "scenarios/",
    "groups/",
    "demo/",
    "cli/",
    "pipeline/",
)
"""The folders with servers, processes and Spark: they run first, so that no worker is left with a slow file at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest first; ``scripts/test`` lets pytest-xdist keep this order."""

    @cache
    def place(path: Path) -> int:
        name = path.relative_to(Path(__file__).parent).as_posix()
        return next((number for number, start in enumerate(SLOWEST) if name.startswith(start)), len(SLOWEST))

    items.sort(key=lambda item: place(item.path))


def pytest_collection_finish() -> None:
    """Exempt the collected tests and their modules from garbage collections, most of whose time they take."""
    gc.freeze()


SHARED = {
    "spark": re.compile(r"\b(warm|spark|spark_log): "),
    "source": re.compile(r"(?m)^from source_trees import "),
}
"""What files share, by what they contain: a Spark session, and the syntax trees of the source."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """Run each file on one worker, and files that share something expensive on the same one.

    A second Java costs 20 s of CPU time; a second set of syntax trees costs 2 s.
    """
    from xdist.scheduler import LoadFileScheduling

    @cache
    def scope(file: str) -> str:
        text = (config.rootpath / file).read_text(encoding="utf-8")
        return next((name for name, use in SHARED.items() if use.search(text)), file)

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope(nodeid.split("::", 1)[0])

    return Scheduling(config, log)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


OLDER = 15
"""The version of the older server."""
UNSAFE = {"fsync": "off"}
"""Without fsync a crash of the machine would lose data; a crash of the server loses nothing."""


def _serve(folder: Path, name: str, binaries: Path | None = None) -> PostgresServer:
    server = PostgresServer(
        data=folder / f"data-{name}",
        sockets=folder / f"s-{name}",
        port=free_port(),
        binaries=binaries or find_binaries(),
    )
    server.initialize({**REPLICATION_SETTINGS, **UNSAFE, "max_prepared_transactions": "10"})
    server.start()
    return server


@pytest.fixture
def real_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes of ggshell are new processes, not forks (``forked_processes.py``)."""
    monkeypatch.setenv(REAL, "1")


@pytest.fixture
def port() -> int:
    """An unused port."""
    return free_port()


@pytest.fixture(scope="session")
def server_folder() -> Iterator[Path]:
    folder = short_folder("ggs-")
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def north_server(server_folder: Path) -> Iterator[PostgresServer]:
    server = _serve(server_folder, "north")
    yield server
    server.stop("immediate")


@pytest.fixture(scope="session")
def south_server(server_folder: Path) -> Iterator[PostgresServer]:
    server = _serve(server_folder, "south")
    yield server
    server.stop("immediate")


@pytest.fixture(scope="session")
def older_server(server_folder: Path) -> Iterator[PostgresServer]:
    """A server of an older version, Debian's package."""
    binaries = Path(f"/usr/lib/postgresql/{OLDER}/bin")
    if not (binaries / "initdb").exists():
        pytest.skip(f"PostgreSQL {OLDER} (Debian's package postgresql-{OLDER}) is not installed")
    server = _serve(server_folder, "older", binaries)
    yield server
    server.stop("immediate")


@pytest.fixture
def older(older_server: PostgresServer) -> Iterator[str]:
    """The DSN of a new, empty database on the server of an older version."""
    yield from new_database(older_server)


@pytest.fixture
def north(north_server: PostgresServer) -> Iterator[str]:
    """The DSN of a new, empty database on the north server; it is dropped with its slots after the test."""
    yield from new_database(north_server)


@pytest.fixture
def south(south_server: PostgresServer) -> Iterator[str]:
    """The DSN of a new, empty database on the south server."""
    yield from new_database(south_server)


@pytest.fixture
def north_other(north_server: PostgresServer) -> Iterator[str]:
    """The DSN of another new, empty database on the north server."""
    yield from new_database(north_server)


@pytest.fixture(scope="session")
def java() -> None:
    """Spark can run here; without Java the test is skipped with the reason."""
    try:
        found = find_java()
    except StateError as error:
        pytest.skip(str(error))
    java_archive.ensure_archive(found, SHORT_LIVED_JAVA)


@pytest.fixture(scope="session")
def warm(java: None, tmp_path_factory: pytest.TempPathFactory, store_server: StoreServer) -> Iterator[WarmSession]:
    """A Spark session as in the shell: local, two cores. One for all folders, because a process has one Java for Spark.

    Its tasks find the logins of the object store and of the REST catalog in their environment, that of Java at its start.
    """
    home = tmp_path_factory.mktemp("spark")
    (home / "dirtmp").mkdir()
    session = WarmSession(QuerySettings(master="local[2]", memory="1g"), home / "dirrpt" / "spark.log")
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {**store_server.environment, **CATALOG_LOGIN}.items():
            environment.setenv(name, value)
        session.get()
    yield session
    tasks = session._link.running_tasks(session.get())
    session.close()
    assert not tasks, "a test has left a query that never ends"


@pytest.fixture(scope="session")
def spark(warm: WarmSession) -> SparkSession:
    """The PySpark session, in which ``ggtrail`` is registered."""
    return warm.get()


@pytest.fixture
def hub(south_server: PostgresServer) -> Iterator[str]:
    """The DSN of a third database, between north and south."""
    yield from new_database(south_server)


@pytest.fixture(scope="session")
def store_server() -> Iterator[StoreServer]:
    """An object store (tests/object_stores.py)."""
    pytest.importorskip("moto", reason="moto is not installed")
    yield from serve_objects()


@pytest.fixture
def bucket(store_server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """An empty bucket of the object store, whose credentials are in the environment."""
    return new_bucket(store_server, monkeypatch)


@pytest.fixture(scope="session")
def mariadb_binaries() -> Path:
    """The folder of mariadbd, for a test with a server of its own; without one the test is skipped with the reason."""
    return binaries_or_skip()


@pytest.fixture(scope="session")
def mariadb_server(mariadb_binaries: Path) -> Iterator[MariadbServer]:
    """A MariaDB server; without one the test is skipped with the reason."""
    with private_server(free_port(), FAST) as server:
        yield server


@pytest.fixture
def mariadb(mariadb_server: MariadbServer) -> Iterator[str]:
    """The login of a new, empty database on the MariaDB server; it is dropped after the test."""
    yield from new_schema(mariadb_server)
