"""The service's process: its lock, report, control socket and process file around an HTTP server."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

import uvicorn

from ggshell.cli.received_paths import RECEIVERS
from ggshell.cli.service_facts import url_of
from ggshell.clock import Clock, SystemClock
from ggshell.errors import GgsError, ProcessError
from ggshell.files import locked
from ggshell.groups.control import ControlServer, Meanwhile
from ggshell.groups.lifecycle import READY_VARIABLE, signal_ready
from ggshell.groups.report import Report
from ggshell.groups.service_setup import listen, manager_port_of, tls_context
from ggshell.home.certificate import CERTIFICATE, ensure_certificate, read_certificate
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, own_process_file, write_process_file
from ggshell.network.frames import LONGEST_FRAME
from ggshell.parameters.loading import load_service
from ggshell.parameters.service_parameters import ServiceParameters
from ggshell.service.answer_check import VARIABLE, check_answer
from ggshell.service.app import Application
from ggshell.service.invalid_requests import InvalidRequests
from ggshell.service.protocol import CertifiedProtocol, Complaints, most_connections
from ggshell.service.recovery import Recovery
from ggshell.service.state import DATABASE, PROGRAM, ServiceState
from ggshell.service.statsd import StatsdSender
from ggshell.service.task_commands import start_tasks
from ggshell.service.trail_protocol import TrailProtocol
from ggshell.service.trail_receiver import TrailReceivers

GRACE_SECONDS: Final = 5
"""How long requests may take to end after STOP SERVICE."""
WORKER_SECONDS: Final = 1.0
"""How long the workers may then take to end."""
KEEP_ALIVE_SECONDS: Final = 75


class Server(uvicorn.Server):
    """The HTTP server. When it accepts connections and handles signals, it calls ``ready`` and reports to the launcher."""

    def __init__(self, configuration: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(configuration)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(Complaints())
        await super().startup(sockets)
        if self.started:
            self._ready()
            signal_ready()

    def handle_exit(self, sig: int, frame: object) -> None:
        """End gracefully on SIGTERM and SIGINT; unlike uvicorn's own, the process then ends with code 0."""
        self.should_exit = True


class _Control(Meanwhile):
    """Answers the requests of the control socket; none of them needs the server's thread."""

    def __init__(self, settings: ServiceParameters, fingerprint: str, manager: tuple[int, bool]) -> None:
        """``fingerprint``: of the certificate that the service presents, empty without TLS.

        ``manager``: Manager's port, 0 for none, and whether the service listens on it.
        """
        self._status = {
            "address": settings.address,
            "port": settings.port,
            "plaintext": settings.plaintext,
            "deployment": settings.deployment,
            "metrics": settings.metrics.value,
            "fingerprint": fingerprint,
            "digest": settings.digest,
            "manager_port": manager[0],
            "manager_port_open": manager[1],
        }
        self.server: Server | None = None
        self.receivers: TrailReceivers | None = None

    def at_once(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        if verb == "STOP" and self.server is not None:
            self.server.should_exit = True
            return {"pid": os.getpid()}
        if verb == "STATUS":
            return {"pid": os.getpid(), **self._status}
        if verb == RECEIVERS and self.receivers is not None:
            return self.receivers.answer()
        raise ProcessError(f"the service does not support the request {verb}")


def run(home: Home, clock: Clock | None = None) -> int:
    """Run the service until it is stopped; return the exit code. Raises ConflictError if it is already running."""
    clock = clock or SystemClock()
    home.ensure()
    with locked(home.root / "dirpcs" / ".service.lock", "the service"):
        report = Report(home, "SERVICE", PROGRAM, clock, DATABASE)
        report.opening(home.parameters("service"))
        try:
            _serve(home, clock, report)
        except GgsError as error:
            report.abend(error)
            raise
        _end_despite_workers(clock)
    return 0


def _end_despite_workers(clock: Clock) -> None:
    """End the process if a worker waits for something that may never come, such as a database that does not answer.

    The interpreter would wait for it, and the lock of the service would stay locked. The lock ends with the process.
    """
    end = clock.steady() + WORKER_SECONDS
    workers = [each for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()]
    for each in workers:
        each.join(max(0.0, end - clock.steady()))
    if any(each.is_alive() for each in workers):
        logging.shutdown()
        sys.stderr.flush()
        os._exit(0)


def _serve(home: Home, clock: Clock, report: Report) -> None:
    settings = load_service(home.parameters("service"))
    state = ServiceState(home, settings, clock)
    CertifiedProtocol.most = most_connections()
    CertifiedProtocol.invalid = InvalidRequests(state)
    context = _tls(home, settings, clock, report)
    listeners, manager_port = [listen(settings)], manager_port_of(home, settings)
    if manager_port:
        listeners += _manager_listener(settings, manager_port, report)
    control = _Control(settings, _fingerprint(home, settings), (manager_port, len(listeners) > 1))
    check = check_answer if os.environ.get(VARIABLE) else None
    application = Application(state, lambda client: CertifiedProtocol.names.get(client, ""), check=check)
    control.receivers = application.trails.receivers
    sockets = ControlServer(home.service.with_suffix(".sock"), _no_worker, control, clock)
    entry = own_process_file(home.root, ProcessState.RUNNING, str(sockets.path), clock.now())
    server = control.server = Server(
        configuration(application, context), lambda: write_process_file(home.service, entry)
    )
    started = f"Service started: {url_of(settings)}."
    report.event(Severity.INFO, "GGS-00910", started)
    if READY_VARIABLE not in os.environ:  # in the foreground, the terminal would show nothing
        sys.stdout.write(f"{started} STOP SERVICE or Ctrl-C ends it.\n")
        sys.stdout.flush()
    if not state.sign_in.has_users:
        report.event(
            Severity.WARNING, "GGS-00909", "The service has no users yet: run ADD USER name, ROLE SECURITY in ggshell."
        )
    statsd = StatsdSender(state)
    start_tasks(state)
    recovery = Recovery(state)
    recovery.start()
    with ExitStack() as ending:  # the process file is removed last: until then the service counts as running
        ending.callback(home.service.unlink, missing_ok=True)
        try:
            server.run(sockets=listeners)
        finally:
            application.trails.close()
            statsd.close()
            recovery.close()
            state.close()
            sockets.close()
        report.event(Severity.INFO, "GGS-00911", "Service stopped.")


def _manager_listener(settings: ServiceParameters, port: int, report: Report) -> list[socket.socket]:
    """Return the listener on Manager's port, where pumps with RMTHOST and MGRPORT connect; none if it cannot be used."""
    try:
        return [listen(settings._replace(port=port))]
    except ProcessError as error:
        text = f"The service does not listen on the PORT of mgr.prm, but on its own port only: {error.message}."
        report.event(Severity.WARNING, "GGS-00944", text)
        return []


def configuration(application: Application, context: ssl.SSLContext | None) -> uvicorn.Config:
    """Return the server's configuration: requests are not logged one by one; changes are, in ggserr.log."""
    found = uvicorn.Config(
        application,
        http=CertifiedProtocol,
        ws=TrailProtocol,
        ws_max_size=LONGEST_FRAME,
        ws_ping_interval=None,  # senders ping: their answers would wait after the data that they send
        ws_per_message_deflate=False,
        lifespan="off",
        log_level="error",  # a warning for each request that is not valid HTTP would let anyone fill the disk
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    found.load()
    found.ssl = context
    return found


def _tls(home: Home, settings: ServiceParameters, clock: Clock, report: Report) -> ssl.SSLContext | None:
    """Return the TLS settings, after making a certificate if none is configured. None for PLAINTEXT.

    Raises StateError for an expired certificate, StoreError.
    """
    if settings.plaintext:
        return None
    if not settings.certificate:
        certificate, _, made = ensure_certificate(home, clock)
        if made:
            text = f"Certificate {certificate} created. Its fingerprint is {read_certificate(certificate).fingerprint}."
            report.event(Severity.INFO, "GGS-00912", text)
    return tls_context(home, settings, clock)


def _fingerprint(home: Home, settings: ServiceParameters) -> str:
    if settings.plaintext:
        return ""
    return read_certificate(home.resolve(settings.certificate or CERTIFICATE)).fingerprint


def _no_worker(verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
    raise ProcessError(f"the service does not support the request {verb}")
