"""From a statement's key to its handler; only the module that the key needs is loaded.

A handler is a function ``handler(session, [bound values,] *, names of its syntax lines) -> Result``.  A decorator binds it to
the key of a line of the manual, with values that tell lines of one handler apart; tests hold names and lines together.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from ggshell.errors import UsageError
from ggshell.shell.results import Result

Handler = Callable[..., Result]
_F = TypeVar("_F", bound=Handler)


class Entry(NamedTuple):
    """A handler with the values bound to it for one key."""

    handler: Handler
    bound: tuple[Any, ...]


_KEYS = {
    "info_all": "INFO ALL, INFO ALL TASKS, INFO ALL ALLPROCESSES",
    "manager": "START MANAGER, START MGR, STOP MANAGER, STOP MGR, INFO MANAGER, INFO MGR, STATUS MANAGER, STATUS MGR,"
    " SEND MANAGER CHILDSTATUS, SEND MGR CHILDSTATUS, SEND MANAGER GETPORTINFO, SEND MGR GETPORTINFO,"
    " SEND MANAGER GETPURGEOLDEXTRACTS, SEND MGR GETPURGEOLDEXTRACTS, REFRESH MANAGER, REFRESH MGR",
    "info": "INFO EXTRACT, INFO REPLICAT, INFO DISTPATH, INFO DISTPATH ALL, INFO ER, INFO,"
    " STATUS EXTRACT, STATUS REPLICAT, STATUS DISTPATH, STATUS ER, STATUS",
    "run": "START EXTRACT, START REPLICAT, START DISTPATH, START ER, START,"
    " STOP EXTRACT, STOP REPLICAT, STOP DISTPATH, STOP ER, STOP,"
    " KILL EXTRACT, KILL REPLICAT, KILL DISTPATH, KILL ER, KILL,"
    " RESTART EXTRACT, RESTART REPLICAT, RESTART ER",
    "stats": "STATS EXTRACT, STATS REPLICAT, STATS DISTPATH, STATS ER, STATS",
    "send": "LAG EXTRACT, LAG REPLICAT, LAG ER, LAG,"
    " SEND EXTRACT STATUS, SEND EXTRACT GETLAG, SEND EXTRACT REPORT, SEND EXTRACT STOP, SEND EXTRACT FORCESTOP,"
    " SEND EXTRACT ROLLOVER,"
    " SEND REPLICAT STATUS, SEND REPLICAT GETLAG, SEND REPLICAT REPORT, SEND REPLICAT STOP, SEND REPLICAT FORCESTOP,"
    " SEND REPLICAT HANDLECOLLISIONS, SEND REPLICAT NOHANDLECOLLISIONS, SEND HANDLECOLLISIONS, SEND NOHANDLECOLLISIONS,"
    " SEND DISTPATH STATUS, SEND DISTPATH GETLAG, SEND DISTPATH REPORT, SEND DISTPATH STOP, SEND DISTPATH FORCESTOP,"
    " SEND DISTPATH ROLLOVER,"
    " SEND ER STATUS, SEND ER GETLAG, SEND ER REPORT, SEND ER STOP, SEND ER FORCESTOP, SEND ER ROLLOVER,"
    " SEND STATUS, SEND GETLAG, SEND REPORT, SEND STOP, SEND FORCESTOP, SEND ROLLOVER",
    "open_transactions": "SEND EXTRACT SHOWTRANS, SEND SHOWTRANS, SEND EXTRACT SKIPTRANS, SEND SKIPTRANS,"
    " SEND EXTRACT FORCETRANS, SEND FORCETRANS, SEND EXTRACT CACHEMGR CACHESTATS, SEND CACHEMGR CACHESTATS,"
    " SEND EXTRACT TRANLOGOPTIONS, SEND TRANLOGOPTIONS, SEND EXTRACT TRANLOGOPTIONS TRANSCLEANUPFREQUENCY,"
    " SEND TRANLOGOPTIONS TRANSCLEANUPFREQUENCY",
    "bounded": "SEND EXTRACT BR BRSTATUS, SEND BR BRSTATUS, SEND EXTRACT BR BRSTATS, SEND BR BRSTATS,"
    " SEND EXTRACT BR BRSTART, SEND BR BRSTART, SEND EXTRACT BR BRSTOP, SEND BR BRSTOP,"
    " SEND EXTRACT BR BRINTERVAL, SEND BR BRINTERVAL, SEND EXTRACT BR BRFSOPTION, SEND BR BRFSOPTION,"
    " SEND EXTRACT BR BRCHECKPOINT, SEND BR BRCHECKPOINT, BR SHOW",
    "extract": "ADD EXTRACT, DELETE EXTRACT, REGISTER EXTRACT, UNREGISTER EXTRACT",
    "replicat": "ADD REPLICAT, ADD REPLICAT SPARK, DELETE REPLICAT",
    "alter": "ALTER EXTRACT, ALTER REPLICAT, ALTER",
    "path": "ADD DISTPATH, DELETE DISTPATH",
    "trail": "ADD EXTTRAIL, ADD RMTTRAIL, DELETE EXTTRAIL, DELETE RMTTRAIL, INFO EXTTRAIL, INFO RMTTRAIL,"
    " ALTER EXTTRAIL, ALTER RMTTRAIL, PURGE EXTTRAIL",
    "database": "DBLOGIN USERIDALIAS, DBLOGIN USERID, DBLOGIN SOURCEDB",
    "trandata": "ADD TRANDATA, DELETE TRANDATA, INFO TRANDATA",
    "checkpoint_table": "ADD CHECKPOINTTABLE, DELETE CHECKPOINTTABLE, INFO CHECKPOINTTABLE, CLEANUP CHECKPOINTTABLE,"
    " UPGRADE CHECKPOINTTABLE",
    "heartbeat": "ADD HEARTBEATTABLE, ALTER HEARTBEATTABLE, DELETE HEARTBEATTABLE, INFO HEARTBEATTABLE,"
    " UPGRADE HEARTBEATTABLE, DELETE HEARTBEATENTRY, LAG HEARTBEAT",
    "credential": "ADD CREDENTIALSTORE, INFO CREDENTIALSTORE, ALTER CREDENTIALSTORE ADD USER,"
    " ALTER CREDENTIALSTORE REPLACE USER, ALTER CREDENTIALSTORE DELETE USER",
    "wallet": "CREATE WALLET, OPEN WALLET, PURGE WALLET, ADD MASTERKEY, RENEW MASTERKEY, INFO MASTERKEY,"
    " DELETE MASTERKEY VERSION, DELETE MASTERKEY RANGE FROM TO, DELETE MASTERKEY ALL, UNDELETE MASTERKEY VERSION",
    "view": "VIEW REPORT, VIEW PARAMS, VIEW GGSEVT, EDIT PARAMS",
    "shell": "HELP, HISTORY, SHELL, HOST, SHOW, VERSIONS, EXIT, QUIT, CREATE SUBDIRS",
    "settings": "SET EDITOR, SET PAGER, SET FORMAT, SET TIMING ON, SET TIMING OFF, SET COLOR ON, SET COLOR OFF,"
    " SPOOL, WATCH, FC",
    "logdump": "LOGDUMP",
    "compare": "COMPARE TO",
    "lag_report": "LAG REPORT",
    "trail_questions": "TRAIL SQL, TRAIL COUNT, TRAIL FIND TRANSACTION, TRAIL FIND CSN, TRAIL FIND TABLE, TRAIL TOP,"
    " TRAIL GAPS, TRAIL ASOF CSN, TRAIL ASOF TIME",
    "spark": "START SPARK, STOP SPARK, INFO SPARK",
    "obey": "OBEY, ALLOWNESTED, NOALLOWNESTED",
}
MODULES = {key.strip(): module for module, keys in _KEYS.items() for key in keys.split(",")}
"""The module of every key."""

_ENTRIES: dict[str, Entry] = {}


def command(key: str, *bound: Any) -> Callable[[_F], _F]:
    """Make a function the handler of a syntax line; ``bound`` goes before the statement's own arguments."""

    def register(function: _F) -> _F:
        _ENTRIES[key] = Entry(function, bound)
        return function

    return register


def unavailable(what: str) -> UsageError:
    """The refusal of something that the manual knows and this version does not carry out."""
    return UsageError(f"{what} is not available in this version.", code="GGS-00103", hint="leave it out")


def find(key: str) -> Entry:
    """The handler of a key.  Raises UsageError when nothing carries the statement out."""
    module = MODULES.get(key)
    if module is None:
        raise unavailable(key)
    import_module(f"ggshell.shell.commands.{module}")
    return _ENTRIES[key]


def load_all() -> dict[str, Entry]:
    """Every handler, for tests and for completion."""
    for key in MODULES:
        find(key)
    return dict(_ENTRIES)
