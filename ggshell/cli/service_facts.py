"""What INFO SERVICE shows: the settings of the running service, or of the parameter file that the next start reads."""

from __future__ import annotations

import socket
from typing import Final, NamedTuple

from ggshell.cli.results import Note
from ggshell.errors import GgsError
from ggshell.groups.process_request import request
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessFile
from ggshell.parameters.service_parameters import MetricsAccess, ServiceParameters

_CODE: Final = "GGS-00931"
_ALL_ADDRESSES: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared


class ServiceFacts(NamedTuple):
    """The settings of a service. ``shown``: those that INFO shows; ``digest``: of all; ``fingerprint``: of its certificate.

    ``manager_port``: the PORT of mgr.prm, 0 if it has none of its own; ``manager_listens``: the service listens on it too.
    """

    shown: ServiceParameters
    digest: str = ""
    fingerprint: str = ""
    manager_port: int = 0
    manager_listens: bool = True

    @property
    def ports(self) -> set[int]:
        """The ports on which the service listens."""
        return {self.shown.port, self.manager_port} if self.manager_port and self.manager_listens else {self.shown.port}

    def notes_about(self, home: Home) -> tuple[Note, ...]:
        """Compare the running service with its parameter file; returns a note if the file differs or is not valid."""
        from ggshell.parameters.loading import load_service

        try:
            settings = load_service(home.parameters("service"))
        except GgsError as error:
            return (_not_valid(error),)
        differs = settings.digest != self.digest
        moved = _manager_port(home, settings) != self.manager_port
        if not differs and not moved:
            return ()
        file = "service.prm" if differs else "mgr.prm"
        return (Note(_CODE, f"settings in {file} differ: RESTART SERVICE applies them"),)


def running_facts(entry: ProcessFile) -> ServiceFacts:
    """Return the facts that the running service reports. Raises ProcessError if it does not answer."""
    answer = request(entry.socket, "STATUS")
    shown = ServiceParameters(
        port=int(answer["port"]),
        address=str(answer["address"]),
        plaintext=bool(answer.get("plaintext")),
        deployment=str(answer.get("deployment", "")),
        metrics=MetricsAccess(answer.get("metrics", MetricsAccess.USERS)),
    )
    return ServiceFacts(
        shown,
        str(answer.get("digest", "")),
        str(answer.get("fingerprint", "")),
        int(answer.get("manager_port", 0)),
        bool(answer.get("manager_port_open")),
    )


def file_facts(home: Home) -> tuple[ServiceFacts, tuple[Note, ...]]:
    """Return the facts of the parameter file; the defaults, with a note, if the file is not valid."""
    from ggshell.parameters.loading import load_service

    settings = ServiceParameters()
    try:
        settings = load_service(home.parameters("service"))
        fingerprint = fingerprint_of_file(home, settings)
        return ServiceFacts(settings, settings.digest, fingerprint, _manager_port(home, settings)), ()
    except GgsError as error:
        return ServiceFacts(settings, settings.digest), (_not_valid(error),)


def _manager_port(home: Home, settings: ServiceParameters) -> int:
    """Return the port of mgr.prm on which the service listens too; 0 for none. Raises ParameterError, StoreError."""
    from ggshell.groups.service_setup import manager_port_of

    return manager_port_of(home, settings)


def _not_valid(error: GgsError) -> Note:
    return Note(_CODE, f"the settings in service.prm cannot be used: {error}")


def fingerprint_of_file(home: Home, settings: ServiceParameters) -> str:
    """Return the fingerprint of the certificate file, empty without TLS or without the file. Raises StoreError."""
    from ggshell.home.certificate import CERTIFICATE, read_certificate

    path = home.resolve(settings.certificate or CERTIFICATE)
    return "" if settings.plaintext or not path.exists() else read_certificate(path).fingerprint


def url_of(settings: ServiceParameters) -> str:
    """Return the URL that clients use for the service."""
    return f"{'http' if settings.plaintext else 'https'}://{place_of(settings)}"


def place_of(settings: ServiceParameters) -> str:
    """Return host and port at which clients reach the service; the name of this machine if it listens on all addresses."""
    host = socket.gethostname() if settings.address in _ALL_ADDRESSES else settings.address
    return f"[{host}]:{settings.port}" if ":" in host else f"{host}:{settings.port}"
