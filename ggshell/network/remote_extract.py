"""Asks the service of another home to start, to stop or to show a passive Extract, for its alias in this home."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ggshell.errors import ConnectionLostError
from ggshell.network.handshake import Sender, expect, introduce
from ggshell.network.link import LOST, Link
from ggshell.network.opening import ExtractAction, ExtractAnswer

PATIENCE_SECONDS: Final = 15.0
"""How long an answer that needs no new process may take."""
Wait = Callable[[int], bool]


def ask_for_extract(
    link: Link, where: str, alias: Sender, extract: str, action: ExtractAction, wait: Wait | None = None
) -> ExtractAnswer:
    """Return the answer to a request for a passive Extract; a start is answered when its process runs.

    ``wait``: waits a while for a descriptor, false if this process is to stop; without it, the answer must arrive soon. Raises
    ConnectionLostError, and ProcessError if the other home refuses.
    """
    introduce(link, where, alias.extract_request(extract, action), alias)
    if wait is None:
        return expect(link.receive(PATIENCE_SECONDS), ExtractAnswer, where)
    while (message := link.receive(0.0)) is None:
        if not wait(link.fileno()):
            raise ConnectionLostError("this process is stopping", code=LOST)
    return expect(message, ExtractAnswer, where)
