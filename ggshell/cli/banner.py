"""The banner and the prompt of a GGSCI session."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ggshell import __version__

if TYPE_CHECKING:
    from ggshell.cli.session import Session

PRODUCT = "ggshell Command Interpreter for PostgreSQL"
ADMIN_CLIENT = "ggshell Administration Client for PostgreSQL"


def short_host() -> str:
    """The host name up to its first dot."""
    return os.uname().nodename.partition(".")[0]


def banner(*, admin_client: bool = False) -> str:
    """The banner that GGSCI, or the Admin Client, prints: product, version, platform and character set."""
    import locale

    system = os.uname()
    lines = [
        "",
        ADMIN_CLIENT if admin_client else PRODUCT,
        f"Version {__version__}",
        f"{system.sysname}, {system.machine}, PostgreSQL",
        f"Operating system character set identified as {locale.getpreferredencoding(do_setlocale=False)}.",
        "",
        "Copyright (C) the ggshell authors. Apache License, Version 2.0.",
        "",
        "",
        "",
    ]
    return "\n".join(lines)


def session_prompt(session: Session, number: int) -> str:
    """Format a session's prompt.

    The Admin Client's is ``OGG (url deployment) 1> `` or ``OGG (not connected) 1> ``. A connected shell shows the
    connection instead of the host.
    """
    remote = session.remote
    if session.options.admin_client:
        return f"OGG ({remote.title if remote is not None else 'not connected'}) {number}> "
    if session.wants_connection:
        return f"GGSCI ({remote.title if remote is not None else 'not connected'}) {number}> "
    return prompt(number, str(session.login or ""))


def prompt(number: int, login: str = "") -> str:
    """Format the prompt: ``GGSCI (host) 1> ``, with ``as user@database`` while logged in."""
    who = f"{short_host()} as {login}" if login else short_host()
    return f"GGSCI ({who}) {number}> "
