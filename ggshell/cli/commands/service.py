"""START, STOP, RESTART, INFO and STATUS SERVICE: the process that serves the REST API."""

from __future__ import annotations

from ggshell.cli import supervision
from ggshell.cli.registry import command
from ggshell.cli.results import Message, NamedValues, Note
from ggshell.cli.service_facts import ServiceFacts, file_facts, fingerprint_of_file, running_facts, url_of
from ggshell.cli.session import Session
from ggshell.errors import GgsError, StateError
from ggshell.groups.process_request import request
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessFile, ProcessState, state_of
from ggshell.parameters.service_parameters import ServiceParameters


@command("START SERVICE")
def start_service(session: Session, *, service_name: str = "") -> Message:
    """Start the service if it is not running, and say how to create the first user."""
    entry = running(session.home)
    if entry is not None:
        facts = running_facts(entry)
        return Message(("The service is already running.",), notes=facts.notes_about(session.home))
    from ggshell.groups.launch import spawn
    from ggshell.home.users import Users
    from ggshell.parameters.loading import load_service

    session.home.ensure()
    settings = load_service(session.home.parameters("service"))
    child = spawn(session.home, "service")
    child.returncode = 0  # the service outlives this process: do not wait for it
    lines = [f"Service started: {url_of(settings)}.", *_certificate_lines(session.home, settings)]
    if not Users(session.home).all():
        lines.append("It has no users yet: ADD USER name, ROLE SECURITY adds the first one.")
    return Message(tuple(lines), notes=_supervision_note(session.home))


@command("STOP SERVICE")
def stop_service(session: Session, *, service_name: str = "", force: bool = False) -> Message:
    """Stop the service; the groups and Manager keep running. ``force``: nothing is asked anyway.

    Raises StateError if it is not running.
    """
    entry = running(session.home)
    if entry is None:
        raise StateError("the service is not running.", hint="START SERVICE")
    request(entry.socket, "STOP")
    ended = supervision.wait_for_end(entry)
    return Message(("Service stopped." if ended else "The service is still completing requests.",))


@command("RESTART SERVICE")
def restart_service(session: Session, *, service_name: str = "") -> Message:
    """Stop the service if it is running, and start it with its current parameters.

    Raises GgsError, and leaves the service running, if it could not start with them.
    """
    entry = running(session.home)
    if entry is not None:
        try:
            _check(session, running_facts(entry))
        except GgsError as error:
            error.message = (
                f"the service was not restarted and keeps running with its previous settings: {error.message}"
            )
            raise
        stop_service(session)
    return start_service(session)


def _check(session: Session, facts: ServiceFacts) -> None:
    """Check that the service can start with its parameter file. Raises GgsError."""
    from ggshell.groups.service_setup import check_setup
    from ggshell.parameters.loading import load_service

    settings = load_service(session.home.parameters("service"))
    check_setup(session.home, settings, (facts.shown.address, facts.ports), session.clock)


@command("INFO SERVICE")
@command("STATUS SERVICE")
def info_service(session: Session, *, service_name: str = "") -> NamedValues:
    """Show the state, the address and the users of the service: of the running process, or else of its parameter file."""
    home = session.home
    state, entry = state_of(home.service)
    if state is ProcessState.RUNNING and entry is not None:
        facts = running_facts(entry)
        notes = facts.notes_about(home)
    else:
        facts, notes = file_facts(home)
    pairs = [("status", str(state)), ("url", url_of(facts.shown)), ("deployment", facts.shown.deployment)]
    if facts.manager_port:
        in_use = "" if facts.manager_listens else " (not listening, see ggserr.log)"
        pairs.insert(2, ("manager port", f"{facts.manager_port}{in_use}"))
    if state is ProcessState.RUNNING and entry is not None:
        pairs.append(("pid", str(entry.pid)))
    pairs += [("metrics", str(facts.shown.metrics)), ("users", str(_user_count(home)))]
    pairs += [("fingerprint", facts.fingerprint)] if facts.fingerprint else []
    width = max(len(name) for name, _ in pairs) + 2
    lines = "".join(f"{name.capitalize():<{width}}{value}\n" for name, value in pairs)
    return NamedValues(tuple(pairs), f"\n{lines}", notes)


def running(home: Home) -> ProcessFile | None:
    """Return the process file of the running service, None if it is not running."""
    state, entry = state_of(home.service)
    return entry if state is ProcessState.RUNNING else None


def _user_count(home: Home) -> int:
    from ggshell.home.users import Users

    return len(Users(home).all())


def _certificate_lines(home: Home, settings: ServiceParameters) -> list[str]:
    value = fingerprint_of_file(home, settings)
    return [f"The fingerprint of its certificate is {value}."] if value else []


def _supervision_note(home: Home) -> tuple[Note, ...]:
    if supervision.manager(home) is not None:
        return ()
    return (Note("GGS-00914", "Manager is not running, so the service is not restarted if it fails."),)
