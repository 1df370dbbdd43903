"""Where START asked a Replicat to go on: kept in its checkpoint file until the target has confirmed something behind it.

The trail is looked at only where a place is asked for; what reads trails is loaded then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.trail.name import TrailName
from ggshell.types import Csn, TrailPosition

if TYPE_CHECKING:
    from ggshell.record.change import ChangeBatch

OPTION = "start"
REFUSED = "refused"
"""An option that stands from an abend until that is passed: sequence number and RBA of the record that could not be applied."""
ADDED = "added"
"""An option that stands until the first run has a checkpoint: whether ADD REPLICAT named a place."""
AT_CSN = "at_csn"
"""An Extract's option that says: capture begins with the transaction behind ``begin_csn``, wherever that begins."""
FIRST, PLACED = "first", "placed"
ANYWHERE = TrailPosition(-1, -1)


class StartPlace(NamedTuple):
    """ATCSN, AFTERCSN or SKIPTRANSACTION; ``base`` is where the group stands whose transaction is to be skipped, anywhere until
    the process that is started has seen that.

    Where transactions are applied beside each other the first one behind that place may be applied already: there those that
    ended runs are skipped by their CSNs and ids (``skipped``) until the group has passed ``behind``.
    """

    csn: str = ""
    after: bool = False
    skip: bool = False
    base: TrailPosition = ANYWHERE
    skipped: tuple[tuple[str, str], ...] = ()
    behind: TrailPosition = ANYWHERE

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> StartPlace | None:
        """What a checkpoint's options hold; None for nothing."""
        kept = options.get(OPTION)
        if not kept:
            return None
        skipped = tuple((str(csn), str(xid)) for csn, xid in kept.get("skipped", ()))
        places = (TrailPosition(*kept["base"]), skipped, TrailPosition(*kept.get("behind", ANYWHERE)))
        return cls(kept["csn"], kept["after"], kept["skip"], *places)

    def as_option(self) -> dict[str, Any]:
        return {**self._asdict(), "base": list(self.base), "behind": list(self.behind)}

    def position(self, name: TrailName, present: TrailPosition) -> TrailPosition:
        """Where to go on: never before the present place, since what lies before it is applied already.

        A transaction is skipped once: not again when the group has moved on since it was asked to.
        """
        from ggshell.trail.finding import position_of_csn
        from ggshell.trail.span import behind_transaction

        if self.skipped:
            return present
        if self.skip:
            return behind_transaction(name, present) if self.base in (ANYWHERE, present) else present
        found = position_of_csn(name, self.least)
        return max(found or _end(name) or present, present)

    @property
    def least(self) -> Csn:
        """The CSN that was asked for: below it nothing is applied, also of what the trail does not have yet."""
        csn = Csn.parse(self.csn)
        return csn._replace(value=csn.value + self.after)

    def with_transaction(self, name: TrailName, refused: TrailPosition) -> StartPlace:
        """The same, that skips the transaction of a record as well."""
        from ggshell.trail.reader import TrailReader

        reader = TrailReader(name, refused)
        try:
            batch = reader.read()
        finally:
            reader.close()
        if batch is None:
            return self
        header = batch.pieces[0].header
        found = (str(header.csn), header.xid)
        return self._replace(skipped=tuple(dict.fromkeys((*self.skipped, found))), behind=max(self.behind, refused))

    def left(self, batch: ChangeBatch) -> ChangeBatch:
        """A batch without the transactions that are skipped by id; their rows stay, so that places behind them are known."""
        pieces = [piece for piece in batch.pieces if (str(piece.header.csn), piece.header.xid) not in self.skipped]
        return batch if len(pieces) == len(batch.pieces) else replace(batch, pieces=tuple(pieces))


def refused_place(options: Mapping[str, Any]) -> TrailPosition | None:
    """The record that ended the last run, until that is passed."""
    kept = options.get(REFUSED)
    return TrailPosition(*kept) if kept else None


def from_csn(batch: ChangeBatch, least: Csn) -> ChangeBatch | None:
    """The transactions of a batch from a CSN on; None when there are none."""
    number = next((number for number, piece in enumerate(batch.pieces) if piece.header.csn.value >= least.value), None)
    if not number:
        return batch if number == 0 else None
    first = batch.pieces[number].first
    pieces = tuple(replace(piece, first=piece.first - first) for piece in batch.pieces[number:])
    return batch.take(slice(first, None), pieces)


def _end(name: TrailName) -> TrailPosition | None:
    from ggshell.trail.reader import TrailReader

    reader = TrailReader(name)
    try:
        return reader.end()
    finally:
        reader.close()
