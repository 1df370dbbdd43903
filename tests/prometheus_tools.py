"""Prometheus and promtool from Debian's package, unpacked without installing it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

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
    return folder if _unpack() else None


def _unpack() -> bool:
    """Download and unpack the package; another worker may do the same, so the folder appears whole."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return False
    with tempfile.TemporaryDirectory() as scratch:
        download = subprocess.run(["apt-get", "download", "prometheus"], cwd=scratch, capture_output=True, check=False)
        packages = list(Path(scratch).glob("prometheus_*.deb"))
        if download.returncode or not packages:
            return False
        unpacked = Path(scratch) / "unpacked"
        subprocess.run(["dpkg-deb", "-x", packages[0], unpacked], check=True, capture_output=True)
        if not _CACHE.exists():
            shutil.move(unpacked, _CACHE)
    return True
