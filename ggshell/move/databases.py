"""Connects to the two databases of a move."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

from ggshell.connectors.logged_in import Credentials, LoggedIn
from ggshell.connectors.move_side import Direction, MoveSide
from ggshell.connectors.registry import connector_for
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.move.request import MoveRequest


class Sides(NamedTuple):
    """Both databases of a move."""

    source: MoveSide
    target: MoveSide

    def of(self, direction: Direction) -> tuple[MoveSide, MoveSide]:
        """Return where changes of a direction come from, and where they go."""
        return (self.source, self.target) if direction is Direction.FORWARD else (self.target, self.source)


def log_in(home: Home, alias: str) -> LoggedIn:
    """Log in with an alias of the credential store. Raises NotFoundError, DatabaseError, ConnectionLostError."""
    found = CredentialStore(home).resolve(alias)
    return connector_for(found.userid).log_in(Credentials(found.userid, found.password), home.root)


@contextmanager
def connected(home: Home, request: MoveRequest) -> Iterator[Sides]:
    """Connect to both databases. Raises NotFoundError, DatabaseError, ConnectionLostError."""
    with closing(_side(home, request.source)) as source, closing(_side(home, request.target)) as target:
        yield Sides(source, target)


def _side(home: Home, alias: str) -> MoveSide:
    with closing(log_in(home, alias)) as login:
        return login.move_side()
