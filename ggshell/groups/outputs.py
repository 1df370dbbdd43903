"""The trails that an Extract, a pump or a path writes; they are opened, written and checkpointed together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ggshell.clock import Clock
from ggshell.groups.lifecycle import GroupContext
from ggshell.groups.progress import completed_of
from ggshell.groups.receivers import Receivers
from ggshell.groups.trail_forms import TrailForms
from ggshell.home.checkpoint import GroupOptions, WriteCheckpoint
from ggshell.pipeline.transform.selection import Selection
from ggshell.record.change import ChangeBatch
from ggshell.record.transaction import Completed
from ggshell.trail.copying import CopySource, TrailCopy
from ggshell.trail.fileheader import FileHeader, Producer
from ggshell.trail.files import Transfer
from ggshell.trail.writer import TrailWriter, WriterOptions
from ggshell.types import TableName, TrailPosition

MEGABYTE = 1 << 20


def open_outputs(
    context: GroupContext,
    producer: Producer,
    forms: TrailForms,
    source: FileHeader | None = None,
    purges: Mapping[str, int] = MappingProxyType({}),
    *,
    forwards: bool = False,
) -> Outputs:
    """Open a group's trails; after ALTER … ETROLLOVER, each of them starts a new file, once (``without_rollover``).

    ``purges``: trails whose files are removed first, each from a sequence number on. ``forwards``: the group reads a trail.
    Raises NotFoundError if the group has no trail, or not the one that the parameter file names.
    """
    forms.require_added(context.group, [target.trail for target in context.checkpoint.write])
    context.watch.check()  # do not create folders at the old path of a moved home
    receivers = Receivers(context, forms.hosts, purges)
    targets = receivers.located(context.checkpoint.write)
    if targets != context.checkpoint.write:
        context.save(context.checkpoint._replace(write=targets))
    outputs = Outputs(receivers, targets, producer, context.clock, forms, source, forwards=forwards)
    outputs.set_completed(completed_of(context.checkpoint))
    if context.checkpoint.options.etrollover:
        outputs.rollover()
    return outputs


def roll(context: GroupContext, outputs: Outputs | None) -> dict[str, Any]:
    """Answer a ROLLOVER: each trail begins a new file with its next transaction, also if another run writes it.

    ``outputs``: the trails, None if they are not open. Raises DiskError, ConnectionLostError.
    """
    options = context.checkpoint.options._replace(etrollover=True)
    context.save(context.checkpoint._replace(options=options))
    if outputs is not None:
        outputs.rollover()
    return {}


def without_rollover(options: GroupOptions, outputs: Outputs) -> GroupOptions:
    """Return the options for a checkpoint of these trails: a requested file is still requested until it has a transaction."""
    return options._replace(etrollover=options.etrollover and outputs.rollover_waits)


class Outputs:
    """The writers of a group's trails, each with a filter that drops what its trail already contains.

    The trail itself determines what was written: after a crash it may be ahead of the checkpoint file, and two trails of a
    group may differ by the transaction that the crash interrupted.
    """

    def __init__(
        self,
        receivers: Receivers,
        targets: Sequence[WriteCheckpoint],
        producer: Producer,
        clock: Clock,
        forms: TrailForms,
        source: FileHeader | None = None,
        *,
        forwards: bool = False,
    ) -> None:
        """``source``: the header of the first file that a pump reads, or None if there is none yet."""
        self._forms = forms
        self._forwards = forwards
        self._copies: list[TrailCopy] = []
        self._targets = list(targets)
        self._clock = clock
        self._writers: list[TrailWriter] = []
        try:
            for target in targets:
                size = target.megabytes * MEGABYTE
                options = self._options(target, source)
                self._writers.append(
                    TrailWriter.over(
                        receivers.open(target),
                        clock=clock,
                        producer=producer,
                        max_bytes=size,
                        options=options,
                        reached=target.current,
                    )
                )
        except BaseException:
            self.close()
            raise
        self._selections: list[Selection] = []
        self._known: Completed | None = None
        self._last_time = 0

    def _options(self, target: WriteCheckpoint, source: FileHeader | None) -> WriterOptions:
        return self._forms.options(target.trail, target.release, source)._replace(forwards=self._forwards)

    def set_completed(self, last: Completed | None) -> None:
        """Set the last transactions according to the checkpoint, because older trail files may no longer exist."""
        self._known = last

    @property
    def after(self) -> Completed | None:
        """The last transactions that every trail contains; None if a trail is new."""
        found = [self._held(writer) for writer in self._writers]
        known = [held for held in found if held is not None]
        return functools.reduce(Completed.common, known) if known and len(known) == len(found) else None

    @property
    def no_longer_encrypted(self) -> list[str]:
        """The trails whose newest file is encrypted but whose next file will not be."""
        return [
            target.trail
            for target, writer in zip(self._targets, self._writers, strict=True)
            if writer.is_encrypted and not writer.encrypts
        ]

    def _held(self, writer: TrailWriter) -> Completed | None:
        """Return the last CSN in a trail and the transactions with that CSN; None if the trail is empty."""
        csn = writer.last_csn
        if csn is None:
            return None
        held = Completed(csn, writer.transactions_of(csn))
        return held.joined(self._known) if self._known is not None and self._known.csn == csn else held

    def begin(
        self,
        wanted: Callable[[TableName], bool],
        floor: Completed | None,
        *,
        truncates: bool = True,
        since: int = 0,
        ignored: Callable[[TableName], frozenset[int]] | None = None,
        sequences: Callable[[TableName], bool] | None = None,
        repeats: bool = False,
    ) -> None:
        """Set what to write and where to begin.

        ``wanted``, ``truncates`` and ``ignored``: the tables, whether TRUNCATE is written, and the operations to leave
        out. ``sequences``: the sequences in addition to the tables. ``floor``: begin after these transactions.
        ``since``: an empty trail begins with the first transaction that committed at this time or later. ``repeats``:
        do not skip what the trails already contain; for an initial load, which is written completely and has a single
        CSN.
        """
        self._selections = []
        for writer in self._writers:
            ends = [end for end in (self._held(writer), floor) if end is not None and not repeats]
            new = 0 if writer.last_csn is not None else since
            after = functools.reduce(Completed.joined, ends) if ends else None
            self._selections.append(
                Selection(wanted, after, truncates=truncates, since=new, ignored=ignored, sequences=sequences)
            )

    def follow(self, source: FileHeader) -> None:
        """From the next transaction on, write in the format of the given source file."""
        for target, writer in zip(self._targets, self._writers, strict=True):
            writer.use(self._options(target, source))

    def copy_from(self, source: CopySource) -> None:
        """From now on, copy unchanged batches as the bytes of the source trail. Call it after ``begin``."""
        pairs = zip(self._writers, self._selections, strict=True)
        self._copies = [TrailCopy(source, writer, selection) for writer, selection in pairs]

    def write(self, batch: ChangeBatch, *, changed: bool = False) -> list[ChangeBatch]:
        """Write a batch to every trail; return the parts written to the first trail, for the statistics.

        ``changed``: its rows are not those of the source trail, so they are encoded, and so is the rest of the source file."""
        taken: list[ChangeBatch] = []
        if changed:
            for copy in self._copies:
                copy.leave()
        for number, (writer, selection) in enumerate(zip(self._writers, self._selections, strict=True)):
            parts = self._copies[number].write(batch) if self._copies and not changed else None
            if parts is None:
                parts = []
                for part in selection.select(batch):
                    writer.write(part)
                    parts.append(part)
            if number == 0:
                taken = parts
        if taken:
            self._last_time = taken[-1].pieces[-1].header.commit_time
        return taken

    def copy_rest(self, rba: int) -> bool:
        """Copy what stands after the last row up to this RBA; return whether there was anything. Raises DiskError."""
        copied = [copy.rest(rba) for copy in self._copies]
        return any(copied)

    def flush(self) -> None:
        """Make everything written durable and wake the readers. Raises DiskError; the writers then cannot be used."""
        if len(self._writers) > 1:
            self.send()  # no receiver waits for another one
        for writer in self._writers:
            writer.flush()

    def flush_here(self) -> None:
        """Send what was written to receivers, and make it durable on this machine, without waiting for acknowledgements.

        Raises DiskError and ConnectionLostError."""
        self.send()
        for writer in self._writers:
            if writer.transfer is None:
                writer.flush()

    def are_durable(self) -> bool:
        """Whether every trail is durable up to its last whole transaction, and its receiver has taken everything sent."""
        return self.hold(self.checkpoints_behind()) and not any(each.in_flight for each in self.transfers())

    def flush_behind(self) -> None:
        """Start to make everything written durable, without waiting. Raises DiskError like ``flush``."""
        for writer in self._writers:
            writer.flush_behind()

    def send(self) -> None:
        """Send what was written to receivers; files of this machine wait for ``flush``. Raises ConnectionLostError."""
        for writer in self._writers:
            writer.send()

    def remove_unfinished(self) -> None:
        """Continue after the last complete transaction and make it durable; the source sends the rest again.

        Raises DiskError.
        """
        for writer in self._writers:
            writer.remove_unfinished()

    def rollover(self) -> None:
        for writer in self._writers:
            writer.rollover()

    def begin_new_files(self) -> dict[str, int]:
        """Let each trail begin a new file, unless it has no transactions; return the sequence number of that file for each."""
        found: dict[str, int] = {}
        for target, writer in zip(self._targets, self._writers, strict=True):
            is_empty = writer.last_csn is None
            found[target.trail] = writer.position.seqno if is_empty else writer.rollover().seqno
        return found

    @property
    def rollover_waits(self) -> bool:
        """Whether a trail has not begun a requested file yet."""
        return any(writer.rollover_waits for writer in self._writers)

    def checkpoints(self) -> tuple[WriteCheckpoint, ...]:
        """Return the durable positions, for the checkpoint file."""
        return self._at([writer.position for writer in self._writers])

    def checkpoints_behind(self) -> tuple[WriteCheckpoint, ...]:
        """Return the positions of everything written so far, for the checkpoint file once the trails ``hold`` them."""
        return self._at([writer.ended for writer in self._writers])

    def hold(self, places: Sequence[WriteCheckpoint]) -> bool:
        """Whether the trails are durable up to these positions."""
        return all(writer.position >= each.current for writer, each in zip(self._writers, places, strict=True))

    def _at(self, places: Sequence[TrailPosition]) -> tuple[WriteCheckpoint, ...]:
        time = self._last_time
        return tuple(
            target._replace(current=place, current_time=time or target.current_time)
            for target, place in zip(self._targets, places, strict=True)
        )

    @property
    def is_broken(self) -> bool:
        """Whether a trail must be opened again: the connection to its receiver was lost."""
        return any(writer.is_broken for writer in self._writers)

    def wake(self) -> list[int]:
        """Descriptors that are readable when a receiver has sent something, which ``check`` takes."""
        return [each for writer in self._writers for each in writer.wake()]

    def check(self) -> None:
        """Keep the connections to receivers alive. Raises ConnectionLostError if one was lost."""
        for writer in self._writers:
            writer.check()

    def transfers(self) -> list[Transfer]:
        """How the connections to receivers work now."""
        found = (writer.transfer for writer in self._writers)
        return [each for each in found if each is not None]

    def close(self) -> None:
        for writer in self._writers:
            writer.close()
