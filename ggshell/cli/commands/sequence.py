"""FLUSH SEQUENCE."""

from __future__ import annotations

from ggshell.cli.registry import command
from ggshell.cli.results import Listing
from ggshell.cli.session import Session
from ggshell.errors import StatementError
from ggshell.types import split_name


@command("FLUSH SEQUENCE")
def flush_sequence(session: Session, *, sequence: str) -> Listing:
    """Write the exact values of sequences to the source's log, so that Replicat sets those of the target to them."""
    login = session.logged_in()
    try:
        split_name(sequence)
    except ValueError as error:
        raise StatementError(str(error)) from None
    found = login.flush_sequences(sequence)
    count = "Value of 1 sequence" if len(found) == 1 else f"Values of {len(found)} sequences"
    width = max(len(str(each.name)) for each in found)
    lines = [f"  {each.name!s:{width}}  {each.last}" + ("" if each.called else " (next)") for each in found]
    rows = [(str(each.name), each.last, each.called) for each in found]
    return Listing(
        ("sequence", "last_value", "is_called"), rows, "\n".join(["", f"{count} written to the log:", *lines, ""])
    )
