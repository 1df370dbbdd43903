"""Asks the service of another home to start or to stop a passive Extract, for its alias in this home."""

from __future__ import annotations

from ggshell.network.handshake import ANSWER_SECONDS, Sender, expect, introduce
from ggshell.network.link import Link
from ggshell.network.opening import ExtractAction, ExtractAnswer


def ask_for_extract(link: Link, where: str, alias: Sender, extract: str, action: ExtractAction) -> ExtractAnswer:
    """Return the answer to a request for a passive Extract; a start is answered when its process runs.

    Raises ConnectionLostError, and ProcessError if the other home refuses.
    """
    introduce(link, where, alias.extract_request(extract, action), alias)
    return expect(link.receive(ANSWER_SECONDS), ExtractAnswer, where)
