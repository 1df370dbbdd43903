"""Prometheus and promtool from Debian's package, unpacked without installing it."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

from debian_packages import unpack

_CACHE = Path(tempfile.gettempdir()) / "ggshell-tests-prometheus"


@cache
def find_prometheus() -> Path | None:
    """The folder with prometheus and promtool: from the PATH, or unpacked from Debian's package. None if neither works."""
    found = shutil.which("promtool")
    if found is not None:
        return Path(found).parent
    folder = _CACHE / "usr" / "bin"
    if (folder / "promtool").exists():
        return folder
    return folder if unpack("prometheus", _CACHE) else None
