"""The two databases of a move with the facts that several rules use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TypeAlias

from ggshell.connectors.logged_in import LoggedIn
from ggshell.connectors.move_facts import Capacity, Locale, MoveFacts, Names, Rights, RoleFacts, ServerFacts, TableFacts
from ggshell.move.findings import Finding
from ggshell.move.request import MoveRequest


class Side:
    """One database. Facts are read when a rule first asks for them. ``word``: source or target."""

    def __init__(self, word: str, facts: MoveFacts) -> None:
        self.word = word
        self.facts = facts

    def __str__(self) -> str:
        return f"the {self.word}"

    @cached_property
    def server(self) -> ServerFacts:
        return self.facts.server()

    @cached_property
    def capacity(self) -> Capacity:
        return self.facts.capacity()

    @cached_property
    def rights(self) -> Rights:
        return self.facts.rights()

    @cached_property
    def locale(self) -> Locale:
        return self.facts.locale()

    @cached_property
    def tables(self) -> list[TableFacts]:
        return self.facts.tables()

    @cached_property
    def roles(self) -> list[RoleFacts]:
        return self.facts.roles()

    @cached_property
    def role_names(self) -> frozenset[str]:
        return frozenset(self.facts.names(Names.ROLES))

    @property
    def user(self) -> str:
        return self.server.user

    def setting(self, name: str) -> str:
        """The value of a server setting; empty if it is unknown."""
        return self.server.settings.get(name, "")

    def number(self, name: str) -> int:
        """The value of a setting that is a whole number; 0 if it is unknown."""
        return int(self.setting(name) or 0)


class Sides:
    """Source and target of a request."""

    def __init__(self, source: LoggedIn, target: LoggedIn, request: MoveRequest) -> None:
        self.request = request
        self.source = Side("source", source.move_facts(request.schemas))
        # Without a list, the schemas of the source are moved; the target can have others of its own.
        self.target = Side("target", target.move_facts(self.source.facts.schemas or ("",)))

    @property
    def both(self) -> tuple[Side, Side]:
        return self.source, self.target

    @property
    def whole(self) -> bool:
        """Whether all schemas are moved, so that everything that belongs to no schema is needed too."""
        return not self.request.schemas


Rule: TypeAlias = Callable[[Sides], Iterator[Finding]]
