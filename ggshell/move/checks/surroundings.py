"""What else uses the database, or is in its way: other replication, foreign servers, event triggers, open transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ggshell.connectors.move_facts import Names
from ggshell.durations import rough_text
from ggshell.move.checks.sides import Sides
from ggshell.move.findings import ERROR, INFO, WARNING, Finding, listed, subject_of

PREPARED_SECONDS: Final = 300
"""The age from which a prepared transaction looks forgotten."""
LONG_SECONDS: Final = 60


def publications(sides: Sides) -> Iterator[Finding]:
    """Other publications: their subscribers follow the source until they are connected to the target."""
    if names := tuple(sides.source.facts.names(Names.PUBLICATIONS)):
        text = f"subscribers of {listed(names)} are not moved; after the switch they get no more changes"
        action = "after the switch, create the subscriptions again at the target with copy_data = false"
        yield Finding(WARNING, "GGS-01059", subject_of(names, "publication"), text, action, names)


def subscriptions(sides: Sides) -> Iterator[Finding]:
    """Subscriptions: what they apply has an origin, and is not captured, as if it came from a Replicat."""
    if names := tuple(sides.source.facts.names(Names.SUBSCRIPTIONS)):
        severity = WARNING if all(name.endswith(" (disabled)") for name in names) else ERROR
        text = f"subscriptions are not moved, and the changes that they apply in the source are not captured: {listed(names)}"
        action = "before the load, disable them in the source, and create them in the target"
        yield Finding(severity, "GGS-01060", subject_of(names, "subscription"), text, action, names)


def origins(sides: Sides) -> Iterator[Finding]:
    """Other programs that apply changes with an origin, for example a Replicat that delivers to the source."""
    if names := tuple(sides.source.facts.names(Names.ORIGINS)):
        text = f"changes that are applied with a replication origin are not captured: {listed(names)}"
        action = "stop the program that applies them to this database before the load, or let it apply them to the target too"
        yield Finding(WARNING, "GGS-01072", subject_of(names, "origin"), text, action, names)


def slots(sides: Sides) -> Iterator[Finding]:
    """Logical slots of other programs."""
    if names := tuple(sides.source.facts.names(Names.OTHER_SLOTS)):
        text = f"other programs read the log of this database through {listed(names)}; slots are not moved"
        action = "connect these programs to the target at the switch, each with a new slot"
        yield Finding(WARNING, "GGS-01061", subject_of(names, "slot"), text, action, names)


def foreign_servers(sides: Sides) -> Iterator[Finding]:
    """Foreign servers and their user mappings."""
    if names := tuple(sides.source.facts.names(Names.FOREIGN_SERVERS)):
        text = f"foreign servers and the passwords of their user mappings must be valid for the target: {listed(names)}"
        action = "make sure that the target reaches them; check CREATE USER MAPPING for every role"
        yield Finding(WARNING, "GGS-01062", subject_of(names, "foreign server"), text, action, names)


def event_triggers(sides: Sides) -> Iterator[Finding]:
    """Event triggers of users."""
    if names := tuple(sides.source.facts.names(Names.EVENT_TRIGGERS)):
        text = f"event triggers belong to no schema: {listed(names)}. Only a superuser can create them in the target"
        action = (
            "create them in the target after the load; until the switch they would also fire for replicated statements"
        )
        yield Finding(WARNING, "GGS-01063", subject_of(names, "event trigger"), text, action, names)


def open_work(sides: Sides) -> Iterator[Finding]:
    """Transactions that are open now: a new slot, and so the move, waits for each of them."""
    work = sides.source.facts.open_work()
    for prepared in (each for each in work if each.prepared):
        severity = ERROR if prepared.age >= PREPARED_SECONDS else WARNING
        text = f"prepared transaction {prepared.name} of database {prepared.database} has been open for"
        text = f"{text} {rough_text(prepared.age)}; a new slot waits until it ends"
        yield Finding(severity, "GGS-01064", prepared.name, text, "COMMIT PREPARED or ROLLBACK PREPARED it")
    long = tuple(
        f"{each.name} in {each.database} ({rough_text(each.age)})"
        for each in work
        if not each.prepared and each.age >= LONG_SECONDS
    )
    if long:
        text = f"transactions have been writing for a long time: {listed(long)}. A new slot waits until they end"
        yield Finding(WARNING, "GGS-01065", subject_of(long, "transaction"), text, "wait for them, or end them", long)


def emptiness(sides: Sides) -> Iterator[Finding]:
    """Schemas of the move without any relation."""
    if sides.source.facts.schemas and not sides.source.tables and not sides.source.facts.names(Names.RELATIONS):
        schemas = sides.source.facts.schemas
        text = f"{listed(schemas)}: no table, view or sequence"
        yield Finding(INFO, "GGS-01066", subject_of(schemas, "schema"), text, "check that this is the right database")
