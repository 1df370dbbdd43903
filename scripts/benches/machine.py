"""The machine of a run: its size, and how busy other programs keep it."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import NamedTuple

from ggshell.clock import pause

MOST_BUSY = 0.25
"""Cores in use by other programs, from which a machine counts as busy."""
_SAMPLE_SECONDS = 2.0


class Load(NamedTuple):
    """``average``: the load average of one minute. ``cores``: cores in use during a sample, in which no bench ran."""

    average: float
    cores: float

    @property
    def busy(self) -> bool:
        return self.cores > MOST_BUSY

    def __str__(self) -> str:
        return f"load average {self.average:.2f}, {self.cores:.2f} cores in use"


def load(seconds: float = _SAMPLE_SECONDS) -> Load:
    """Measure for some seconds how busy the machine is."""
    before = _used_ticks()
    pause(seconds)
    cores = (_used_ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds
    return Load(round(os.getloadavg()[0], 2), round(cores, 2))


def _used_ticks() -> int:
    """Processor time of all programs since the start of the machine. User, nice, system, interrupts and stolen time count."""
    fields = [int(each) for each in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _idle, _waiting, interrupts, soft, stolen = fields
    return user + nice + system + interrupts + soft + stolen


def machine() -> str:
    """The machine's size and its interpreter."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.machine()}, {platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} cores ({_processor()}), {memory:.0f} GB, {system}"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else "unknown processor"
