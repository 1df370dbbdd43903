"""Whether the target has what the definitions need: extensions, libraries, types, access methods, tablespaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ggshell.connectors.move_facts import Names
from ggshell.move.checks.sides import Sides
from ggshell.move.findings import ERROR, INFO, WARNING, Finding, FindingSeverity, listed, subject_of
from ggshell.plurals import counted

NOT_MOVED: Final = frozenset({"timescaledb", "citus", "pg_partman_bgw", "pglogical", "spock", "bdr", "orioledb"})
"""Extensions that keep rows of users in structures of their own, or replicate by themselves."""
NEEDS_PRELOAD: Final = frozenset(
    {
        "age",
        "citus",
        "documentdb_core",
        "pg_cron",
        "pg_failover_slots",
        "pg_net",
        "pg_qualstats",
        "pg_squeeze",
        "pg_stat_kcache",
        "pg_stat_monitor",
        "pg_stat_statements",
        "pg_tle",
        "pg_wait_sampling",
        "pgaudit",
        "pglogical",
        "set_user",
        "spock",
        "timescaledb",
    }
)
"""Extensions that work only if the server loads their library when it starts."""


def _needed(sides: Sides) -> FindingSeverity:
    """Some schemas may not need every extension."""
    return ERROR if sides.whole else WARNING


def extensions(sides: Sides) -> Iterator[Finding]:
    """Extensions that the target does not offer, offers in another version, or does not let the login create."""
    installed = {each.name: each for each in sides.source.facts.extensions()}
    offered = {each.name: each for each in sides.target.facts.available_extensions()}
    present = {each.name for each in sides.target.facts.extensions()}
    if missing := tuple(name for name in installed if name not in offered):
        text = f"the server of the target does not have {listed(missing)}"
        action = "install the package of the extension on the target's server, or drop the extension in the source"
        yield Finding(_needed(sides), "GGS-01034", subject_of(missing, "extension"), text, action, missing)
    both = [(each, offered[name]) for name, each in installed.items() if name in offered]
    changed = tuple(f"{has.name} ({has.version}, target {at.default})" for has, at in both if has.version != at.default)
    older = tuple(has.name for has, at in both if has.version not in at.versions)
    if older:
        text = f"the target does not offer the installed version of {listed(changed)}"
        action = "compare the release notes of the extension; ALTER EXTENSION … UPDATE in the source, if its version is older"
        yield Finding(WARNING, "GGS-01035", subject_of(older, "extension"), text, action, older)
    refused = tuple(has.name for has, at in both if not at.allowed and has.name not in present)
    if refused:
        text = f"only a superuser can create {listed(refused)} in the target"
        script = "".join(f'CREATE EXTENSION "{name}";\n' for name in refused)
        action = "let a superuser run the script in the target, in the schemas that the source uses"
        yield Finding(_needed(sides), "GGS-01036", subject_of(refused, "extension"), text, action, refused, script)


def preloaded(sides: Sides) -> Iterator[Finding]:
    """Libraries that the source's server loads when it starts, and the target's does not."""
    here, there = set(sides.source.facts.names(Names.PRELOADED)), set(sides.target.facts.names(Names.PRELOADED))
    installed = {each.name for each in sides.source.facts.extensions()}
    wanted = (here | (installed & NEEDS_PRELOAD)) - there
    if missing := tuple(sorted(wanted)):
        text = f"the target's server does not load {listed(missing)} when it starts, or hides it from the login"
        action = "add the libraries that the database needs to shared_preload_libraries of the target, and restart its server"
        yield Finding(WARNING, "GGS-01037", subject_of(missing, "library file"), text, action, missing)


def extension_rows(sides: Sides) -> Iterator[Finding]:
    """Rows of users that belong to an extension."""
    installed = sides.source.facts.extensions()
    if own := tuple(each.name for each in installed if each.name in NOT_MOVED):
        text = f"{listed(own)} keeps rows in its own structures, or has its own replication: its tables cannot be moved"
        action = "move such tables with the tools of the extension, or drop the extension in the source"
        yield Finding(_needed(sides), "GGS-01038", subject_of(own, "extension"), text, action, own)
    if tables := tuple(table for each in installed for table in each.tables):
        text = f"the rows of tables of extensions are not moved: {listed(tables)}"
        action = "compare these tables after CREATE EXTENSION in the target, and copy the rows of yours with COPY"
        yield Finding(WARNING, "GGS-01039", subject_of(tables, "table"), text, action, tables)


def types(sides: Sides) -> Iterator[Finding]:
    """Types of columns that the target does not have."""
    used = sides.source.facts.names(Names.BUILT_IN_TYPES)
    if missing := tuple(sides.target.facts.missing_types(used)):
        text = f"columns have types that the target does not have: {listed(missing)}"
        action = "change the types of these columns, or move the schemas of the types too"
        yield Finding(ERROR, "GGS-01040", subject_of(missing, "type"), text, action, missing)


def access_methods(sides: Sides) -> Iterator[Finding]:
    """Access methods that belong to no extension."""
    there = set(sides.target.facts.names(Names.ACCESS_METHODS))
    used = sides.source.facts.names(Names.ACCESS_METHODS_USED)
    if missing := tuple(name for name in used if name not in there):
        text = f"tables or indexes use access methods that the target does not have: {listed(missing)}"
        action = "create the access methods in the target, or change the tables and indexes"
        yield Finding(ERROR, "GGS-01041", subject_of(missing, "access method"), text, action, missing)


def libraries(sides: Sides) -> Iterator[Finding]:
    """Libraries of functions in C that belong to no extension."""
    if found := tuple(sides.source.facts.names(Names.LIBRARIES)):
        text = f"functions in C load {listed(found)}, which must exist on the target's server too"
        action = "build the library for the version of the target, and install it there"
        yield Finding(WARNING, "GGS-01042", subject_of(found, "library file"), text, action, found)


def tablespaces(sides: Sides) -> Iterator[Finding]:
    """Tablespaces that the target lacks."""
    there = set(sides.target.facts.names(Names.TABLESPACES))
    used = sides.source.facts.names(Names.TABLESPACES_USED)
    if missing := tuple(name for name in used if name not in there):
        text = f"tables or indexes are in tablespaces that the target does not have: {listed(missing)}"
        action = "CREATE TABLESPACE in the target; without it, they must be created in the default one"
        yield Finding(WARNING, "GGS-01043", subject_of(missing, "tablespace"), text, action, missing)


def large_objects(sides: Sides) -> Iterator[Finding]:
    """Large objects, which the log does not contain."""
    count = sides.source.facts.large_objects()
    if count:
        columns = tuple(sides.source.facts.names(Names.OID_COLUMNS))
        which = f"; {listed(columns)} can refer to them" if columns else ""
        subject = counted(count, "large object")
        text = f"{subject}: large objects are not moved{which}"
        action = "change them to bytea, delete them with vacuumlo if nothing refers to them, or move them with pg_dump"
        yield Finding(_needed(sides), "GGS-01044", subject, text, action, columns)


def local_values(sides: Sides) -> Iterator[Finding]:
    """Columns with names of objects, or with transaction IDs and positions in the log."""
    if found := tuple(sides.source.facts.names(Names.LOCAL_VALUES)):
        text = f"values of {listed(found)} refer to objects or to the log of this server"
        action = "check what they mean in the target; the objects that they name must exist there when the rows arrive"
        yield Finding(INFO, "GGS-01045", subject_of(found, "column"), text, action, found)
