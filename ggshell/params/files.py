"""What the parameter files of each process say, typed; every default is here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ggshell.columns.clauses import NO_CLAUSES, Clauses
from ggshell.errors import ParameterError
from ggshell.params.images import image_rules
from ggshell.params.lines import Parameter, read_parameters
from ggshell.params.reperror import ReperrorRule, rules_of_map
from ggshell.params.row_clauses import with_clauses
from ggshell.params.run_end import RunEnd, run_end
from ggshell.params.trail_forms import TrailStatement, trail_statements
from ggshell.params.transactions import (
    BoundedParameters,
    LongTransactions,
    bounded_parameters,
    long_transactions,
)
from ggshell.record.image_rules import ImageRules
from ggshell.record.operation import OPERATIONS

DEFAULT_DOMAIN = "OracleGoldenGate"
_UNITS = {"": 1, "B": 1, "K": 1 << 10, "KB": 1 << 10, "M": 1 << 20, "MB": 1 << 20, "G": 1 << 30, "GB": 1 << 30}

_BATCH_LIMITS = ("opsperbatch", "opsperqueue", "bytesperqueue", "batchesperqueue")


class LoginParameters(NamedTuple):
    """How a process logs in: by alias, or with a user."""

    alias: str = ""
    domain: str = DEFAULT_DOMAIN
    userid: str = ""
    password: str = ""
    source: str = ""


class TableStatement(NamedTuple):
    """A TABLE line, with what the lines above it say of images; ``ignored``: the operations that IGNOREINSERTS and its like
    keep away from it; ``predicate``: SQLPREDICATE, which is for initial loads."""

    pattern: str
    keycols: tuple[str, ...] = ()
    ignored: frozenset[int] = frozenset()
    images: ImageRules = ImageRules()
    line: int = 0
    target: str = ""
    clauses: Clauses = NO_CLAUSES
    predicate: str = ""


class MapStatement(NamedTuple):
    """A MAP line; ``ignored`` as of TABLE; ``clauses``: what it does to rows; ``thread``, ``threadrange``: their texts;
    ``barrier``: COORDINATED; ``refusals``: REPERROR."""

    source: str
    target: str
    keycols: tuple[str, ...] = ()
    ignored: frozenset[int] = frozenset()
    clauses: Clauses = NO_CLAUSES
    thread: str = ""
    threadrange: str = ""
    barrier: bool = False
    line: int = 0
    refusals: tuple[ReperrorRule, ...] = ()


LONGEST_RETENTION = 365


class ExtractParameters(NamedTuple):
    """An Extract's or a pump's file.  ``restart_record``: false with OVERWRITEMODE; ``definitions``: SOURCEDEFS;
    ``reads_tables``: SOURCEISTABLE; ``log_retention``: for how many seconds the source is to keep log that is captured already
    (CHECKPOINTRETENTIONTIME)."""

    group: str
    login: LoginParameters = LoginParameters()
    tables: tuple[TableStatement, ...] = ()
    excludes: tuple[str, ...] = ()
    trails: tuple[TrailStatement, ...] = ()
    decrypts: bool = False
    restart_record: bool = True
    truncates: bool = False
    cache_size: int = 64 << 20
    definitions: str = ""
    checkpoint_seconds: int = 10
    bounded: BoundedParameters = BoundedParameters()
    long: LongTransactions = LongTransactions()
    reads_tables: bool = False
    log_retention: float = 0.0
    end: RunEnd = RunEnd()


class BatchStatement(NamedTuple):
    """BATCHSQL's limits: OPSPERBATCH, OPSPERQUEUE, BYTESPERQUEUE, BATCHESPERQUEUE."""

    operations: int | None = None
    queue_operations: int | None = None
    queue_bytes: int | None = None
    queue_batches: int | None = None


class ReplicatParameters(NamedTuple):
    """A Replicat's file.  ``group_operations``: GROUPTRANSOPS, or BATCHSQL's BATCHTRANSOPS; ``appliers``:
    APPLY_PARALLELISM; ``full_serialization``: COMMIT_SERIALIZATION."""

    group: str
    login: LoginParameters = LoginParameters()
    maps: tuple[MapStatement, ...] = ()
    excludes: tuple[str, ...] = ()
    truncates: bool = False
    group_operations: int = 1000
    max_operations: int | None = None
    discard: str = ""
    discard_append: bool = True
    discard_megabytes: int = 50
    checkpoint_seconds: int = 10
    appliers: int = 4
    full_serialization: bool = False
    look_ahead: int = 10_000
    batch: BatchStatement = BatchStatement()
    end: RunEnd = RunEnd()


class RestartRule(NamedTuple):
    """An AUTORESTART line; waits in seconds."""

    kind: str
    pattern: str
    retries: int = 2
    wait: float = 120
    reset: float = 1200


class PurgeRule(NamedTuple):
    """A PURGEOLDEXTRACTS line; ages in hours, ``every`` in seconds."""

    trail: str
    use_checkpoints: bool = True
    keep_hours: int = 0
    keep_files: int = 1
    every: float = 3600


class ManagerParameters(NamedTuple):
    """Manager's file.  ``autostart``: (kind, pattern) pairs."""

    port: int = 7809
    autostart: tuple[tuple[str, str], ...] = ()
    autorestart: tuple[RestartRule, ...] = ()
    purge: tuple[PurgeRule, ...] = ()


class Globals(NamedTuple):
    """The GLOBALS file."""

    schema: str = ""
    checkpoint_table: str = ""
    wallet_location: str = ""
    master_key: str = ""


def load_extract(path: Path) -> ExtractParameters:
    """An Extract's parameters.  Raises ParameterError, StoreError."""
    found = read_parameters(path, "Extract")
    sizes = [item.args["cachesize"] for item in _named(found, "CACHEMGR") if "cachesize" in item.args]
    result = ExtractParameters(
        group=_group(found, "EXTRACT", path),
        login=_login(found, path),
        tables=_tables(found, path),
        excludes=tuple(item.args["table"] for item in _named(found, "TABLEEXCLUDE")),
        trails=trail_statements(found, path),
        decrypts=bool(_named(found, "DECRYPTTRAIL")),
        restart_record=not any("overwritemode" in item.args for item in _named(found, "RECOVERYOPTIONS")),
        truncates=_switch(found, "GETTRUNCATES", "IGNORETRUNCATES"),
        checkpoint_seconds=_last(found, "CHECKPOINTSECS", "seconds", 10),
        definitions=_last(found, "SOURCEDEFS", "file", ""),
        reads_tables=bool(_named(found, "SOURCEISTABLE")),
        log_retention=_days(found, path),
        end=run_end(found, path),
    )
    result = result._replace(
        bounded=bounded_parameters(found, result.checkpoint_seconds),
        long=long_transactions(found, path),
    )
    if not result.tables:
        raise ParameterError("there is no TABLE line", where=str(path), hint="for example TABLE shop.*;")
    return result._replace(cache_size=_size(sizes[-1], path)) if sizes else result


def _days(found: list[Parameter], path: Path) -> float:
    """TRANLOGOPTIONS CHECKPOINTRETENTIONTIME in seconds.  Raises ParameterError for what is no number of days."""
    name = "checkpointretentiontime"
    texts = [item.args[name] for item in _named(found, "TRANLOGOPTIONS") if name in item.args]
    try:
        days = float(texts[-1]) if texts else 0.0
    except ValueError:
        days = -1.0
    if not 0 <= days <= LONGEST_RETENTION:
        raise ParameterError(
            f"CHECKPOINTRETENTIONTIME {texts[-1]} is no number of days", where=str(path), hint="0 to 365, as 0.5"
        )
    return days * 86_400


def load_replicat(path: Path) -> ReplicatParameters:
    """A Replicat's parameters.  Raises ParameterError, StoreError."""
    found = read_parameters(path, "Replicat")
    discards = [item.args for item in _named(found, "DISCARDFILE")]
    discard: dict[str, Any] = discards[-1] if discards else {}
    maps = [
        MapStatement(
            item.args["source_table"],
            item.args["target"],
            item.args.get("keycols", ()),
            ignored,
            clauses,
            item.args.get("thread", ""),
            item.args.get("threadrange", ""),
            "coordinated" in item.args,
            item.line,
            rules_of_map(item, path),
        )
        for (item, ignored), (_, clauses) in zip(
            _with_ignored(found, "MAP"), with_clauses(found, "MAP", path), strict=True
        )
    ]
    if not maps:
        raise ParameterError("there is no MAP line", where=str(path), hint="for example MAP shop.*, TARGET shop.*;")
    return ReplicatParameters(
        group=_group(found, "REPLICAT", path),
        login=_login(found, path),
        maps=tuple(maps),
        excludes=tuple(item.args["table"] for item in _named(found, "MAPEXCLUDE")),
        truncates=_switch(found, "GETTRUNCATES", "IGNORETRUNCATES"),
        group_operations=_last(found, "BATCHSQL", "batchtransops", 0) or _last(found, "GROUPTRANSOPS", "number", 1000),
        max_operations=_last(found, "MAXTRANSOPS", "number", None),
        discard=discard.get("file", ""),
        discard_append="purge" not in discard,
        discard_megabytes=discard.get("megabytes", 50),
        checkpoint_seconds=_last(found, "CHECKPOINTSECS", "seconds", 10),
        appliers=_last(found, "APPLY_PARALLELISM", "number", 0) or _last(found, "MAX_APPLY_PARALLELISM", "number", 4),
        full_serialization=bool(_named(found, "COMMIT_SERIALIZATION")),
        look_ahead=_last(found, "LOOK_AHEAD_TRANSACTIONS", "number", 10_000),
        batch=BatchStatement(*(_last(found, "BATCHSQL", name, None) for name in _BATCH_LIMITS)),
        end=run_end(found, path),
    )


def load_manager(path: Path) -> ManagerParameters:
    """Manager's parameters; the defaults when there is no file.  Raises ParameterError."""
    if not path.exists():
        return ManagerParameters()
    found = read_parameters(path, "Manager")
    autostart = tuple((_kind(item), item.args["group_name"]) for item in _named(found, "AUTOSTART"))
    return ManagerParameters(
        port=_last(found, "PORT", "number", 7809),
        autostart=autostart,
        autorestart=tuple(_restart(item) for item in _named(found, "AUTORESTART")),
        purge=tuple(_purge(item) for item in _named(found, "PURGEOLDEXTRACTS")),
    )


def load_globals(path: Path) -> Globals:
    """The GLOBALS file; the defaults when there is none.  Raises ParameterError."""
    if not path.exists():
        return Globals()
    found = read_parameters(path, "GLOBALS")
    return Globals(
        _last(found, "GGSCHEMA", "schema", ""),
        _last(found, "CHECKPOINTTABLE", "checkpoint_table", ""),
        _last(found, "WALLETLOCATION", "directory", ""),
        _last(found, "MASTERKEYNAME", "key_name", ""),
    )


def _tables(found: list[Parameter], path: Path) -> tuple[TableStatement, ...]:
    """TABLE lines in order; switches of images count for the lines below them."""
    return tuple(
        TableStatement(
            item.args["table"],
            item.args.get("keycols", ()),
            ignored,
            images,
            item.line,
            item.args.get("target", ""),
            clauses,
            str(item.args.get("sqlpredicate", "")).strip("'\""),
        )
        for (item, ignored), images, (_, clauses) in zip(
            _with_ignored(found, "TABLE"), image_rules(found), with_clauses(found, "TABLE", path), strict=True
        )
    )


def _named(found: list[Parameter], name: str) -> list[Parameter]:
    return [item for item in found if item.name == name]


def _with_ignored(found: list[Parameter], name: str) -> Iterator[tuple[Parameter, frozenset[int]]]:
    """Each statement of a name with the operations that the IGNORE… above it leave out, until their GET…"""
    ignored: dict[str, frozenset[int]] = {}
    for item in found:
        kind = item.name.removeprefix("GET").removeprefix("IGNORE")
        if kind in OPERATIONS and item.name == f"IGNORE{kind}":
            ignored[kind] = OPERATIONS[kind]
        elif kind in OPERATIONS:
            ignored.pop(kind, None)
        elif item.name == name:
            yield item, frozenset().union(*ignored.values())


def _last(found: list[Parameter], name: str, argument: str, default: Any) -> Any:
    values = [item.args[argument] for item in _named(found, name) if argument in item.args]
    return values[-1] if values else default


def _switch(found: list[Parameter], on: str, off: str) -> bool:
    switches = [item.name for item in found if item.name in (on, off)]
    return bool(switches) and switches[-1] == on


def _group(found: list[Parameter], name: str, path: Path) -> str:
    groups = _named(found, name)
    if not groups:
        raise ParameterError(f"the file does not begin with {name} and its group", where=f"{path}:1:1")
    return str(groups[0].args["group_name"])


def _login(found: list[Parameter], path: Path) -> LoginParameters:
    result = LoginParameters()
    for item in found:
        if item.name in ("SOURCEDB", "TARGETDB", "USERID", "USERIDALIAS"):
            given = {
                "alias": item.args.get("alias") or item.args.get("useridalias"),
                "domain": item.args.get("domain"),
                "userid": item.args.get("userid"),
                "password": item.args.get("password"),
                "source": item.args.get("source"),
            }
            result = result._replace(**{name: value for name, value in given.items() if value})
    return result


def _size(text: str, path: Path) -> int:
    match = re.fullmatch(r"(\d+)\s*([KMG]?B?)", str(text).upper())
    if not match:
        raise ParameterError(f"{text} is no size", code="OGG-10144", where=str(path), hint="for example 256MB")
    return int(match[1]) * _UNITS[match[2]]


def _kind(item: Parameter) -> str:
    return next(name.upper() for name in ("er", "extract", "replicat", "distpath") if name in item.args)


def _restart(item: Parameter) -> RestartRule:
    given = item.args
    wait = given["waitseconds"] if "waitseconds" in given else given.get("waitminutes", 2) * 60
    reset = given.get("resetminutes", 20) * 60
    return RestartRule(_kind(item), given["group_name"], given.get("retries", 2), wait, reset)


def _purge(item: Parameter) -> PurgeRule:
    given = item.args
    hours = given.get("minkeephours", 0) + 24 * given.get("minkeepdays", 0)
    every = 60 * given.get("frequencyminutes", 0) + 3600 * given.get("frequencyhours", 0)
    files = 1 if hours else given.get("minkeepfiles", 1)
    return PurgeRule(given["trail"], "nousecheckpoints" not in given, hours, files, float(every or 3600))
