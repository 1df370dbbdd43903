"""The process of a path that its target starts (RECVPATH): fetches a trail of another home and copies it to a trail here.

Fetching keeps an exact copy of the source trail below dirtmp; the copy to the target trail is that of any path. Files of the
copy that the checkpoint has passed are removed.
"""

from __future__ import annotations

import shutil
from typing import Any, Final

from ggshell.errors import DiskError
from ggshell.groups.fetcher import Fetcher
from ggshell.groups.lifecycle import GroupContext, run_group
from ggshell.groups.path import forward, wanted_tables
from ggshell.groups.trail_forms import TrailForms
from ggshell.home.checkpoint import AddedAt, GroupKind
from ggshell.home.home import Home
from ggshell.network.addresses import parse_source
from ggshell.network.trail_copy import CopyStart
from ggshell.trail.name import TrailName
from ggshell.trail.removing import remove_file
from ggshell.types import TrailPosition

CHECK_SECONDS: Final = 1.0
_SAVE: Final = 10
"""Seconds between two checkpoints under load, at most."""
REMOVE_SECONDS: Final = 5.0
_AT_END: Final = "NOW"


def run(home: Home, group: str) -> int:
    """Run a path that its target starts until it is stopped; return the exit code."""
    return run_group(home, group, GroupKind.RECVPATH, receive)


def receive(context: GroupContext) -> None:
    """Fetch the source trail and copy it to the target trail until stopped."""
    checkpoint = context.checkpoint
    copy = TrailName.parse(checkpoint.read.trail, context.home.root)
    place = _begin(context)
    if place is None or place.seqno not in copy.sequences():
        remove_copy(copy)  # a new path, or one that was moved, or a copy that was removed: it is fetched again
    since = 0 if checkpoint.begin == _AT_END else checkpoint.begin_time
    start = CopyStart(place, at_end=checkpoint.begin == _AT_END, since=since if place is None else 0)
    fetcher = Fetcher(context, copy, parse_source(checkpoint.options.source), start)
    context.runner.every(CHECK_SECONDS, fetcher.check)
    fetcher.start()
    try:
        if _wait_for_rows(context, fetcher, place):
            _settle_begin(context, fetcher, copy)
            fetcher.is_copied = True
            context.runner.every(REMOVE_SECONDS, lambda: _remove_passed(context, copy))
            wanted = wanted_tables(context)
            forward(
                context,
                wanted,
                _SAVE,
                TrailForms(context.home),
                complete=lambda: fetcher.is_complete,
                source=fetcher.answer,
            )
    finally:
        fetcher.close()


def remove_copy(copy: TrailName) -> None:
    """Remove the copy of a source trail with its folder. Raises DiskError."""
    try:
        if copy.folder.exists():
            shutil.rmtree(copy.folder)
    except OSError as error:
        raise DiskError(f"cannot remove {copy.folder}: {error.strerror}") from error


def _begin(context: GroupContext) -> TrailPosition | None:
    """Return the position in the source trail; None if it is determined at the first connection."""
    place = context.checkpoint.read.current
    pending = context.checkpoint.options.added is AddedAt.FIRST
    return place if isinstance(place, TrailPosition) and not pending else None


def _wait_for_rows(context: GroupContext, fetcher: Fetcher, place: TrailPosition | None) -> bool:
    """Wait until the copy reaches the position; return False if the process is to stop before."""
    status: dict[str, Any] = {"status": f"Waiting for rows from {fetcher.where}", "read": {}, "write": [], "slot": {}}
    context.verb("STATUS", lambda _: {**status, **fetcher.answer()})
    while not context.runner.stop_requested:
        fetcher.drain()
        fetcher.check()
        durable, wanted = fetcher.durable, place
        if place is None and context.checkpoint.begin:
            wanted = fetcher.begin
        if durable is not None and (wanted is None or durable >= wanted):
            return True
        context.runner.wait([fetcher.fileno()], CHECK_SECONDS)
    return False


def _settle_begin(context: GroupContext, fetcher: Fetcher, copy: TrailName) -> None:
    """Save the position at which a new path begins: the copy's first file, or what the source said for BEGIN."""
    if _begin(context) is not None:
        return
    checkpoint = context.checkpoint
    place = TrailPosition(copy.sequences()[0], 0)
    if checkpoint.begin and fetcher.begin is not None:
        place = fetcher.begin
    read = checkpoint.read._replace(startup=place, recovery=place, current=place)
    context.save(checkpoint._replace(read=read, options=checkpoint.options._replace(added=None)))


def _remove_passed(context: GroupContext, copy: TrailName) -> None:
    """Remove the files of the copy that the checkpoint has passed. Raises DiskError."""
    place = context.checkpoint.read.current
    if not isinstance(place, TrailPosition):
        return
    try:
        for seqno in copy.sequences():
            if seqno < place.seqno:
                remove_file(copy.file(seqno))
    except OSError as error:
        raise DiskError(f"cannot remove {error.filename}: {error.strerror}") from error
