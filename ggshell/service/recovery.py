"""Undoes what requests had done that the end of the service interrupted: at the next start, or before the next change."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from typing import Final

from ggshell.errors import DiskError, GgsError
from ggshell.home.events import Severity
from ggshell.home.unfinished import changed_objects
from ggshell.home.users import Role
from ggshell.service.call import Call, Request
from ggshell.service.sign_in import Principal
from ggshell.service.state import ServiceState
from ggshell.service.steps import Journal, undo

RETRY_SECONDS: Final = 30.0
"""How long to wait before what could not be undone is tried again, for example until a database answers."""
_USER: Final = "service"
_CLIENT: Final = "recovery"


def undo_unfinished(state: ServiceState, changed: Iterable[str], *, forced: bool = False) -> None:
    """Undo what interrupted requests had done with objects, and write an event for each step.

    The caller holds the locks of the objects. ``forced``: forget the steps that cannot be undone. Raises GgsError if a step
    cannot be undone now, or a journal cannot be read.
    """
    for name in changed:
        _undo_unfinished(state, name, forced=forced)


def _undo_unfinished(state: ServiceState, changed: str, *, forced: bool) -> None:
    journal = Journal(state.home, changed)
    found = journal.read()
    if found is None:
        return
    call = Call(state, Request("POST", "", "", {}, {}, None, False, _CLIENT), Principal(_USER, Role.SECURITY))
    try:
        call.session.keeps_journal = True
        left, errors, done = undo(call, found.steps, later=True)
    finally:
        call.close()
    for text in done:
        state.event(Severity.WARNING, "GGS-00935", f"{found.request} was interrupted: {text}.")
    journal.write(type(found)(found.request, () if forced else tuple(left)))
    if errors:
        error = errors[0]
        error.message = f"{found.request} was interrupted and cannot be undone: {error.message}"
        if left and not forced:
            raise error
        state.event(Severity.WARNING, error.code, str(error))


class Recovery:
    """The thread that undoes interrupted requests, and repeats what could not be undone."""

    def __init__(self, state: ServiceState) -> None:
        self._state = state
        self._stopped = False
        self._told: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="recovery", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stopped = True
        self._state.undo_again.set()
        self._thread.join(timeout=1)

    def _run(self) -> None:
        while not self._stopped:
            self._state.undo_again.clear()
            left = [name for name in changed_objects(self._state.home) if not self._undone(name)]
            self._state.undo_again.wait(RETRY_SECONDS if left else None)

    def _undone(self, name: str) -> bool:
        """Undo what is unfinished of one object; return whether nothing is left. The first failure is an event."""
        try:
            with self._state.locks.held([name], 0):
                undo_unfinished(self._state, [name])
        except GgsError as error:
            if str(error) not in self._told:
                self._told.add(str(error))
                with contextlib.suppress(DiskError):  # on a full disk there is nowhere to write
                    self._state.event(Severity.WARNING, error.code, str(error))
            return False
        return True
