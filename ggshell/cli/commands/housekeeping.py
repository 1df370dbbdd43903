"""DELETE ER, CLEANUP of groups' run histories, and TAKEOVER HOME."""

from __future__ import annotations

from typing import Final

from ggshell.cli import registrations
from ggshell.cli.commands.extract import delete_extract
from ggshell.cli.commands.replicat import delete_replicat
from ggshell.cli.groups import ER, EXTRACT, REPLICAT, Kinds, View, of_each, require_stopped, select
from ggshell.cli.registry import command
from ggshell.cli.results import Message, Note
from ggshell.cli.session import Session
from ggshell.home.checkpoint import GroupKind
from ggshell.home.identity import take_over

ALONE: Final = (
    "A moved original, or another copy that has taken over, is detected only in the folders next to this home and next to"
    " the original's former location: before START, make sure that neither exists elsewhere, or rows are applied twice or lost."
)


@command("DELETE ER")
def delete_er(session: Session, *, group_name: str, force: bool = False) -> Message:
    """Delete the stopped Extracts and Replicats that match a name; nothing is deleted while one of them is running.

    A group that cannot be deleted for another reason does not stop the others.
    """
    found, errors = select(session, ER, group_name)
    registrations.confirm_many(session, group_name, "ER", len(found), force=force)
    for each in found:
        require_stopped(each, "deleted")

    def deleted(each: View) -> tuple[str, ...]:
        delete = delete_extract if each.type is GroupKind.EXTRACT else delete_replicat
        return delete(session, group_name=each.group, force=force).lines

    lines, failed = of_each(found, group_name, deleted)
    return Message(tuple(lines), (*errors, *failed))


@command("CLEANUP EXTRACT", EXTRACT)
@command("CLEANUP REPLICAT", REPLICAT)
def cleanup(session: Session, kinds: Kinds, *, group_name: str, save: int = 1) -> Message:
    """Delete the run history. A group keeps only the record of its last run, which always remains."""
    found, errors = select(session, kinds, group_name)
    for each in found:
        require_stopped(each, "cleaned up")
    lines = (f"{each.name}: nothing to delete; only the record of the last run is kept." for each in found)
    return Message(tuple(lines), tuple(errors))


@command("TAKEOVER HOME")
def takeover_home(session: Session) -> Message:
    """Make this copy the owner of what its original owned; the original no longer exists."""
    _ = session.events  # updates the recorded location of the home
    if session.interactive:
        session.confirm(f"{ALONE} Take over")
    original = take_over(session.home.root)
    text = f"This home has taken over the groups of {original.root}. Use START to start them here."
    return Message((text,), apart=True, notes=(Note("GGS-00811", ALONE),))
