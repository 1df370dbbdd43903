"""START, STOP and INFO SPARK."""

from __future__ import annotations

from ggshell.cli.output.units import size as size_text
from ggshell.cli.registry import command
from ggshell.cli.results import Message, NamedValues, Note
from ggshell.cli.session import Session
from ggshell.clock import local_text


@command("START SPARK")
def start_spark(session: Session) -> Message:
    """Start the home's Spark Connect server, which all later runs of the program use."""
    from ggshell.query.driver import exposes
    from ggshell.query.server import settings_of, start_server

    start_server(session.home, session.progress)
    session.forget_engines()
    settings = settings_of(session.home)
    notes = (_no_secret(settings.shown_master),) if exposes(settings) else ()
    return Message(("Spark started.",), notes=notes)


def _no_secret(master: str) -> Note:
    return Note(
        "GGS-00715",
        f"{master} is on another machine and dirprm/spark.conf does not set spark.authenticate: anyone who can reach the ports"
        " of the driver can run programs there. Set spark.authenticate to true and spark.authenticate.secret in"
        " dirprm/spark.conf (mode 0600), and in spark-defaults.conf of the master and of every worker",
    )


@command("STOP SPARK")
def stop_spark(session: Session) -> Message:
    """Stop the server and cancel what it is running."""
    from ggshell.query.server import stop_server

    session.forget_engines()
    stop_server(session.home)
    return Message(("Spark stopped.",))


@command("INFO SPARK")
def info_spark(session: Session) -> NamedValues:
    """Show the engines, the session, the server, and the queries of this shell; starts nothing."""
    from ggshell.query.server import find_server

    engines = session.engines
    server = find_server(session.home)
    pairs = [(name, _text(name, value)) for name, value in engines.facts()]
    pairs.append(("Server", "not running" if server is None else _server_text(server.port, server.pid, server.started)))
    pairs += [
        (
            f"Query {number}",
            f"{ran.query} ({ran.engine}, {size_text(ran.size)}, {ran.rows:,} rows, {ran.seconds:.2f} s)",
        )
        for number, ran in enumerate(engines.ran, 1)
    ]
    pairs = [(name, value) for name, value in pairs if value]
    lines = [f"{name:<20} {value}" for name, value in pairs]
    return NamedValues(tuple(pairs), "\n" + "\n".join(lines) + "\n")


def _server_text(port: int, pid: int, started: int) -> str:
    return f"running since {local_text(started)}, port {port}, process {pid}"


def _text(name: str, value: object) -> str:
    return size_text(int(str(value))) if name == "Threshold" else str(value)
