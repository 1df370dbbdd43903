"""Fetches a trail of another home in a thread, while the process copies what has arrived to its target trail."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any, Final

from ggshell.clock import Clock
from ggshell.errors import ConnectionLostError, DiskError, GgsError, ProcessError, TrailError
from ggshell.groups.connection_state import ConnectionState
from ggshell.groups.lifecycle import GroupContext
from ggshell.groups.receivers import access_of, proxy_of, sender_of
from ggshell.groups.reconnecting import Backoff, connected
from ggshell.home.checkpoint import GroupOptions
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.network.addresses import ReceiverAddress, parse_source
from ggshell.network.dialing import DEFAULT_SOCKET, dial
from ggshell.network.frames import INVALID
from ggshell.network.link import PING_SECONDS, Link
from ggshell.network.trail_copy import CopyStart, TrailCopy, forget_reading
from ggshell.trail.files import Transfer
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition
from ggshell.wake_up import WakeUp

END_SECONDS: Final = 30.0
MOST_AHEAD: Final = 1 << 30
"""Bytes of the copy that may wait for the target trail; then the source waits too, instead of filling this disk."""
ROOM_SECONDS: Final = 1.0


class Fetcher:
    """Keeps a copy of a source trail up to date, and connects again with back-off when the line is lost."""

    def __init__(self, context: GroupContext, copy: TrailName, address: ReceiverAddress, start: CopyStart) -> None:
        self._context = context
        self._name = copy
        self._address = address
        self._start = start
        self.where = address.where
        """The service of the source, for messages."""
        self._state = ConnectionState(context.clock)
        self._copy: TrailCopy | None = None
        self._link: Link | None = None
        self._error: GgsError | None = None
        self._stop = threading.Event()
        self._turn = threading.Lock()
        self._changed = WakeUp()
        self._thread = threading.Thread(target=self._run, name="fetcher", daemon=True)
        self.durable: TrailPosition | None = None
        """The end of the copy; None while it has no file."""
        self.begin: TrailPosition | None = None
        """Where a path with BEGIN begins, as the source said at the first connection; None before it, or for a trail without a
        file."""

        self.is_copied = False
        """Whether the copy is being copied to the target trail, from the position in the checkpoint on."""

    def start(self) -> None:
        self._thread.start()

    def fileno(self) -> int:
        """Readable when the copy has its first rows, or fetching has failed; ``drain`` resets it."""
        return self._changed.fileno()

    def drain(self) -> None:
        self._changed.drain()

    def check(self) -> None:
        """Raise the error that ended the fetching, if there is one."""
        if self._error is not None:
            raise self._error

    def answer(self) -> dict[str, Any]:
        """Return what STATUS says about the connection to the source. Any thread can call this."""
        with self._turn:
            link, copy = self._link, self._copy
            transfer = (
                Transfer(self.where, copy.received, copy.on_line, self._waiting(), link.round_trip)
                if link is not None and copy is not None
                else None
            )
        answer = self._state.answer_of_source(transfer)
        return answer if transfer is not None else {"status": f"Waiting for {self.where}", **answer}

    @property
    def is_complete(self) -> bool:
        """Whether the line is connected and the source has nothing more than the copy."""
        copy = self._copy
        return copy is not None and self._link is not None and copy.is_complete

    def close(self) -> None:
        """Stop fetching, and wait until the copy is released."""
        self._stop.set()
        with self._turn:
            if self._link is not None:
                self._link.interrupt()
        if self._thread.is_alive():
            self._thread.join(END_SECONDS)
        self._changed.close()

    def _run(self) -> None:
        backoff = Backoff()
        while not self._stop.is_set():
            try:
                self._session(backoff)
            except (ConnectionLostError, TrailError) as error:
                self._state.failed(error)
                if isinstance(error, TrailError) and error.code != INVALID:
                    self._fail(error)
                    return
                if self._stop.is_set():
                    return
                pause = backoff.next()
                self._report(Severity.WARNING, error.code, f"{error} - retrying in {pause:g} seconds.")
                self._stop.wait(pause)
            except GgsError as error:
                self._fail(error)
                return
            except Exception as error:  # noqa: BLE001 - the process's own thread reports it as a bug
                self._fail(_bug(error))
                return

    def _session(self, backoff: Backoff) -> None:
        """Connect, and fetch until the connection ends. Raises GgsError."""
        context = self._context
        copy = TrailCopy(self._name, self._address.uri)
        link: Link | None = None
        try:
            self._arrived(copy)
            options = context.checkpoint.options
            access = access_of(context.home, options)
            settings = DEFAULT_SOCKET._replace(proxy=proxy_of(context.home, options))
            link = dial(self._address, context.home, context.clock, access, settings)
            with self._turn:
                self._link, self._copy = link, copy
            if self._stop.is_set():
                return
            reader = sender_of(context.home, context.group, context.clock, access)
            trail, compression = self._address.trail, options.compression
            copy.open(link, self.where, trail, reader, self._start, compression, options.alias_of)
            self.begin = self.begin or copy.begin
            self._state.opened()
            with suppress(DiskError):  # the report cannot be written: that must not end the fetching
                connected(context, backoff)
            while not self._stop.is_set():
                has_room = self._has_room()
                copy.take(link, self.where, PING_SECONDS if has_room else ROOM_SECONDS, has_room=has_room)
                self._arrived(copy)
        finally:
            with self._turn:
                self._link = self._copy = None
            if link is not None:
                link.close()
            copy.close()

    def _has_room(self) -> bool:
        """Whether little enough of the copy waits for the target trail."""
        return not self.is_copied or self._waiting() < MOST_AHEAD

    def _waiting(self) -> int:
        """Return how many bytes of the copy the checkpoint has not passed yet."""
        place, durable = self._context.checkpoint.read.current, self.durable
        if durable is None or not isinstance(place, TrailPosition):
            return 0
        waits = durable.rba - place.rba
        with suppress(OSError):  # removed in this moment, because it was copied
            waits += sum(self._name.file(seqno).stat().st_size for seqno in range(place.seqno, durable.seqno))
        return max(0, waits)

    def _arrived(self, copy: TrailCopy) -> None:
        before, self.durable = self.durable, copy.durable
        if before != self.durable:
            self._changed.ring()

    def _fail(self, error: GgsError) -> None:
        self._error = error
        self._changed.ring()

    def _report(self, severity: Severity, code: str, text: str) -> None:
        with suppress(GgsError):  # a full disk must not end the fetching
            self._context.report.event(severity, code, text)


def forget_at_source(home: Home, group: str, options: GroupOptions, clock: Clock) -> None:
    """Notify the source of a path that the path no longer needs the trail. Raises GgsError if that is not possible."""
    address = parse_source(options.source)
    access = access_of(home, options)
    link = dial(address, home, clock, access, DEFAULT_SOCKET._replace(proxy=proxy_of(home, options)))
    try:
        reader = sender_of(home, group, clock, access)
        forget_reading(link, address.where, address.trail, reader)
    finally:
        link.close()


def _bug(error: Exception) -> GgsError:
    return ProcessError(f"internal error: {type(error).__name__}: {error}", code="GGS-00999").with_traceback(
        error.__traceback__
    )
