"""Ask the processes of several groups at the same time, with one deadline for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

_MOST_ASKED: Final = 16
_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


def ask_together(
    found: Sequence[_Asked], ask: Callable[[_Asked], _Answer], otherwise: Callable[[_Asked], _Answer], seconds: float
) -> list[_Answer]:
    """Return what ``ask`` returns for each of ``found``, in order; ``otherwise`` for those not answered after ``seconds``.

    ``ask`` must end by itself: a call that is still running at the deadline continues in its thread, and its answer is
    not used.
    """
    if not found:
        return []
    from concurrent.futures import ThreadPoolExecutor, wait

    pool = ThreadPoolExecutor(min(_MOST_ASKED, len(found)))
    try:
        futures = [pool.submit(ask, each) for each in found]
        wait(futures, seconds)
        pairs = zip(futures, found, strict=True)
        return [future.result() if future.done() else otherwise(each) for future, each in pairs]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
