"""The statements and parameter files of a move: ordinary GoldenGate, which can also be run manually.

The scripts skip what already exists, so that an interrupted step can be run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ggshell.connectors.move_side import MARKERS, OWN_SCHEMA, Direction, MoveSide
from ggshell.home.checkpoint import GroupKind, load
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, state_of
from ggshell.move.request import MoveRequest
from ggshell.types import Csn, TableName, display_part

CHECKPOINTS: Final = TableName(OWN_SCHEMA, "move_checkpoints")
_RUNNING: Final = (ProcessState.STARTING, ProcessState.RUNNING)


class Pair(NamedTuple):
    """The Extract and the Replicat of one direction, with the aliases of their databases and the trail between them."""

    extract: str
    replicat: str
    trail: str
    source: str
    target: str

    @property
    def groups(self) -> tuple[tuple[str, GroupKind], tuple[str, GroupKind]]:
        return (self.extract, GroupKind.EXTRACT), (self.replicat, GroupKind.REPLICAT)


def pair_of(request: MoveRequest, direction: Direction) -> Pair:
    """Return the groups of a direction."""
    if direction is Direction.FORWARD:
        return Pair(f"{request.groups}EXT1", f"{request.groups}REP1", "./dirdat/m1", request.source, request.target)
    return Pair(f"{request.groups}EXT2", f"{request.groups}REP2", "./dirdat/m2", request.target, request.source)


def manager_parameters(request: MoveRequest) -> str:
    """Return the parameter file of Manager, if the home has none: a move can take days."""
    return (
        f"AUTORESTART ER {request.groups}*, RETRIES 10, WAITMINUTES 1\n"
        "PURGEOLDEXTRACTS ./dirdat/m1, USECHECKPOINTS\nPURGEOLDEXTRACTS ./dirdat/m2, USECHECKPOINTS\n"
    )


def extract_parameters(pair: Pair, schemas: Sequence[str]) -> str:
    """Return the parameter file of an Extract."""
    tables = "".join(f"TABLE {pattern};\n" for pattern in (*_patterns(schemas), str(MARKERS)))
    return (
        f"EXTRACT {pair.extract}\nUSERIDALIAS {pair.source}\nEXTTRAIL {pair.trail}\n"
        f"DDL INCLUDE MAPPED\nGETTRUNCATES\n{tables}"
    )


def replicat_parameters(pair: Pair, schemas: Sequence[str], later: Mapping[TableName, Csn] | None = None) -> str:
    """Return the parameter file of a Replicat.

    ``later``: tables that were loaded after the others, each with the CSN up to which its changes are already there.
    """
    maps = [
        f'MAP {name}, TARGET {name}, FILTER (@STRCMP (@GETENV ("TRANSACTION", "CSN"), "{csn}") > 0);\n'
        for name, csn in (later or {}).items()
    ]
    maps += [f"MAP {pattern}, TARGET {pattern};\n" for pattern in (*_patterns(schemas), str(MARKERS))]
    return (
        f"REPLICAT {pair.replicat}\nUSERIDALIAS {pair.target}\nDBOPTIONS SUPPRESSTRIGGERS\n"
        f"GETTRUNCATES\n{''.join(maps)}"
    )


def _patterns(schemas: Sequence[str]) -> list[str]:
    return [f"{display_part(schema)}.*" for schema in schemas]


class Present(NamedTuple):
    """What the databases contain of a move: names of Extracts that are registered, and aliases of databases with tables."""

    registered: frozenset[str] = frozenset()
    markers: frozenset[str] = frozenset()
    checkpoints: frozenset[str] = frozenset()

    @classmethod
    def read(cls, request: MoveRequest, sides: Iterable[MoveSide]) -> Present:
        """Ask the source and the target."""
        found = [(pair_of(request, direction), side) for direction, side in zip(Direction, sides, strict=True)]
        return cls(
            frozenset(pair.extract for pair, side in found if side.is_registered(pair.extract)),
            frozenset(pair.source for pair, side in found if side.has(MARKERS)),
            frozenset(pair.source for pair, side in found if side.has(CHECKPOINTS)),
        )


NOTHING: Final = Present()


class Scripts:
    """The obey files of a move in a home."""

    def __init__(self, home: Home, request: MoveRequest, present: Present = NOTHING) -> None:
        self._home = home
        self._request = request
        self._present = present

    def prepare(self) -> str:
        """Capture everything from now on, so that the load can begin at any later time."""
        pair = pair_of(self._request, Direction.FORWARD)
        return _joined(
            f"DBLOGIN USERIDALIAS {pair.source}",
            *self._logging(),
            *self._extract(pair),
        )

    def load(self) -> str:
        """Load all rows in parallel."""
        tables = ", ".join(_patterns(self._request.schemas))
        return _joined(
            f"LOAD {self._request.source} TO {self._request.target}, TABLE {tables}, DEFINITIONS, JOBS {self._request.jobs}"
        )

    def follow(self, csn: Csn | None) -> str:
        """Apply all changes after the load, and replicate in the other direction too, before anybody writes there.

        ``csn``: the last commit in the load; None if there was no table to load.
        """
        forward, back = (pair_of(self._request, each) for each in Direction)
        return _joined(
            f"DBLOGIN USERIDALIAS {forward.target}",
            *self._replicat(forward, f", AFTERCSN {csn}" if csn else ""),
            *self._logging(),
            *self._extract(back),
            f"DBLOGIN USERIDALIAS {back.target}",
            *self._replicat(back, ""),
        )

    def restart(self) -> str:
        """Start all groups that do not run."""
        groups = (group for direction in Direction for group in pair_of(self._request, direction).groups)
        return _joined(*(f"START {kind} {name}" for name, kind in groups if not self._runs(name, kind)))

    def verify(self, schemas: Sequence[str]) -> str:
        """Compare the rows of some schemas while changes flow."""
        tables = ", ".join(_patterns(schemas))
        return _joined(f"COMPARE {self._request.source} TO {self._request.target}, TABLE {tables}") if schemas else ""

    def finish(self) -> str:
        """Remove the groups and what they need in the databases."""
        lines: list[str] = []
        for direction in Direction:
            pair = pair_of(self._request, direction)
            if self._exists(pair.replicat, GroupKind.REPLICAT):
                lines += [f"DBLOGIN USERIDALIAS {pair.target}"]
                lines += [f"STOP REPLICAT {pair.replicat}"] * self._runs(pair.replicat, GroupKind.REPLICAT)
                lines += [f"DELETE REPLICAT {pair.replicat}"]
            if self._exists(pair.extract, GroupKind.EXTRACT):
                lines += [f"DBLOGIN USERIDALIAS {pair.source}"]
                lines += [f"STOP EXTRACT {pair.extract}"] * self._runs(pair.extract, GroupKind.EXTRACT)
                lines += [f"UNREGISTER EXTRACT {pair.extract}"] * (pair.extract in self._present.registered)
                lines += [f"DELETE EXTRACT {pair.extract}"]
        for alias in (self._request.source, self._request.target):
            lines += [f"DBLOGIN USERIDALIAS {alias}"]
            lines += [f"DELETE CHECKPOINTTABLE {CHECKPOINTS}"] * (alias in self._present.checkpoints)
            lines += [f"DELETE TRANDATA {MARKERS}"] * (alias in self._present.markers)
            lines += [f"DELETE SCHEMATRANDATA {display_part(schema)}" for schema in self._request.schemas]
        return _joined(*lines)

    def _logging(self) -> list[str]:
        schemas = (f"ADD SCHEMATRANDATA {display_part(schema)}" for schema in self._request.schemas)
        return [*schemas, f"ADD TRANDATA {MARKERS}"]

    def _extract(self, pair: Pair) -> list[str]:
        lines = []
        if not self._exists(pair.extract, GroupKind.EXTRACT):
            lines += [f"REGISTER EXTRACT {pair.extract}"] * (pair.extract not in self._present.registered)
            lines += [f"ADD EXTRACT {pair.extract}, TRANLOG, BEGIN NOW"]
        if not self._has_trail(pair.extract):
            lines += [f"ADD EXTTRAIL {pair.trail}, EXTRACT {pair.extract}"]
        return lines + [f"START EXTRACT {pair.extract}"] * (not self._runs(pair.extract, GroupKind.EXTRACT))

    def _replicat(self, pair: Pair, after: str) -> list[str]:
        if self._exists(pair.replicat, GroupKind.REPLICAT):
            return [f"START REPLICAT {pair.replicat}{after}"] * (not self._runs(pair.replicat, GroupKind.REPLICAT))
        return [
            *[f"ADD CHECKPOINTTABLE {CHECKPOINTS}"] * (pair.target not in self._present.checkpoints),
            f"ADD REPLICAT {pair.replicat}, EXTTRAIL {pair.trail}, CHECKPOINTTABLE {CHECKPOINTS}",
            f"START REPLICAT {pair.replicat}{after}",
        ]

    def _exists(self, name: str, kind: GroupKind) -> bool:
        return (name, kind) in self._home.group_names()

    def _has_trail(self, extract: str) -> bool:
        return self._exists(extract, GroupKind.EXTRACT) and bool(
            load(self._home.checkpoint(extract, GroupKind.EXTRACT)).write
        )

    def _runs(self, name: str, kind: GroupKind) -> bool:
        return state_of(self._home.process(name, kind))[0] in _RUNNING


def _joined(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)
