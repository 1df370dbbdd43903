"""What INFO SERVICE shows: the settings of the running service, or of the parameter file that the next start reads."""

from __future__ import annotations

from typing import Final, NamedTuple

from ggshell.cli.results import Note
from ggshell.errors import GgsError
from ggshell.groups.control import request
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessFile
from ggshell.parameters.loading import load_service
from ggshell.parameters.service_parameters import MetricsAccess, ServiceParameters

_CODE: Final = "GGS-00931"


class ServiceFacts(NamedTuple):
    """The settings of a service. ``shown``: those that INFO shows; ``digest``: of all; ``fingerprint``: of its certificate."""

    shown: ServiceParameters
    digest: str = ""
    fingerprint: str = ""

    def notes_about(self, home: Home) -> tuple[Note, ...]:
        """Compare the running service with its parameter file; returns a note if the file differs or is not valid."""
        try:
            differs = load_service(home.parameters("service")).digest != self.digest
        except GgsError as error:
            return (_not_valid(error),)
        text = "settings in service.prm differ: RESTART SERVICE applies them"
        return (Note(_CODE, text),) if differs else ()


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
    return ServiceFacts(shown, str(answer.get("digest", "")), str(answer.get("fingerprint", "")))


def file_facts(home: Home) -> tuple[ServiceFacts, tuple[Note, ...]]:
    """Return the facts of the parameter file; the defaults, with a note, if the file is not valid."""
    settings = ServiceParameters()
    try:
        settings = load_service(home.parameters("service"))
        return ServiceFacts(settings, settings.digest, fingerprint_of_file(home, settings)), ()
    except GgsError as error:
        return ServiceFacts(settings, settings.digest), (_not_valid(error),)


def _not_valid(error: GgsError) -> Note:
    return Note(_CODE, f"the settings in service.prm cannot be used: {error}")


def fingerprint_of_file(home: Home, settings: ServiceParameters) -> str:
    """Return the fingerprint of the certificate file, empty without TLS or without the file. Raises StoreError."""
    from ggshell.home.certificate import CERTIFICATE, read_certificate

    path = home.resolve(settings.certificate or CERTIFICATE)
    return "" if settings.plaintext or not path.exists() else read_certificate(path).fingerprint


def url_of(settings: ServiceParameters) -> str:
    """Return the URL at which the service listens."""
    host = f"[{settings.address}]" if ":" in settings.address else settings.address
    return f"{'http' if settings.plaintext else 'https'}://{host}:{settings.port}"
