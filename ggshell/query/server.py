"""The Spark Connect server of a home (``START SPARK``): one warm session that all runs of the program share.

It is a separate process. ``dirpcs/SPARK.json`` (mode 0600) has its port and token. The server keeps the read end of
``dirpcs/SPARK.pipe`` open as long as it runs: if the pipe can be opened for writing, the server is running, and a byte
written to it asks the server to stop.
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
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from ggshell import errors
from ggshell.clock import SystemClock
from ggshell.errors import ConflictError, GgsError, ProcessError, StateError, UsageError
from ggshell.files import close_to_others, locked, read_json, write_atomically
from ggshell.home.home import Home
from ggshell.query.settings import FILE, EngineChoice, QuerySettings, load_settings

START_SECONDS: Final = 180.0
END_SECONDS: Final = 60.0
_PLUGIN: Final = "org.apache.spark.sql.connect.SparkConnectPlugin"
_ASKED_FOR: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""The environment variable with the token that clients must present."""


class Server(NamedTuple):
    """A running server; ``started`` in microseconds since 1970."""

    pid: int
    port: int
    token: str
    master: str
    started: int

    @property
    def remote(self) -> str:
        """The URL that a session connects to. It contains the token, so it must not be shown."""
        return f"sc://localhost:{self.port}/;token={self.token}"

    def __repr__(self) -> str:
        return f"Server(pid={self.pid}, port={self.port})"


def spark_log(home: Home) -> Path:
    """The log with the output of Java."""
    return home.root / "dirrpt" / "spark.log"


def settings_of(home: Home) -> QuerySettings:
    """The home's settings. Raises ParameterError."""
    return load_settings(home.root / "dirprm" / FILE)


def settings_in_use(home: Home, engine: str = "") -> QuerySettings:
    """The home's settings, with its running server as master if they name none. ``engine`` overrides the file.

    Raises ParameterError.
    """
    settings = settings_of(home)
    if engine:
        settings = settings._replace(engine=EngineChoice(engine))
    server = None if settings.master else find_server(home)
    return settings if server is None else settings._replace(master=server.remote)


def find_server(home: Home) -> Server | None:
    """The home's server, if it is running."""
    descriptor = _reach(home)
    if descriptor is None:
        return None
    os.close(descriptor)
    try:
        return Server(**read_json(_facts(home).read_text()))
    except (OSError, ValueError, TypeError):
        return None  # it has not written its address yet, or has just stopped


def start_server(home: Home, on_progress: Callable[[str], None] = lambda _: None) -> Server:
    """Start the server and wait until it answers. ``on_progress`` is informed that it is starting.

    Raises UsageError if the settings name a Connect server, ConflictError if it is already running, or the error of its
    start.
    """
    settings = settings_of(home)
    if settings.is_remote:
        raise UsageError(
            f"dirprm/{FILE} already names a Spark Connect server",
            hint="queries use that server: do not start another one",
        )
    if find_server(home) is not None:
        raise ConflictError("Spark is already running.")
    from ggshell.query.driver import python_environment  # to find a server that runs, neither is needed

    home.ensure()
    with spark_log(home).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ggshell.query.server", str(home.root)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=home.root,
            start_new_session=True,
            env={**os.environ, **python_environment()},
        )
    if process.stdout is None:
        raise AssertionError("stdout must be a pipe")
    on_progress("Spark is starting")
    with process.stdout as output:
        ready, _, _ = select.select([output], [], [], START_SECONDS)
        line = output.readline() if ready else b""
    answer = read_json(line) if line else {"message": f"Spark did not start; the reason is in {spark_log(home)}"}
    found = find_server(home)
    if "message" in answer or found is None:
        process.kill()
        process.wait()
        raise _raised(answer)
    process.returncode = 0  # it runs on its own: nobody waits for it here
    return found


def _raised(answer: dict[str, Any]) -> GgsError:
    kind = getattr(errors, str(answer.get("kind", "")), ProcessError)
    message = str(answer.get("message", "Spark ended immediately"))
    return kind(message, code=answer.get("code"), hint=str(answer.get("hint", "")))


def stop_server(home: Home) -> None:
    """Stop the server and wait. Raises StateError if it is not running, ProcessError if it does not stop."""
    server = find_server(home)
    descriptor = _reach(home)
    if server is None or descriptor is None:
        raise StateError("Spark is not running.")
    try:
        os.write(descriptor, b"S")
        ended = select.poll()
        ended.register(descriptor, 0)  # without a reader, so without the process, the pipe reports an error
        if not ended.poll(END_SECONDS * 1000):
            raise ProcessError(f"Spark (process {server.pid}) did not stop", hint=f"see {spark_log(home)}")
    finally:
        os.close(descriptor)


def _reach(home: Home) -> int | None:
    """The pipe to a running server; None if it is not running."""
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
    """The server process: start Spark, report the result on standard output, and wait for a stop."""
    close_to_others()
    try:
        with locked(home.root / "dirpcs" / ".SPARK.lock", "Spark"):
            return _serve(home)
    except GgsError as error:
        _answer_once({"kind": type(error).__name__, "code": error.code, "message": error.message, "hint": error.hint})
        return 1


def _serve(home: Home) -> int:
    from ggshell.query.driver import is_local, java_process, temporary_folder
    from ggshell.query.session import WarmSession
    from ggshell.query.shipping import PACKAGE, package_file

    token = uuid.uuid4().hex
    settings = settings_of(home)
    package = package_file(temporary_folder(spark_log(home)) / "package")
    options = {
        **({PACKAGE: package.stem} if is_local(settings.effective_master) else {}),
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
        _answer_once({"port": port})
        _wait(pipe, java_process(spark))
    finally:
        _facts(home).unlink(missing_ok=True)
        session.close()
    return 0


def _listening_port(jvm: Any) -> int:
    """The port that the system assigned to the plugin."""
    service = getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    return int(getattr(service, "MODULE$").localPort())


def _open_pipe(home: Home) -> int:
    path = _pipe(home)
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o600)
    # Open for reading and writing, so that the pipe does not report its end when a client closes it.
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def _answer_once(answer: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):
        os.write(1, json.dumps(answer).encode() + b"\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _wait(pipe: int, java: subprocess.Popen[bytes]) -> None:
    """Wait until a client asks for a stop, a signal arrives, or Java ends."""
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
