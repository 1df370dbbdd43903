"""MAINTAIN LAKE, and ALTER REPLICAT … MAINTAIN, which schedules it."""

from __future__ import annotations

from collections.abc import Callable

from ggshell.cli import registrations
from ggshell.cli.groups import REPLICAT, View, one
from ggshell.cli.output.tables import table_text
from ggshell.cli.registry import command
from ggshell.cli.replicat_rows import folder_target
from ggshell.cli.results import Listing, Message
from ggshell.cli.session import Session
from ggshell.durations import MINUTE
from ggshell.errors import UsageError
from ggshell.home.checkpoint import ReplicatKind
from ggshell.home.maintenance import MaintenanceSettings, TableResult


@command("MAINTAIN LAKE")
def maintain_lake(session: Session, *, group_name: str, now: bool = False) -> Listing:
    """Maintain the lake of a group; show what was done, by table."""
    found = _lake(session, group_name)
    options = found.checkpoint.options
    lake = folder_target(session, options.target, found.group)
    result = lake.maintain(options.maintenance, session.clock)
    rows = [tuple(table) for table in result.tables]
    layout = table_text(TableResult._fields, rows) if rows else f"Lake {lake.location} has no tables yet.\n"
    return Listing(TableResult._fields, rows, layout if layout.endswith("\n") else f"{layout}\n")


@command("ALTER REPLICAT MAINTAIN EVERY")
def maintain_every(
    session: Session,
    *,
    group_name: str,
    interval: float,
    targetsize: int | None = None,
    retain: float | None = None,
    versions: int | None = None,
    safeage: float | None = None,
) -> Message:
    """Let Manager maintain the lake of a stopped group at an interval."""
    if interval < MINUTE:
        raise UsageError(f"an interval of {interval:g} seconds is too short.", hint="MAINTAIN EVERY 1M or longer")
    if targetsize is not None and targetsize < _SMALLEST:
        raise UsageError(f"TARGETSIZE of {targetsize} bytes is too small.", hint="TARGETSIZE 1M or larger")
    chosen = {"target_bytes": targetsize, "retain": retain, "versions": versions, "safe_age": safeage}
    given = {name: int(value) for name, value in chosen.items() if value is not None}
    return _save(session, group_name, lambda _: MaintenanceSettings(every=int(interval), **given))


_SMALLEST = 1 << 20


@command("ALTER REPLICAT MAINTAIN OFF")
def maintain_off(session: Session, *, group_name: str) -> Message:
    """Maintain the lake of a stopped group only on request; the other settings remain."""
    return _save(session, group_name, lambda settings: settings._replace(every=0))


def _save(session: Session, name: str, change: Callable[[MaintenanceSettings], MaintenanceSettings]) -> Message:
    with registrations.held(session, _lake(session, name), "altered") as group:
        options = group.checkpoint.options
        changed = options._replace(maintenance=change(options.maintenance))
        group.save(group.checkpoint._replace(options=changed))
    return Message(("REPLICAT altered.",))


def _lake(session: Session, group: str) -> View:
    """A group that delivers to a lake. Raises UsageError for another kind."""
    found = one(session, REPLICAT, group)
    if found.checkpoint.options.replicat_kind is not ReplicatKind.LAKE:
        raise UsageError(f"{found.name} does not deliver to a lake.", hint="name a group of ADD REPLICAT … SPARK")
    return found
