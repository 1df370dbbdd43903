"""The modules of Spark's Python processes are exempt from garbage collection.

Spark keeps such a process for further tasks. After each task it collects garbage, and would then look at every object of every
module that it has loaded, which takes longer than many tasks: a twentieth of a second.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping
from typing import Any

_KEPT = "SPARK_REUSE_WORKER"
"""Spark sets this variable in the processes that it keeps."""


class _Frozen:
    """Called by the garbage collector: what is left by a full collection after imports is permanent."""

    modules = 0

    def __call__(self, phase: str, info: Mapping[str, Any]) -> None:
        if phase == "stop" and info["generation"] == 2 and len(sys.modules) > self.modules:
            self.modules = len(sys.modules)
            gc.freeze()


def keep_modules() -> None:
    """Exempt the modules from now on, in a process that Spark keeps. In other processes do nothing."""
    if _KEPT in os.environ and not any(isinstance(each, _Frozen) for each in gc.callbacks):
        gc.callbacks.append(_Frozen())
