"""A group or path of another home, as the files next to a trail name it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RemoteGroup:
    """A group or path (``group``) of the home with an id (``home``) on a machine (``host``)."""

    home: str
    host: str
    group: str

    @property
    def text(self) -> str:
        return f"{self.group} of home {self.home} on {self.host}"

    def is_same(self, other: RemoteGroup) -> bool:
        """Whether both are the same group of the same home; a home can be moved to another machine."""
        return (self.home, self.group.upper()) == (other.home, other.group.upper())
