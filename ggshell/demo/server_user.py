"""The user as which root starts the demo servers: databases refuse to run as root."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

NOBODY: Final = 65534


def give_to_server(folder: Path) -> None:
    """Let the user of the servers own a folder. Other users cannot enter the data folders."""
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    folder.chmod(0o700 if folder.name.startswith("data") else 0o755)
