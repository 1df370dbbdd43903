"""The banner and the prompt of a GGSCI session."""

from __future__ import annotations

import os

from ggshell import __version__

PRODUCT = "ggshell Command Interpreter for PostgreSQL"


def short_host() -> str:
    """The host name up to its first dot."""
    return os.uname().nodename.partition(".")[0]


def banner() -> str:
    """The banner that GGSCI prints: product, version, platform and character set."""
    import locale

    system = os.uname()
    lines = [
        "",
        PRODUCT,
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


def prompt(number: int, login: str = "") -> str:
    """Format the prompt: ``GGSCI (host) 1> ``, with ``as user@database`` while logged in."""
    who = f"{short_host()} as {login}" if login else short_host()
    return f"GGSCI ({who}) {number}> "
