"""A Spark Connect server of the home (``START SPARK``): one warm session for every run of the program, also for short ones.

A process of its own.  ``dirpcs/SPARK.json`` (mode 0600) says where it listens and the token that it asks for;
``dirpcs/SPARK.pipe`` is open at its end as long as it lives: whoever can open it for writing knows that it runs, and a byte
written to it asks it to end.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import subprocess
import sys
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from ggshell import errors
from ggshell.clock import SystemClock
from ggshell.errors import ConflictError, GgsError, ProcessError, StateError, UsageError
from ggshell.files import locked, write_atomically
from ggshell.spark.driver import java_process, python_environment
from ggshell.spark.session import WarmSession
from ggshell.spark.settings import FILE, EngineChoice, Settings, load_settings
from ggshell.store.home import Home

START_SECONDS: Final = 180.0
END_SECONDS: Final = 60.0
_PLUGIN: Final = "org.apache.spark.sql.connect.SparkConnectPlugin"
_ASKED_FOR: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The variable by which Spark is told what a client must bring."""


class Server(NamedTuple):
    """A running server; ``started`` in microseconds since 1970."""

    pid: int
    port: int
    token: str
    master: str
    started: int

    @property
    def remote(self) -> str:
        """Where a session connects to; holds the token, so it is for nobody's eyes."""
        return f"sc://localhost:{self.port}/;token={self.token}"

    def __repr__(self) -> str:
        return f"Server(pid={self.pid}, port={self.port})"


def spark_log(home: Home) -> Path:
    """What Java prints."""
    return home.root / "dirrpt" / "spark.log"


def settings_of(home: Home) -> Settings:
    """The home's settings.  Raises ParameterError."""
    return load_settings(home.root / "dirprm" / FILE)


def settings_in_use(home: Home, engine: str = "") -> Settings:
    """The home's settings; where no master is said its server, if that runs.  ``engine`` goes before the file's.

    Raises ParameterError.
    """
    settings = settings_of(home)
    if engine:
        settings = settings._replace(engine=EngineChoice(engine))
    server = None if settings.master else find_server(home)
    return settings if server is None else settings._replace(master=server.remote)


def find_server(home: Home) -> Server | None:
    """The home's server, if it runs."""
    descriptor = _reach(home)
    if descriptor is None:
        return None
    os.close(descriptor)
    try:
        return Server(**json.loads(_facts(home).read_text()))
    except (OSError, ValueError, TypeError):
        return None  # it is only about to say where it listens, or has just ended


def start_server(home: Home) -> Server:
    """Start it and wait until it answers.  Raises ConflictError when it runs already, and whatever keeps it from running."""
    settings = settings_of(home)
    if settings.is_remote:
        raise UsageError(
            f"dirprm/{FILE} names a Spark Connect server already", hint="questions use that; nothing is to be started"
        )
    if find_server(home) is not None:
        raise ConflictError("Spark is already running.")
    home.ensure()
    with spark_log(home).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ggshell.spark.server", str(home.root)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=home.root,
            start_new_session=True,
            env={**os.environ, **python_environment()},
        )
    if process.stdout is None:
        raise AssertionError("a pipe was asked for")
    with process.stdout as told:
        ready, _, _ = select.select([told], [], [], START_SECONDS)
        line = told.readline() if ready else b""
    answer = json.loads(line) if line else {"message": f"Spark did not start; {spark_log(home)} has the story"}
    found = find_server(home)
    if "message" in answer or found is None:
        process.kill()
        process.wait()
        raise _raised(answer)
    process.returncode = 0  # it lives on by itself: nobody waits for it here
    return found


def _raised(answer: dict[str, Any]) -> GgsError:
    kind = getattr(errors, str(answer.get("kind", "")), ProcessError)
    message = str(answer.get("message", "Spark ended at once"))
    return kind(message, code=answer.get("code"), hint=str(answer.get("hint", "")))


def stop_server(home: Home) -> None:
    """Ask it to end and wait until it has.  Raises StateError when none runs, ProcessError when it does not end."""
    server = find_server(home)
    descriptor = _reach(home)
    if server is None or descriptor is None:
        raise StateError("Spark is not running.")
    try:
        os.write(descriptor, b"S")
        ended = select.poll()
        ended.register(descriptor, 0)  # without a reader, that is without the process, it becomes an error
        if not ended.poll(END_SECONDS * 1000):
            raise ProcessError(f"Spark (process {server.pid}) does not end", hint=f"see {spark_log(home)}")
    finally:
        os.close(descriptor)


def _reach(home: Home) -> int | None:
    """The pipe to a running server; None when none runs."""
    try:
        return os.open(_pipe(home), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return None
        raise


def _facts(home: Home) -> Path:
    return home.root / "dirpcs" / "SPARK.json"


def _pipe(home: Home) -> Path:
    return home.root / "dirpcs" / "SPARK.pipe"


def main(home: Home) -> int:
    """The server's own process: start Spark, say so on standard output, and wait for the end."""
    try:
        with locked(home.root / "dirpcs" / ".SPARK.lock", "Spark"):
            return _serve(home)
    except GgsError as error:
        _tell({"kind": type(error).__name__, "code": error.code, "message": error.message, "hint": error.hint})
        return 1


def _serve(home: Home) -> int:
    token = uuid.uuid4().hex
    settings = settings_of(home)
    options = {
        "spark.plugins": _PLUGIN,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.artifact.isolation.enabled": "true",
        "spark.sql.artifact.isolation.alwaysApplyClassloader": "true",
        **settings.options,
    }
    os.environ[_ASKED_FOR] = token
    session = WarmSession(settings._replace(options=options), spark_log(home))
    try:
        spark = session.get()
        port = _listening_port(spark.sparkContext._jvm)
        pipe = _open_pipe(home)
        server = Server(os.getpid(), port, token, settings.effective_master, SystemClock().now())
        write_atomically(_facts(home), json.dumps(server._asdict()).encode(), mode=0o600)
        _tell({"port": port})
        _wait(pipe, java_process(spark))
    finally:
        _facts(home).unlink(missing_ok=True)
        session.close()
    return 0


def _listening_port(jvm: Any) -> int:
    """The port that the plugin was given by the system."""
    service = getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    return int(getattr(service, "MODULE$").localPort())


def _open_pipe(home: Home) -> int:
    path = _pipe(home)
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o600)
    # For reading and writing, so that it does not look ended when a client lets go of it.
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def _tell(answer: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):
        os.write(1, json.dumps(answer).encode() + b"\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _wait(pipe: int, java: subprocess.Popen[bytes]) -> None:
    """Until somebody asks for the end, a signal does, or Java ends."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)

    def tell_end() -> None:
        java.wait()
        os.write(write_end, b"J")

    threading.Thread(target=tell_end, name="java-end", daemon=True).start()
    select.select([pipe, read_end], [], [])


if __name__ == "__main__":
    sys.exit(main(Home(Path(sys.argv[1]))))
