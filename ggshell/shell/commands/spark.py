"""START, STOP and INFO SPARK."""

from __future__ import annotations

from ggshell.clock import local_text
from ggshell.shell.layout.groups import size as size_text
from ggshell.shell.listings import Facts
from ggshell.shell.registry import command
from ggshell.shell.results import Message
from ggshell.shell.session import Session


@command("START SPARK")
def start_spark(session: Session) -> Message:
    """Start the home's Spark Connect server; every run of the program uses it from then on."""
    from ggshell.spark.server import start_server

    start_server(session.home)
    session.forget_engines()
    return Message(("Spark started.",))


@command("STOP SPARK")
def stop_spark(session: Session) -> Message:
    """End it, and with it what it works on."""
    from ggshell.spark.server import stop_server

    session.forget_engines()
    stop_server(session.home)
    return Message(("Spark stopped.",))


@command("INFO SPARK")
def info_spark(session: Session) -> Facts:
    """The engines, the session, the server, and what this shell has asked; starts nothing."""
    from ggshell.spark.server import find_server

    engines = session.engines
    server = find_server(session.home)
    pairs = [(name, _text(name, value)) for name, value in engines.facts()]
    pairs.append(("Server", "not running" if server is None else _server_text(server.port, server.pid, server.started)))
    pairs += [
        (
            f"Question {number}",
            f"{ran.question} ({ran.engine}, {size_text(ran.size)}, {ran.rows:,} rows, {ran.seconds:.2f} s)",
        )
        for number, ran in enumerate(engines.ran, 1)
    ]
    pairs = [(name, value) for name, value in pairs if value]
    lines = [f"{name:<20} {value}" for name, value in pairs]
    return Facts(tuple(pairs), "\n" + "\n".join(lines) + "\n")


def _server_text(port: int, pid: int, started: int) -> str:
    return f"running since {local_text(started)}, port {port}, process {pid}"


def _text(name: str, value: object) -> str:
    return size_text(int(str(value))) if name == "Threshold" else str(value)
