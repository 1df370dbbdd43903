"""A transaction of a database whose connection runs statements as texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def transaction_of(run: Callable[[str], object]) -> Iterator[None]:
    """A transaction: all changes within it are made, or none. ``run`` runs a statement on the connection."""
    run("BEGIN")
    try:
        yield
    except BaseException:
        run("ROLLBACK")
        raise
    run("COMMIT")
