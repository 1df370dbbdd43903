"""Whether the two servers can be source and target of one move: versions, programs, and what an earlier move has left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ggshell.connectors.move_facts import Names
from ggshell.move.checks.sides import Side, Sides
from ggshell.move.findings import ERROR, WARNING, Finding, listed, subject_of

OLDEST: Final = 13
"""The oldest major version that can be captured and applied."""
_READ_ONLY: Final = "default_transaction_read_only"


def versions(sides: Sides) -> Iterator[Finding]:
    """The versions, and whether both logins connect to the same database. After an error here, nothing else is checked."""
    source, target = sides.source.server, sides.target.server
    if source.identity == target.identity:
        text = f"{sides.request.source} and {sides.request.target} are logins of the same database, {source.database}"
        yield Finding(ERROR, "GGS-01003", source.database, text, "correct the login of the target")
    for side in sides.both:
        if side.server.major < OLDEST:
            text = f"{side} is PostgreSQL {side.server.release}; a move requires version {OLDEST} or later"
            yield Finding(ERROR, "GGS-01004", f"{side.word} server", text, "use pg_dump, or upgrade the server first")
    if target.major < source.major:
        text = f"the target is PostgreSQL {target.release}, older than the source ({source.release})"
        yield Finding(ERROR, "GGS-01005", "target server", text, f"use a target of version {source.major} or later")


def programs(sides: Sides) -> Iterator[Finding]:
    """pg_dump, which reads the definitions. It does not read servers that are newer than itself."""
    source, target = sides.source.server.major, sides.target.server.major
    found = sides.source.facts.dump_program(source, target)
    action = f"install the client programs of PostgreSQL {target}, and add their folder to PATH"
    if found is None:
        text = f"this machine has no pg_dump of version {source} or later, which the load of definitions needs"
        yield Finding(ERROR, "GGS-01006", "pg_dump", text, action)
    elif found.major > target:
        text = f"{found.path} is of version {found.major}; the target, PostgreSQL {target}, may refuse its output"
        yield Finding(WARNING, "GGS-01006", "pg_dump", text, action)


def writable(sides: Sides) -> Iterator[Finding]:
    """Standbys, and databases that are closed to writers."""
    for side in sides.both:
        if side.server.standby:
            text = f"{side} is a standby, which accepts no changes"
            yield Finding(ERROR, "GGS-01007", f"{side.word} server", text, "log in to its primary")
        closed = (each for each in side.facts.settings() if each.of_database and not each.role)
        if any(each.name == _READ_ONLY and each.value in ("on", "true", "yes", "1") for each in closed):
            text = f"new sessions in {side} database cannot write ({_READ_ONLY} = on), as after a switch"
            action = f'ALTER DATABASE "{side.server.database}" RESET {_READ_ONLY}, if no switch is in progress'
            yield Finding(ERROR, "GGS-01007", _READ_ONLY, text, action)


def schemas(sides: Sides) -> Iterator[Finding]:
    """Schemas of the request that the source does not have."""
    missing = sides.source.facts.missing_schemas
    if missing:
        text = f"the source does not have {listed(missing)}, or they belong to the system or to ggshell"
        yield Finding(ERROR, "GGS-01008", subject_of(missing, "schema"), text, "correct --schemas", missing)


def earlier_moves(sides: Sides) -> Iterator[Finding]:
    """What a move that has not been finished has left."""
    for side in sides.both:
        yield from _traces(side)


def _traces(side: Side) -> Iterator[Finding]:
    if found := tuple(side.facts.names(Names.MOVE_TRACES)):
        text = f"objects of an earlier move remain in {side}: {listed(found)}"
        action = "continue that move, or end it with ggshell move finish"
        yield Finding(WARNING, "GGS-01009", subject_of(found, "object"), text, action, found)


def target_objects(sides: Sides) -> Iterator[Finding]:
    """Objects of the schemas that the target already has."""
    if found := tuple(sides.target.facts.names(Names.RELATIONS)):
        text = f"the target already has relations in the schemas of the move: {listed(found)}"
        action = "drop them, use an empty database, or move other schemas; ignore this after the load of this move"
        yield Finding(ERROR, "GGS-01010", subject_of(found, "relation"), text, action, found)
