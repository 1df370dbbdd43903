"""START, STOP, INFO, STATUS, REFRESH and SEND MANAGER."""

from __future__ import annotations

from datetime import datetime

from ggshell.cli import supervision
from ggshell.cli.banner import short_host
from ggshell.cli.commands.service import running
from ggshell.cli.groups import view
from ggshell.cli.output.units import moment
from ggshell.cli.registry import command
from ggshell.cli.results import Listing, Message, NamedValues
from ggshell.cli.results.groups import ManagerStatus
from ggshell.cli.service_facts import running_facts
from ggshell.cli.session import Session
from ggshell.clock import from_datetime, local_text
from ggshell.errors import ProcessError, StateError
from ggshell.groups.process_request import request
from ggshell.home.checkpoint import GroupKind
from ggshell.home.process_file import ProcessFile, state_of


@command("START MANAGER")
@command("START MGR")
def start_manager(session: Session) -> Message:
    """Start Manager if it is not running."""
    if supervision.manager(session.home) is not None:
        return Message(("Manager is already running.",))
    supervision.start_manager(session.home)
    return Message(("Manager started.",))


@command("STOP MANAGER")
@command("STOP MGR")
def stop_manager(session: Session, *, force: bool = False) -> Message:
    """Stop Manager; the groups keep running. Asks for confirmation if groups are running, unless forced."""
    entry = supervision.manager(session.home)
    if entry is None:
        raise StateError("Manager is not running.")
    if not force and _groups_run(session):
        session.confirm("Groups are running and are not supervised without Manager. Stop it")
    request(entry.socket, "STOP")
    supervision.wait_for_end(entry)
    return Message(("Sending STOP request to MANAGER ...", "Request processed.", "Manager stopped."), apart=True)


@command("INFO MANAGER")
@command("INFO MGR")
@command("STATUS MANAGER")
@command("STATUS MGR")
def info_manager(session: Session) -> ManagerStatus:
    """Show whether Manager is running, with its address and process ID, and on which ports the service listens."""
    entry, ports = supervision.manager(session.home), _service_ports(session)
    if entry is None:
        return ManagerStatus(running=False, service_ports=ports)
    answer = request(entry.socket, "STATUS")
    return ManagerStatus(True, short_host(), int(answer.get("port", 0)), entry.pid, ports)


def _service_ports(session: Session) -> tuple[int, ...]:
    """Return the ports of the running service, its own one first; none if it is not running or ends at this moment."""
    entry = running(session.home)
    if entry is None:
        return ()
    try:
        facts = running_facts(entry)
    except ProcessError:
        return ()
    return facts.shown.port, *sorted(facts.ports - {facts.shown.port})


_NUMBERED = "%-7s%-10s%-10s%-8s%-13s%-21s%-5s"


def _running(session: Session) -> ProcessFile:
    entry = supervision.manager(session.home)
    if entry is None:
        raise StateError("Manager is not running.", hint="START MANAGER")
    return entry


@command("SEND MANAGER CHILDSTATUS")
@command("SEND MGR CHILDSTATUS")
def child_status(session: Session, *, debug: bool = False) -> Listing:
    """List the processes that Manager knows, with process ID and start time of the running ones."""
    children = request(_running(session).socket, "CHILDSTATUS")["children"]
    rows: list[tuple[object, ...]] = []
    for number, child in enumerate(children):
        _, process = state_of(session.home.process(child["group"], GroupKind(child["type"])))
        began = process.started if process is not None and child["pid"] else 0
        rows.append((number, child["group"], child["type"], child["state"], child["pid"], moment(began)))
    lines = ["", "Sending CHILDSTATUS request to MANAGER ...", "", f"Child Process Status - {len(rows)} Entries", ""]
    lines += [_NUMBERED % ("ID", "Group", "Process", "Retry", "Retry Time", "Start Time", "Port")]
    lines += [_NUMBERED % tuple("-" * width for width in (4, 8, 8, 5, 11, 19, 4))]
    for each, group, _, _, pid, since in rows:
        started = local_text(_microseconds(since)) if since else "None"
        lines.append((_NUMBERED % (each, group, pid or "None", 0, "None", started, 0)).rstrip())
    return Listing(("id", "group", "type", "status", "pid", "started"), rows, "\n".join([*lines, ""]))


def _microseconds(iso: object) -> int:
    return from_datetime(datetime.fromisoformat(str(iso)))


@command("SEND MANAGER GETPORTINFO")
@command("SEND MGR GETPORTINFO")
def port_info(session: Session, *, detail: bool = False) -> NamedValues:
    """Show Manager's port. Processes communicate over local sockets, so Manager assigns no dynamic ports."""
    port = int(request(_running(session).socket, "STATUS").get("port", 0))
    lines = ["", "Sending GETPORTINFO request to MANAGER ...", "", f"Manager port {port}"]
    lines += ["No dynamic ports are assigned: processes are reached over local sockets.", ""]
    return NamedValues((("port", str(port)), ("dynamic ports", "0")), "\n".join(lines))


@command("SEND MANAGER GETPURGEOLDEXTRACTS")
@command("SEND MGR GETPURGEOLDEXTRACTS")
def purge_rules(session: Session) -> Listing:
    """Show Manager's PURGEOLDEXTRACTS rules, and for each trail the oldest file that a reader still needs."""
    from ggshell.groups.purge import all_needed
    from ggshell.parameters.process_parameters import PurgeRule

    answer = request(_running(session).socket, "GETPURGEOLDEXTRACTS")
    rules = [PurgeRule(**rule) for rule in answer["rules"]]
    rows: list[tuple[object, ...]] = [(r.trail, r.keep_hours, r.keep_files, r.use_checkpoints) for r in rules]
    lines = ["", "Sending GETPURGEOLDEXTRACTS request to MANAGER ...", "", "PurgeOldExtracts Rules", ""]
    lines.append(f"{'Fileset':<37}{'MinHours':<9}{'MaxHours':<9}{'MinFiles':<9}{'MaxFiles':<9}UseCP")
    lines += [
        f"{r.trail:<37}{r.keep_hours:<9}{0:<9}{r.keep_files:<9}{0:<9}{'Y' if r.use_checkpoints else 'N'}" for r in rules
    ]
    readers = [entry.checkpoint for entry in session.home.groups() if entry.checkpoint is not None]
    lines += ["", "Extract Trails", "", f"{'Filename':<37}Oldest_Chkpt_Seqno"]
    lines += [f"{name!s:<37}{seqno}" for name, seqno in all_needed(readers, session.home).items()]
    return Listing(("fileset", "min_hours", "min_files", "use_checkpoints"), rows, "\n".join([*lines, ""]))


@command("REFRESH MANAGER")
@command("REFRESH MGR")
def refresh_manager(session: Session) -> Message:
    """Make Manager reload its parameter file; a file with an error changes nothing. Raises ParameterError."""
    request(_running(session).socket, "REFRESH")
    return Message(("Sending REFRESH request to MANAGER ...", "Request processed."), apart=True)


def _groups_run(session: Session) -> bool:
    entries = [entry for entry in session.home.groups() if entry.checkpoint is not None]
    return any(view(session.home, entry).runs for entry in entries)
