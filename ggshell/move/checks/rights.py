"""Whether both logins may do what a move does. Each side is captured and applied to: the target for switching back."""

from __future__ import annotations

from collections.abc import Iterator

from ggshell.connectors.move_facts import Names, TableKind
from ggshell.move.checks.sides import Side, Sides
from ggshell.move.findings import ERROR, INFO, WARNING, Finding, listed, subject_of
from ggshell.types import quote


def log(sides: Sides) -> Iterator[Finding]:
    """Reading the log."""
    for side in sides.both:
        if side.rights.replication:
            text = f"{side.user} cannot read the log of {side}: {side.rights.replication}"
            action = f"ALTER ROLE {quote(side.user)} REPLICATION in {side}; pg_hba.conf must allow the database too"
            yield Finding(ERROR, "GGS-01020", side.user, text, action)


def event_triggers(sides: Sides) -> Iterator[Finding]:
    """Capture of DDL statements."""
    for side in sides.both:
        if not side.rights.event_triggers:
            text = f"{side.user} cannot create event triggers in {side}, which capture tables and DDL statements"
            action = "use a superuser: ADD SCHEMATRANDATA creates them"
            yield Finding(ERROR, "GGS-01021", side.user, text, action)


def tables(sides: Sides) -> Iterator[Finding]:
    """Tables that the login cannot capture or read."""
    user, moved = sides.source.user, sides.source.tables
    foreign = tuple(str(each.name) for each in moved if not each.owned and each.kind in _CAPTURED)
    if foreign:
        text = f"{user} is not the owner of {listed(foreign)}: only the owner can add TRANDATA"
        action = f"GRANT the owner's role TO {quote(user)} in the source, or use a superuser"
        yield Finding(ERROR, "GGS-01022", subject_of(foreign, "table"), text, action, foreign)
    unread = tuple(str(each.name) for each in moved if not each.readable)
    if unread:
        text = f"{user} cannot read {listed(unread)}"
        action = (
            f"GRANT pg_read_all_data TO {quote(user)} in the source, or USAGE on the schemas and SELECT on all tables"
        )
        yield Finding(ERROR, "GGS-01023", subject_of(unread, "table"), text, action, unread)
    hidden = tuple(str(each.name) for each in moved if each.hides_rows)
    if hidden:
        text = f"row security hides rows of {listed(hidden)} from {user}"
        action = f"ALTER ROLE {quote(user)} BYPASSRLS in the source"
        yield Finding(ERROR, "GGS-01024", subject_of(hidden, "table"), text, action, hidden)


_CAPTURED = (TableKind.TABLE, TableKind.PARTITIONED)


def database(sides: Sides) -> Iterator[Finding]:
    """Creating schemas and publications."""
    for side in sides.both:
        if not side.rights.creates:
            name = quote(side.server.database)
            text = f"{side.user} cannot create schemas and publications in {side}"
            action = f"GRANT CREATE ON DATABASE {name} TO {quote(side.user)} in {side}"
            yield Finding(ERROR, "GGS-01025", side.server.database, text, action)


def applying(sides: Sides) -> Iterator[Finding]:
    """Suppressing triggers, and marking applied changes."""
    for side in sides.both:
        if not side.rights.suppresses_triggers:
            text = (
                f"{side.user} cannot set session_replication_role in {side}: triggers would change rows a second time"
            )
            action = f"GRANT SET ON PARAMETER session_replication_role TO {quote(side.user)} (PostgreSQL 15 or later),"
            action = f"{action} or use a superuser"
            yield Finding(ERROR, "GGS-01026", "session_replication_role", text, action)
        if not side.rights.origins:
            text = f"{side.user} cannot use replication origins in {side}: applied changes would be captured again"
            action = "GRANT EXECUTE on the functions pg_replication_origin_create, _oid, _drop, _session_setup and"
            yield Finding(WARNING, "GGS-01027", side.user, text, f"{action} _session_reset to it, or use a superuser")


def owners(sides: Sides) -> Iterator[Finding]:
    """Roles whose objects the login of the target cannot create."""
    assumed, present = set(sides.target.facts.names(Names.ASSUMED_ROLES)), sides.target.role_names
    used = (role.name for role in sides.source.roles if role.used)
    missing = tuple(name for name in used if name in present and name not in assumed)
    if missing:
        user = sides.target.user
        text = f"in the target, {user} is not a member of {listed(missing)}, and cannot create objects for them"
        script = "".join(f"GRANT {quote(name)} TO {quote(user)};\n" for name in missing)
        action = "grant these roles in the target until the move has ended, or use a superuser"
        yield Finding(WARNING, "GGS-01028", subject_of(missing, "role"), text, action, missing, script)


def superuser_functions(sides: Sides) -> Iterator[Finding]:
    """Functions that only a superuser can create."""
    found = () if sides.target.rights.superuser else tuple(sides.source.facts.names(Names.UNTRUSTED_FUNCTIONS))
    if found:
        text = f"only a superuser can create {listed(found)}: their languages are not trusted"
        action = "use a superuser for the target, or create these functions there first"
        yield Finding(ERROR, "GGS-01029", subject_of(found, "function"), text, action, found)


def visibility(sides: Sides) -> Iterator[Finding]:
    """Whether the login sees the transactions of others."""
    side: Side = sides.source
    if not side.rights.sees_sessions:
        text = f"{side.user} does not see the transactions of other users in {side}, so long ones are not reported"
        yield Finding(INFO, "GGS-01030", side.user, text, f"GRANT pg_read_all_stats TO {quote(side.user)}")
