"""The check before a move: whether a database, or some of its schemas, can be moved to another server.

It only reads. Some rules need others to hold, so after an error of the versions nothing else is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Final

from ggshell.connectors.logged_in import Credentials, LoggedIn
from ggshell.connectors.registry import connector_for
from ggshell.errors import ConnectionLostError, DatabaseError, GgsError
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.move.checks import limits, locales, rights, roles, servers, software, surroundings, tables
from ggshell.move.checks.sides import Rule, Sides
from ggshell.move.findings import ERROR, WARNING, Finding, FindingSeverity
from ggshell.move.request import MoveRequest

RULES: Final[tuple[Rule, ...]] = (
    servers.programs,
    servers.writable,
    servers.schemas,
    servers.earlier_moves,
    servers.target_objects,
    limits.log_level,
    limits.slots,
    limits.retention,
    limits.sessions,
    limits.clocks,
    rights.log,
    rights.event_triggers,
    rights.tables,
    rights.database,
    rights.applying,
    rights.owners,
    rights.superuser_functions,
    rights.visibility,
    roles.missing_roles,
    roles.settings,
    roles.grants,
    software.extensions,
    software.preloaded,
    software.extension_rows,
    software.types,
    software.access_methods,
    software.libraries,
    software.tablespaces,
    software.large_objects,
    software.local_values,
    tables.keys,
    tables.unlogged,
    tables.columns,
    tables.virtual,
    tables.sequences,
    tables.inherited,
    tables.foreign,
    tables.views,
    tables.triggers,
    surroundings.publications,
    surroundings.subscriptions,
    surroundings.origins,
    surroundings.slots,
    surroundings.foreign_servers,
    surroundings.event_triggers,
    surroundings.open_work,
    surroundings.emptiness,
    locales.encoding,
    locales.default_collation,
    locales.collations,
    locales.changed_library,
    limits.disk,
    limits.size,
)
"""All rules but those of the versions, in the order in which findings of one severity are shown."""


def check_aliases(home: Home, request: MoveRequest) -> tuple[Finding, ...]:
    """Log in with the aliases of a request and check. A login that fails is a finding.

    Raises ConnectionLostError if a connection is lost later.
    """
    with ExitStack() as logins:
        source = _log_in(home, "source", request.source, logins)
        target = _log_in(home, "target", request.target, logins)
        if isinstance(source, Finding) or isinstance(target, Finding):
            return tuple(each for each in (source, target) if isinstance(each, Finding))
        return check(source, target, request)


def _log_in(home: Home, word: str, alias: str, logins: ExitStack) -> LoggedIn | Finding:
    """Log in until ``logins`` ends, or return why that is impossible."""
    try:
        found = CredentialStore(home).resolve(alias)
        login = connector_for(found.userid).log_in(Credentials(found.userid, found.password or None), home.root)
    except GgsError as error:
        return Finding(ERROR, "GGS-01001", alias, f"cannot log in to the {word}: {error.located}", error.hint)
    logins.callback(login.close)
    return login


def check(source: LoggedIn, target: LoggedIn, request: MoveRequest) -> tuple[Finding, ...]:
    """Check two databases; errors come first, then warnings and information.

    Raises ConnectionLostError, DatabaseError, and StateError for a kind of database that cannot be moved.
    """
    sides = Sides(source, target, request)
    found = list(servers.versions(sides))
    if not found:
        found = [finding for rule in RULES for finding in _tried(rule, sides)]
    severities = list(FindingSeverity)
    return tuple(sorted(found, key=lambda finding: severities.index(finding.severity)))


def _tried(rule: Rule, sides: Sides) -> Iterator[Finding]:
    """Apply a rule. A fact that the server refuses to give is a finding, and does not end the check."""
    try:
        yield from rule(sides)
    except ConnectionLostError:
        raise
    except DatabaseError as error:
        name = rule.__name__.replace("_", " ")
        text = f"the check of {name} is incomplete: {error.message}"
        yield Finding(WARNING, "GGS-01002", name, text, "repeat the check as a superuser")


def failed(findings: Iterable[Finding]) -> bool:
    """Whether a finding prevents the move: the exit code is then 1."""
    return any(finding.severity is ERROR for finding in findings)
