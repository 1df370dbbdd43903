"""Programs from Debian's packages, unpacked without installing them."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path


def unpack(package: str, folder: Path) -> bool:
    """Download and unpack a package; another worker may do the same, so the folder appears whole. False without Debian."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return False
    with tempfile.TemporaryDirectory() as scratch:
        download = subprocess.run(["apt-get", "download", package], cwd=scratch, capture_output=True, check=False)
        packages = list(Path(scratch).glob(f"{package}_*.deb"))
        if download.returncode or not packages:
            return False
        unpacked = Path(scratch) / "unpacked"
        subprocess.run(["dpkg-deb", "-x", packages[0], unpacked], check=True, capture_output=True)
        if not folder.exists():
            shutil.move(unpacked, folder)
    return True
