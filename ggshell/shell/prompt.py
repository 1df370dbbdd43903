"""Banner and prompts: what a GGSCI session prints around the answers."""

from __future__ import annotations

import platform
import socket

from ggshell import __version__
from ggshell.shell.session import PROGRAM, Session


def banner() -> str:
    return (
        f"\n{PROGRAM}\nVersion {__version__}\n{platform.system()}, {platform.machine()}, PostgreSQL\n"
        "Operating system character set identified as UTF-8.\n\nCopyright (C) 2026, the ggshell authors.\n\n\n\n"
    )


def prompt(session: Session, number: int) -> str:
    """``GGSCI (host) 1> ``, after a login ``GGSCI (host as user@database) 2> ``."""
    host = socket.gethostname().split(".")[0]
    login = f" as {session.user}@{session.database}" if session.conninfo else ""
    return f"GGSCI ({host}{login}) {number}> "
