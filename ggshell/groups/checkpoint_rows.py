"""A Replicat's rows in the checkpoint table: their keys and names, and what is certain after rows are lost.

The checkpoint file stores the keys, so that a home can be moved.

A classic Replicat has applied everything up to some CSN, which the user can name with START. If transactions are applied in
parallel, no single CSN shows what is applied: any transaction between the last known CSN (the low watermark) and the last
CSN in the trail when the loss was detected may be applied. A CSN within that range is refused, and the range is stored
until the rows exist again. The checkpoint file does not narrow the range, because it may be older than the last run.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ggshell.errors import RowGoneError
from ggshell.home.checkpoint import Checkpoint, GroupOptions
from ggshell.home.home import Home
from ggshell.home.identity import keys_of
from ggshell.pipeline.apply.checkpoint_table import group_key
from ggshell.trail.name import TrailName
from ggshell.types import Csn


def keys_in_use(home: Home, checkpoint: Checkpoint) -> str:
    """Return the text from which a group's keys are derived; for a group from an earlier release, it is the home's."""
    return checkpoint.options.row_keys or keys_of(home.root)


def row_key(home: Home, checkpoint: Checkpoint, name: str) -> int:
    """Return the key of a row of a group: its own row, or the row of one of its threads."""
    known = checkpoint.options.group_key
    if known is not None and name.upper() == checkpoint.group.upper():
        return known
    return group_key(name, keys_in_use(home, checkpoint))


class Uncertain(NamedTuple):
    """The range of CSNs in which it is unknown what is applied; an empty text means no CSN."""

    low: str
    high: str

    @classmethod
    def of(cls, options: GroupOptions) -> Uncertain | None:
        """Read the range from a checkpoint's options; None if there is none."""
        return cls(*options.uncertain) if options.uncertain is not None else None

    @classmethod
    def found(cls, error: RowGoneError, file_says: str, trail: TrailName) -> Uncertain:
        """Return the range for a loss that is detected now: from the row's CSN, or else the file's, to the trail's end."""
        from ggshell.trail.finding import last_csn

        low = error.low if error.low is not None else file_says
        last = last_csn(trail)
        ends = [each for each in (Csn.parse(low) if low else None, last) if each is not None]
        return cls(low, str(max(ends)) if ends else "")

    @property
    def empty(self) -> bool:
        return self.low == self.high

    def allows(self, least: Csn) -> bool:
        """Whether nothing from this CSN on can already be applied."""
        return not self.high or least > Csn.parse(self.high)


LETTERS: Final = 5
"""The number of characters of the group's name; three digits of the thread's number follow."""


def thread_name(group: str, thread: int) -> str:
    """Return the name of a thread's row."""
    return f"{group[:LETTERS].upper()}{thread:03d}"


def thread_keys(home: Home, checkpoint: Checkpoint) -> dict[str, int]:
    """Return the keys of all rows that threads of a coordinated Replicat with this name may have, by the names of the rows."""
    keys, others = keys_in_use(home, checkpoint), {name for name, _ in home.group_names()}
    names = {thread_name(checkpoint.group, thread) for thread in range(1000)} - others
    return {name: group_key(name, keys) for name in names}


def group_of_thread(name: str) -> str:
    """Return the group prefix in the name of a thread's row, or an empty text if it is not the name of a thread."""
    return name[:-3] if len(name) > 3 and name[-3:].isdigit() else ""
