"""Which role each statement requires when it comes through the service.

``ROLES`` has an entry for the key of every statement that the service carries out. Options can require more: files that are
written, files outside the home, and repairs of tables. HELP SECURITY shows the table; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ggshell.cli.local_statements import AT_THE_HOME, LOCAL, at_the_home
from ggshell.errors import UsageError
from ggshell.home.users import Role
from ggshell.service.named_files import Bounds
from ggshell.service.named_places import SHOWN, STATEMENTS, require_use
from ggshell.service.sign_in import Principal, required

if TYPE_CHECKING:
    from ggshell.language.grammar import Parsed

_GROUPS: Final = "- EXTRACT REPLICAT DISTPATH RECVPATH ER"
_MANAGERS: Final = "MANAGER MGR"


def _each(verb: str, objects: str, actions: str = "") -> set[str]:
    """Return the keys of a verb: with each object (``-``: none) and each action (separated by commas)."""
    heads = [verb if each == "-" else f"{verb} {each}" for each in objects.split()]
    return {f"{head} {action}" for head in heads for action in actions.split(", ")} if actions else set(heads)


_READING: Final = (
    _each("INFO", f"{_GROUPS} {_MANAGERS} CHECKPOINTTABLE CREDENTIALSTORE EXTTRAIL RMTTRAIL HEARTBEATTABLE MASTERKEY")
    | _each("INFO", "PARAM SCHEMATRANDATA SERVICE SPARK TRANDATA")
    | {
        "INFO ALL",
        "INFO ALL ALLPROCESSES",
        "INFO ALL TASKS",
        "INFO DISTPATH ALL",
        "INFO RECVPATH ALL",
        "LIST TABLES",
        "BR SHOW",
        "VERSIONS",
    }
    | _each("STATUS", f"{_GROUPS} {_MANAGERS} SERVICE")
    | _each("STATS", _GROUPS)
    | _each("LAG", f"{_GROUPS} HEARTBEAT REPORT")
    | _each("VIEW", "DISCARD GGSEVT GLOBALS MESSAGES PARAMS REPORT")
    | _each("TRAIL", "GAPS TOP COUNT")
    | _each("TRAIL", "FIND", "CSN, DDL, TABLE, TRANSACTION")
    | _each("TRAIL", "ASOF", "CSN, TIME")
    | _each("SEND", _GROUPS, "GETLAG, STATUS")
    | _each("SEND", "- EXTRACT REPLICAT", "GETPARAMINFO, LOGEND")
    | _each("SEND", "- EXTRACT", "SHOWTRANS, CACHEMGR CACHESTATS, BR BRSTATS, BR BRSTATUS")
    | _each("SEND", _MANAGERS, "CHILDSTATUS, GETPARAMINFO, GETPORTINFO, GETPURGEOLDEXTRACTS")
    | {"DBLOGIN USERIDALIAS"}
)
_OPERATING: Final = (
    _each("START", f"{_GROUPS} {_MANAGERS} SPARK")
    | _each("STOP", f"{_GROUPS} {_MANAGERS} SPARK")
    | _each("RESTART", "EXTRACT REPLICAT ER")
    | _each("KILL", _GROUPS)
    | _each("REFRESH", _MANAGERS)
    | _each("SEND", _GROUPS, "FORCESTOP, REPORT, STOP")
    | _each("SEND", "- EXTRACT DISTPATH RECVPATH ER", "ROLLOVER")
    | _each("SEND", "- REPLICAT", "HANDLECOLLISIONS, NOHANDLECOLLISIONS, REPORT HANDLECOLLISIONS")
    | _each("SEND", "- EXTRACT", "FORCETRANS, SKIPTRANS, TRANLOGOPTIONS, TRANLOGOPTIONS TRANSCLEANUPFREQUENCY")
    | _each("SEND", "- EXTRACT", "BR BRCHECKPOINT, BR BRFSOPTION, BR BRINTERVAL, BR BRSTART, BR BRSTOP")
    | _each("ALTER", "- EXTRACT REPLICAT")
    | {"ALTER DISTPATH BEGIN", "ALTER RECVPATH BEGIN", "COMPARE TO"}
)
_ADMINISTERING: Final = (
    _each("ADD", "CHECKPOINTTABLE CREDENTIALSTORE DISTPATH EXTRACT EXTTRAIL HEARTBEATTABLE RECVPATH REPLICAT RMTTRAIL")
    | _each("ADD", "SCHEMATRANDATA TRANDATA")
    | _each("ADD", "EXTRACT", "RMTHOST")
    | _each("ADD", "REPLICAT", "EXTFILE, SPARK, SPECIALRUN")
    | _each("ALTER", "EXTTRAIL RMTTRAIL HEARTBEATTABLE")
    | _each("ALTER", "CREDENTIALSTORE", "ADD USER, DELETE USER, REPLACE USER")
    | {"CREATE SUBDIRS", "LOAD TO", "PURGE EXTTRAIL", "TAKEOVER HOME"}
    | {"ALTER REPLICAT MAINTAIN EVERY", "ALTER REPLICAT MAINTAIN OFF", "MAINTAIN LAKE"}
    | _each(
        "ALTER",
        "DISTPATH RECVPATH",
        "AUTHENTICATION, OPTIONS, RULE FILTER, RULE PASSTHRU, TARGET COMPRESSION, TARGET FORMAT, TARGET PROXY URI TYPE,"
        " TARGET SEQLEN, TARGET SIZEMB",
    )
    | {"ALTER RECVPATH SOURCE PROXY URI", "ALTER DISTPATH TARGET", "ALTER DISTPATH TARGET URI"}
    | {"ADD MASTERKEY", "RENEW MASTERKEY", "UNDELETE MASTERKEY VERSION"}
    | {"DELETE MASTERKEY ALL", "DELETE MASTERKEY RANGE FROM TO", "DELETE MASTERKEY VERSION"}
    | _each("CLEANUP", "CHECKPOINTTABLE EXTRACT REPLICAT")
    | _each("DELETE", "CHECKPOINTTABLE CREDENTIALSTORE DISTPATH ER EXTRACT EXTTRAIL HEARTBEATENTRY HEARTBEATTABLE")
    | _each("DELETE", "RECVPATH REPLICAT RMTTRAIL SCHEMATRANDATA TRANDATA")
    | _each("FLUSH", "SEQUENCE")
    | _each("REGISTER", "EXTRACT")
    | _each("UNREGISTER", "EXTRACT")
    | _each("UPGRADE", "CHECKPOINTTABLE HEARTBEATTABLE")
    | _each("DBLOGIN", "SOURCEDB USERID")
)
_SECURING: Final = (
    _each("ADD", "PEER USER")
    | _each("ALTER", "PEER USER")
    | _each("DELETE", "PEER USER")
    | _each("INFO", "PEER PEERS USER USERS")
    | {"CREATE WALLET", "MERGE WALLET", "OPEN WALLET", "PURGE WALLET", "TRAIL SQL"}
)
ROLES: Final[Mapping[str, Role]] = {
    key: role
    for role, keys in (
        (Role.USER, _READING),
        (Role.OPERATOR, _OPERATING),
        (Role.ADMINISTRATOR, _ADMINISTERING),
        (Role.SECURITY, _SECURING),
    )
    for key in keys
}
"""The lowest role for the key of each statement."""

_WRITING: Final[Mapping[str, tuple[str, ...]]] = {
    "SEND": ("file",),
    "COMPARE": ("repair",),
    "LAG": ("to", "archive"),
    "STATS": ("reset",),
}
"""Options of statements, by verb, that write a file or change something: they require ADMINISTRATOR."""

_LOGIN_SIGNS: Final = ("@", "://", "=")


def require_permission(principal: Principal, parsed: Parsed, bounds: Bounds) -> None:
    """Check that a user may run a statement through the service.

    Raises HttpError 403 for a role that is too low, UsageError for a statement that belongs to a shell on the user's machine,
    or for a file in a folder with secrets.
    """
    if parsed.key in LOCAL:
        raise UsageError(
            f"{parsed.key} is carried out by the shell, not by the service",
            code="GGS-00928",
            hint="run it in ggshell; a connected shell carries it out itself",
        )
    if parsed.key in AT_THE_HOME:
        raise at_the_home(parsed.key)
    role = ROLES.get(parsed.key, Role.USER if parsed.notes else Role.SECURITY)
    if _changes_own_user(principal, parsed):
        role = Role.USER
    required(principal, max(role, _role_of_options(parsed)))
    require_places(principal, parsed, bounds)


def require_places(principal: Principal, parsed: Parsed, bounds: Bounds) -> None:
    """Check what a statement names on the machine; for a statement of a request, the route has checked the role for the rest.

    Raises HttpError 403, UsageError.
    """
    for name, value in parsed.args.items():
        if (use := STATEMENTS.get((parsed.key, name))) is not None:
            require_use(bounds, principal, use, value)
    if (shown := SHOWN.get(parsed.key)) is not None:
        require_use(bounds, principal, *shown)


def _changes_own_user(principal: Principal, parsed: Parsed) -> bool:
    """Whether users change their own password or description."""
    return parsed.key == "ALTER USER" and parsed.args.get("user_name") == principal.name and "role" not in parsed.args


def _role_of_options(parsed: Parsed) -> Role:
    """Return the role that the options of a statement require, apart from the files that they name."""
    arguments, role = parsed.args, Role.ANYONE
    if any(arguments.get(name) for name in _WRITING.get(parsed.key.split()[0], ())):
        role = Role.ADMINISTRATOR
    if any(sign in text for text in _databases(arguments) for sign in _LOGIN_SIGNS):
        role = Role.ADMINISTRATOR
    return role


def _databases(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Return the databases that COMPARE, LOAD and LAG REPORT name: aliases, or logins that are connected to from here."""
    for name in ("source", "target", "from_"):
        value = arguments.get(name, ())
        yield from (str(each) for each in (value if isinstance(value, tuple) else (value,)))
