"""A group or path of another home, as the files next to a trail name it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ggshell.network.proven import Proven


@dataclass(frozen=True)
class RemoteGroup:
    """A group or path (``group``) of the home with an id (``home``) on a machine (``host``).

    ``proven``: who that home is; the rest is what it says about itself.
    """

    home: str
    host: str
    group: str
    proven: Proven = field(default=Proven(), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "proven", Proven(*self.proven))  # a record in a file has a list

    @property
    def text(self) -> str:
        return f"{self.group} of home {self.home} on {self.host}" if self.home else self.group

    def has_name_of(self, other: RemoteGroup) -> bool:
        """Whether both say that they are the same group of the same home; a home can be moved to another machine."""
        return (self.home, self.group.upper()) == (other.home, other.group.upper())

    def is_same(self, other: RemoteGroup) -> bool:
        """Whether both are the same group of the same home. One that was recorded without a proof matches any group
        that claims to be it."""
        return self.has_name_of(other) and (not self.proven.login or other.proven.is_as(self.proven))
