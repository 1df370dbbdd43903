"""Undoes what requests had done that the end of the service interrupted: at the next start, or before the next change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ggshell.home.events import Severity
from ggshell.home.unfinished import changed_objects
from ggshell.home.users import Role
from ggshell.service.background import RETRY_SECONDS, Background, Problems
from ggshell.service.call import Call, Request
from ggshell.service.sign_in import Principal
from ggshell.service.state import ServiceState
from ggshell.service.steps import Journal, undo

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
        self._problems = Problems("recovery", state.report)
        self._thread = Background("recovery", self._turn, state.report, state.undo_again)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._thread.close()

    def _turn(self) -> float | None:
        left = [name for name in changed_objects(self._state.home) if not self._undone(name)]
        return RETRY_SECONDS if left else None

    def _undone(self, name: str) -> bool:
        """Undo the unfinished steps of one object; return whether all of them are undone. Each failure is an event once."""
        try:
            with self._state.locks.held([name], 0):
                undo_unfinished(self._state, [name])
        except Exception as error:  # noqa: BLE001 - what is left of one object must not keep the others from being undone
            self._problems.tell(name, error)
            return False
        self._problems.over(name)
        return True
