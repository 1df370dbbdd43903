"""Which statements a shell that is connected to another home carries out itself.

The other home's service refuses these statements; every other statement is sent to it.
"""

from __future__ import annotations

from typing import Final

from ggshell.errors import UsageError

OF_CONNECTIONS: Final = frozenset(
    {
        "CONNECT",
        "DISCONNECT",
        "ADD CREDENTIALS USER",
        "ADD CREDENTIALS TOKEN",
        "DELETE CREDENTIALS",
        "INFO CREDENTIALS",
    }
)
"""Statements about connections to services. They use no home."""

_OF_THE_SHELL: Final = frozenset(
    {
        *("ALLOWNESTED", "NOALLOWNESTED", "OBEY", "SHELL", "HOST", "SHOW", "SPOOL", "WATCH"),
        *("EXIT", "QUIT", "FC", "HELP", "HISTORY", "EDIT GLOBALS", "EDIT PARAMS"),
        *("SET COLOR OFF", "SET COLOR ON", "SET EDITOR", "SET FORMAT", "SET PAGER", "SET TIMING OFF", "SET TIMING ON"),
    }
)

LOCAL: Final = OF_CONNECTIONS | _OF_THE_SHELL
"""Statements about the shell and its terminal: a connected shell carries them out itself. EDIT edits files there."""

AT_THE_HOME: Final = frozenset({"START SERVICE", "STOP SERVICE", "RESTART SERVICE", "LOGDUMP"})
"""Statements that need a shell on the machine of the home: a connected shell refuses them."""


def at_the_home(key: str) -> UsageError:
    """Return the error for a statement that needs a shell on the machine of the home."""
    return UsageError(
        f"{key} needs a shell on the machine of the home",
        code="GGS-00929",
        hint="run it there; DISCONNECT to work on the home of this shell",
    )
