"""What a delivery does while the store or the catalog of its lake does not answer: it tries the batch again, with pauses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ggshell.connectors.lake.target import LakeTarget, TableForm
from ggshell.errors import ConnectionLostError, DiskError, GgsError, StoreError
from ggshell.groups.lifecycle import GroupContext
from ggshell.groups.reconnecting import Backoff, announce, connected
from ggshell.object_stores import store_error


class Outage:
    """Repeats work that a store interrupts. ``waits``: whether the last attempt failed."""

    def __init__(self, context: GroupContext, target: LakeTarget) -> None:
        self.waits = False
        self._context = context
        self._target = target
        self._given_up = threading.Event()

    @property
    def status(self) -> str:
        """The status of a group that waits; empty if it does not."""
        return f"Waiting for lake {self._target.location}" if self.waits else ""

    def give_up(self) -> None:
        """Do not try again: the group stops. Called by another thread than ``run``."""
        self._given_up.set()

    def run(self, work: Callable[[], None]) -> None:
        """Do the work, which can be repeated at any time, until it succeeds.

        Raises the last ConnectionLostError after ``give_up``, and any other error at once.
        """
        backoff = Backoff()
        while True:
            try:
                with self.noted(), errors_by_cause(self._target):
                    work()
            except ConnectionLostError as error:
                if self._given_up.is_set() or self._given_up.wait(announce(self._context, backoff, error)):
                    raise
            else:
                connected(self._context, backoff)
                return

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Record whether the store has answered the work of the block."""
        try:
            yield
        except ConnectionLostError:
            self.waits = True
            raise
        self.waits = False


@contextmanager
def errors_by_cause(target: LakeTarget) -> Iterator[None]:
    """Convert the errors of stores and catalogs: ConnectionLostError if they do not answer, StoreError if a file is missing."""
    try:
        yield
    except GgsError:
        raise
    except FileNotFoundError as error:
        raise StoreError(
            f"lake {target.location} lacks a file of its tables: {str(error).splitlines()[0]}",
            hint="restore the lake: it was moved or emptied, or another program has deleted files of it",
        ) from error
    except Exception as error:
        converted = _converted(target, error)
        if converted is None:
            raise
        raise converted from error


def _converted(target: LakeTarget, error: Exception) -> GgsError | None:
    """The error of this program for one of a library; None for a fault of the program itself."""
    if target.form is TableForm.ICEBERG:
        from ggshell.connectors.lake.forms.iceberg_catalog import catalog_error

        found = catalog_error(target, error)
        if found is not None:
            return found
    if not isinstance(error, OSError):
        return None
    if target.folder is None:
        return store_error(target.location, error)
    return DiskError(f"lake {target.location} cannot be used: {error.strerror or error}")
