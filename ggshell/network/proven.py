"""Who has proved to be the other side of a connection. What a home says about itself (its id, its machine) proves nothing."""

from __future__ import annotations

from typing import Final, NamedTuple

UNKNOWN_SENDER: Final = "GGS-00951"
"""The code of a sender that is not a peer, or cannot prove its identity."""


class Proven(NamedTuple):
    """The login of the other side in this home, ``peer NAME`` or ``user NAME``, and the fingerprint of its home's key.

    The fingerprint is empty if only a user has signed in. Both are empty in a record without a proof.
    """

    login: str = ""
    fingerprint: str = ""

    def is_as(self, recorded: Proven) -> bool:
        """Whether this is who has been recorded: a peer may get a new certificate or a new name, or sign in as a user."""
        return self.login == recorded.login or bool(self.fingerprint and self.fingerprint == recorded.fingerprint)


THIS_HOME: Final = Proven("this home")
"""Who writes the copy of a trail that this home itself fetches."""
