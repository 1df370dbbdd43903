"""``ggshell demo up | load | status | down``: manages the two demo databases and the workload."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ggshell.demo import mariadb_demo
from ggshell.demo.aliases import store_logins
from ggshell.demo.processes import end_processes
from ggshell.demo.servers import NAMES, DemoServers, exists, open_servers
from ggshell.errors import GgsError, NotFoundError, StateError
from ggshell.plurals import counted


def main(arguments: Sequence[str], *, home: Path | None = None) -> int:
    """Run one demo command and return the exit code (0 done, 1 refused, 2 wrong usage).

    ``home``: the home directory without ``--home`` (None: the current folder).
    """
    options = _parser().parse_args(arguments)
    try:
        return int(options.action(Path(options.home or home or ".").resolve(), options))
    except GgsError as error:
        sys.stderr.write(f"ERROR: {error.code} {error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ggshell demo", description="Manage the two demo databases and the workload.")
    # The option is accepted before and after the action.
    home = argparse.ArgumentParser(add_help=False)
    home.add_argument(
        "--home",
        default=argparse.SUPPRESS,
        help="home directory (default: GGSHELL_HOME, the configuration file or the current folder)",
    )
    parser.add_argument("--home", default=None, help=argparse.SUPPRESS)
    actions = parser.add_subparsers(required=True, metavar="up | load | status | down")
    up = actions.add_parser(
        "up", parents=[home], help="start both servers, fill north, add the aliases north and south"
    )
    up.add_argument(
        "--copy", action="store_true", help="also copy north's rows to south, as a start point for replication"
    )
    up.add_argument("--mirror", action="store_true", help="add a second target, the schema mirror in south")
    up.add_argument(
        "--kind",
        choices=("postgresql", "mariadb"),
        default="postgresql",
        help="mariadb: start a MariaDB server instead, with the database shop and the alias maria",
    )
    up.add_argument("--seed", type=int, default=7, help="seed of the random rows")
    up.set_defaults(action=_up)
    load = actions.add_parser("load", parents=[home], help="run the workload on north")
    load.add_argument(
        "--rate", type=float, default=100.0, help="transactions per second (default: 100); 0 for no limit"
    )
    load.add_argument("--seconds", type=float, help="stop after this time (default: run until Ctrl-C)")
    load.add_argument("--seed", type=int, default=7, help="seed of the random transactions")
    load.set_defaults(action=_load)
    status = actions.add_parser("status", parents=[home], help="show servers, rows and replication slots")
    status.set_defaults(action=_status)
    down = actions.add_parser("down", parents=[home], help="stop both servers and keep their data")
    down.add_argument("--remove", action="store_true", help="also delete the data")
    down.set_defaults(action=_down)
    return parser


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def bring_up(home: Path, *, copy: bool = False, mirror: bool = False, seed: int = 7) -> DemoServers:
    """Create everything that ``demo up`` promises; what already exists is kept."""
    import psycopg

    from ggshell.demo import load

    servers = open_servers(home)
    servers.start()
    schemas = (load.SCHEMA, load.MIRROR) if mirror else (load.SCHEMA,)
    load.prepare_database(servers, "north", (load.SCHEMA,))
    load.prepare_database(servers, "south", schemas)
    with psycopg.connect(servers.dsn("north"), autocommit=True) as connection:
        if load.is_empty(connection):
            load.load_rows(connection, seed=seed)
    if copy:
        load.copy_rows(servers.dsn("north"), servers.dsn("south"), tuple((load.SCHEMA, schema) for schema in schemas))
    store_aliases(servers)
    return servers


def store_aliases(servers: DemoServers, root: Path | None = None, names: Sequence[str] = NAMES) -> None:
    """Add the replication role's logins to a home's credential store, with the servers' names as aliases.

    ``root``: the home, by default that of the servers.
    """
    store_logins(root or servers.home, {name: servers.login(name) for name in names})


def _up(home: Path, options: argparse.Namespace) -> int:
    if options.kind == "mariadb":
        demo = mariadb_demo.open_demo(home)
        demo.bring_up(options.seed)
        _say(f"maria: running on port {demo.server.port}, database shop, log in with: DBLOGIN USERIDALIAS maria")
        return 0
    servers = bring_up(home, copy=options.copy, mirror=options.mirror, seed=options.seed)
    for name, server in servers.both():
        _say(f"{name}: running on port {server.port}, database {name}, log in with: DBLOGIN USERIDALIAS {name}")
        _say(f"    psql '{servers.dsn(name)}'")
    return 0


def _load(home: Path, options: argparse.Namespace) -> int:
    from ggshell.demo import workload

    servers = _running(home)
    arguments = ["--dsn", servers.dsn("north"), "--rate", str(options.rate), "--seed", str(options.seed)]
    if options.seconds is not None:
        arguments += ["--seconds", str(options.seconds)]
    return workload.main(arguments)


def _status(home: Path, options: argparse.Namespace) -> int:
    import psycopg

    maria = mariadb_demo.open_demo(home) if mariadb_demo.exists(home) else None
    if maria is not None:
        _say(_maria_line(maria))
    if not exists(home):
        if maria is not None:
            return 0
        raise NotFoundError(f"there is no demo in {home}", hint="ggshell demo up")
    servers = open_servers(home)
    for name, server in servers.both():
        if server.pid() is None:
            _say(f"{name}: stopped")
            continue
        with psycopg.connect(servers.dsn(name), autocommit=True) as connection:
            slots = connection.execute("SELECT slot_name, active FROM pg_replication_slots ORDER BY 1").fetchall()
            tables = connection.execute(_ROWS).fetchall()
        _say(f"{name}: running, process {server.pid()}, connect with: psql '{servers.dsn(name)}'")
        for schema, count, rows in tables:
            _say(f"    schema {schema}: {counted(count, 'table')}, about {counted(rows, 'row')}")
        for slot, active in slots:
            _say(f"    slot {slot}: {'active' if active else 'inactive'}")
    return 0


_ROWS = """
SELECT schemaname, count(*), sum(n_live_tup) FROM pg_stat_user_tables
 WHERE schemaname IN ('shop', 'mirror') GROUP BY schemaname ORDER BY schemaname DESC
"""


def _maria_line(demo: mariadb_demo.MariadbDemo) -> str:
    if demo.server.pid() is None:
        return "maria: stopped"
    rows = ", ".join(f"{name} {counted(count, 'row')}" for name, count in demo.rows().items())
    return f"maria: running, process {demo.server.pid()}, port {demo.server.port}; shop: {rows}"


def _down_maria(home: Path, *, remove: bool) -> None:
    demo = mariadb_demo.open_demo(home)
    if remove:
        end_processes(home)
        demo.remove()
        _say("maria is stopped and deleted")
    else:
        demo.server.stop()
        _say(f"maria is stopped; its data is kept in {demo.server.data} for the next 'ggshell demo up --kind mariadb'")


def _down(home: Path, options: argparse.Namespace) -> int:
    if mariadb_demo.exists(home):
        _down_maria(home, remove=options.remove)
        if not exists(home):
            return 0
    if not exists(home):
        _say(f"there is no demo in {home}: nothing to stop")
        return 0
    servers = open_servers(home)
    if options.remove:
        end_processes(home)
        servers.remove()
        _say("both servers are stopped and deleted")
    else:
        servers.stop()
        _say(f"both servers are stopped; their data is kept in {servers.data} for the next 'ggshell demo up'")
    return 0


def _running(home: Path) -> DemoServers:
    if not exists(home):
        raise NotFoundError(f"there is no demo in {home}", hint="ggshell demo up")
    servers = open_servers(home)
    if not all(servers.running().values()):
        raise StateError("the demo's servers are not running", hint="ggshell demo up")
    return servers
