"""Groups on disk: written and removed together in their checkpoint file and the catalog."""

from __future__ import annotations

from ggshell.process.state import ALIVE, state_of
from ggshell.shell.groups import View, is_wildcard
from ggshell.shell.session import Session
from ggshell.store import checkpoint as checkpoints
from ggshell.store.checkpoint import Checkpoint, GroupType


def save(session: Session, found: Checkpoint) -> None:
    """Write a group's checkpoint file, which counts, and note it in the catalog."""
    from ggshell.store.catalog import Catalog

    session.home.ensure()
    checkpoints.save(session.home.checkpoint(found.group, found.type), found)
    Catalog(session.home).save_group(found)


def remove(session: Session, found: View) -> None:
    """Remove a group: first from the catalog, which knows it by its file only."""
    from ggshell.store.catalog import Catalog

    Catalog(session.home).delete_group(found.group)
    path = session.home.checkpoint(found.group, found.type)
    path.unlink(missing_ok=True)
    checkpoints.previous(path).unlink(missing_ok=True)
    session.home.process(found.group, found.type).unlink(missing_ok=True)


def set_aside(session: Session, kind: GroupType, group: str) -> list[str]:
    """Make room for a group that is added again where its checkpoint file is damaged and nothing runs; what was done."""
    if state_of(session.home.process(group, kind))[0] in ALIVE:
        return []
    aside = checkpoints.set_aside(session.home.checkpoint(group, kind))
    return [f"The damaged checkpoint file is set aside as {aside}."] if aside is not None else []


def confirm_many(session: Session, pattern: str, what: str, count: int, *, force: bool) -> None:
    """Ask before a wildcard deletes several groups, unless forced."""
    if is_wildcard(pattern) and count > 1 and not force:
        session.confirm(f"Delete {count} groups of {what} {pattern}")
