"""Which parts of a Replicat's transactions an Extract captures: GETREPLICATES, and DDLOPTIONS GETREPLICATES.

A Replicat marks its transactions with a replication origin. By default, such transactions are left out, so that two
databases that replicate to each other do not send each transaction back. In a chain of databases, an Extract in the
middle captures them.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Replicated(NamedTuple):
    """``rows``, ``ddl``: whether rows and DDL statements of transactions with a replication origin are captured."""

    rows: bool = False
    ddl: bool = False

    @property
    def origin(self) -> str:
        """The option ``origin`` of pgoutput: which transactions the server sends."""
        return "any" if any(self) else "none"

    @property
    def streams(self) -> bool:
        """Whether transactions may arrive before their commit.

        The server names the origin of a transaction for certain only if it sends the transaction as a whole.
        """
        return self.rows == self.ddl


NOTHING: Final = Replicated()
EVERYTHING: Final = Replicated(rows=True, ddl=True)
"""What is captured of a transaction without a replication origin."""
