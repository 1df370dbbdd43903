"""The trails that an Extract, a pump or a path writes: opened together, written together, checkpointed together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ggshell.clock import Clock
from ggshell.process.lifecycle import GroupContext
from ggshell.process.trail_forms import TrailForms
from ggshell.record.change import ChangeBatch
from ggshell.route.selection import Selection
from ggshell.store.checkpoint import WriteCheckpoint
from ggshell.store.home import Home
from ggshell.trail.fileheader import FileHeader, Producer
from ggshell.trail.name import TrailName
from ggshell.trail.writer import TrailWriter
from ggshell.types import Csn, TableName

MEGABYTE = 1 << 20


def open_outputs(
    context: GroupContext, producer: Producer, forms: TrailForms, source: FileHeader | None = None
) -> Outputs:
    """A group's trails; ALTER … ETROLLOVER has each go on in a new file, once."""
    outputs = Outputs(context.home, context.checkpoint.write, producer, context.clock, forms, source)
    options = dict(context.checkpoint.options)
    if options.pop("etrollover", False):
        outputs.rollover()
        context.save(context.checkpoint._replace(options=options))
    return outputs


class Outputs:
    """Writers for every trail of a group, each behind a guard that drops what its own trail holds already.

    A trail is the truth about what was written: after a crash it may be ahead of the checkpoint file, and two trails of one
    group may differ by the transaction that the crash interrupted.
    """

    def __init__(
        self,
        home: Home,
        targets: Sequence[WriteCheckpoint],
        producer: Producer,
        clock: Clock,
        forms: TrailForms,
        source: FileHeader | None = None,
    ) -> None:
        """``source``: the file that a pump's rows come from first, where it is known."""
        self._forms = forms
        self._targets = list(targets)
        self._clock = clock
        self._writers: list[TrailWriter] = []
        try:
            for target in targets:
                name = TrailName.parse(target.trail, home.root)
                size = target.megabytes * MEGABYTE
                options = forms.options(target.trail, target.release, source)
                self._writers.append(
                    TrailWriter.open(name, clock=clock, producer=producer, max_bytes=size, options=options)
                )
        except BaseException:
            self.close()
            raise
        self._guards: list[Selection] = []
        self._last_time = 0

    @property
    def after(self) -> Csn | None:
        """The CSN up to which every trail is complete; None when one of them is new."""
        marks = [writer.last_csn for writer in self._writers]
        known = [mark for mark in marks if mark is not None]
        return min(known) if len(known) == len(marks) else None

    def begin(
        self,
        wanted: Callable[[TableName], bool],
        floor: Csn | None,
        *,
        truncates: bool = True,
        since: int = 0,
        ignored: Callable[[TableName], frozenset[int]] | None = None,
        anew: bool = False,
    ) -> None:
        """Say what to write (tables, TRUNCATE or not, the operations to leave out) and where to begin: above a CSN, and in a
        trail that holds nothing yet at the first transaction that committed at a time or later.  ``anew``: whatever the trails
        hold (an initial load is written whole, and all of it has one CSN)."""
        self._guards = []
        for writer in self._writers:
            marks = [mark for mark in (writer.last_csn, floor) if mark is not None and not anew]
            new = 0 if writer.last_csn is not None else since
            after = max(marks) if marks else None
            self._guards.append(Selection(wanted, after, truncates=truncates, since=new, ignored=ignored))

    def follow(self, source: FileHeader) -> None:
        """Write from the next transaction on as the file that the rows come from asks for."""
        for target, writer in zip(self._targets, self._writers, strict=True):
            writer.use(self._forms.options(target.trail, target.release, source))

    def write(self, batch: ChangeBatch) -> list[ChangeBatch]:
        """Hand a batch to every trail; what the first of them took is returned, for the statistics."""
        taken: list[ChangeBatch] = []
        for number, (writer, guard) in enumerate(zip(self._writers, self._guards, strict=True)):
            for part in guard.select(batch):
                writer.write(part)
                if number == 0:
                    taken.append(part)
        if taken:
            self._last_time = taken[-1].pieces[-1].header.commit_time
        return taken

    def flush(self) -> None:
        """Make everything written durable and wake the readers.  Raises DiskError; the writers are then unusable."""
        for writer in self._writers:
            writer.flush()

    def flush_behind(self) -> None:
        """Begin to make everything written durable without waiting for it.  Raises DiskError as ``flush`` does."""
        for writer in self._writers:
            writer.flush_behind()

    def rollover(self) -> None:
        for writer in self._writers:
            writer.rollover()

    def checkpoints(self) -> tuple[WriteCheckpoint, ...]:
        """The durable positions, for the checkpoint file."""
        pairs = zip(self._targets, self._writers, strict=True)
        time = self._last_time
        return tuple(
            target._replace(current=writer.position, current_time=time or target.current_time)
            for target, writer in pairs
        )

    def close(self) -> None:
        for writer in self._writers:
            writer.close()
