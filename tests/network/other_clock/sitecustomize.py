"""Python loads this in the processes of a home whose machine has another clock: it shifts the time, and the times of files.

``GGSHELL_TEST_CLOCK``: by how many seconds. The steady clock stays as it is, and so does the clock of the databases.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

SECONDS = float(os.environ.get("GGSHELL_TEST_CLOCK", "0"))


def _shifted_stat(function: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
    """The machine's clock also gave the files their times."""

    def call(*words: Any, **options: Any) -> os.stat_result:
        kind, (values, more) = function(*words, **options).__reduce__()  # type: ignore[misc]
        for name in ("st_atime", "st_mtime", "st_ctime"):
            more[name] += SECONDS
            more[f"{name}_ns"] += round(SECONDS * 1e9)
        return kind((*values[:7], *(round(each + SECONDS) for each in values[7:10])), more)  # type: ignore[no-any-return]

    return call


if SECONDS:
    _time, _time_ns = time.time, time.time_ns
    time.time = lambda: _time() + SECONDS
    time.time_ns = lambda: _time_ns() + round(SECONDS * 1e9)
    os.stat, os.lstat, os.fstat = _shifted_stat(os.stat), _shifted_stat(os.lstat), _shifted_stat(os.fstat)
