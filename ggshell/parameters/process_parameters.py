"""The parameters of each process as typed records, with every default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ggshell.durations import DAY, HOUR, MINUTE, WEEK, read_interval
from ggshell.errors import ParameterError
from ggshell.language.unsupported import CODE
from ggshell.parameters.access_rules import AccessRules, access_rules
from ggshell.parameters.ddl_rules import DdlOptions, ddl_errors, ddl_options, ddl_rules, ddl_substitutions
from ggshell.parameters.discard_file import DiscardRule, discard_rule
from ggshell.parameters.lake_tables import LakeLayouts, lake_layouts
from ggshell.parameters.lines import Parameter
from ggshell.parameters.remote_hosts import PassiveOptions, passive_options
from ggshell.parameters.reperror import ReperrorRule, with_rules, with_switches
from ggshell.parameters.row_clauses import with_clauses
from ggshell.parameters.trail_statements import (
    TrailStatement,
    idle_encryption,
    require_same_tables,
    trail_statements,
)
from ggshell.parameters.transaction_rules import (
    BoundedParameters,
    LongTransactions,
    bounded_parameters,
    long_transactions,
)
from ggshell.pipeline.apply.error_rules import Switches
from ggshell.pipeline.transform.clauses import NO_CLAUSES, Clauses
from ggshell.quantities import Timestamp
from ggshell.record.ddl_responses import DdlErrors, DdlSubstitutions
from ggshell.record.ddl_rules import ALL_DDL, DdlRules
from ggshell.record.image_rules import ImageRules, Unified
from ggshell.record.operation import OPERATIONS, TRUNCATES

_SWITCHED = {**OPERATIONS, "TRUNCATES": TRUNCATES}
DEFAULT_DOMAIN = "OracleGoldenGate"
_BATCH_LIMITS = ("opsperbatch", "opsperqueue", "bytesperqueue", "batchesperqueue")
_SWITCHES: dict[str, dict[str, Any]] = {
    "COMPRESSUPDATES": {"whole_updates": False},
    "NOCOMPRESSUPDATES": {"whole_updates": True},
    "COMPRESSDELETES": {"whole_deletes": False},
    "NOCOMPRESSDELETES": {"whole_deletes": True},
    "GETUPDATEBEFORES": {"befores": True},
    "IGNOREUPDATEBEFORES": {"befores": False},
}


class RunEnd(NamedTuple):
    """The end of a run.

    ``moment``: microseconds since 1970, or None if only STOP ends the run; ``runtime``: END RUNTIME, the time at which
    the run began.
    """

    moment: int | None = None
    runtime: bool = False


class LoginParameters(NamedTuple):
    """How a process logs in: by alias, or with a user and password."""

    alias: str = ""
    domain: str = DEFAULT_DOMAIN
    userid: str = ""
    password: str = ""
    source: str = ""


class TableStatement(NamedTuple):
    """A TABLE line, with the settings of the lines above it.

    ``ignored``: the operations that IGNOREINSERTS and similar parameters exclude; ``images``: the rules for row images;
    ``predicate``: SQLPREDICATE, for initial loads.
    """

    pattern: str
    keycols: tuple[str, ...] = ()
    ignored: frozenset[int] = frozenset()
    images: ImageRules = ImageRules()
    line: int = 0
    target: str = ""
    clauses: Clauses = NO_CLAUSES
    predicate: str = ""


class MapStatement(NamedTuple):
    """A MAP line.

    ``ignored``: as for TABLE; ``clauses``: the clauses that select or change rows; ``thread``, ``threadrange``: the text of
    these options; ``barrier``: COORDINATED; ``refusals``: REPERROR, if other rules apply than
    at the end of the file; ``switches``: HANDLECOLLISIONS and similar.
    """

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
    switches: Switches = Switches()


class ExtractParameters(NamedTuple):
    """The parameters of an Extract or a pump.

    ``restart_record``: false with OVERWRITEMODE; ``definitions``: SOURCEDEFS; ``reads_tables``: SOURCEISTABLE;
    ``log_retention``: for how many seconds the source keeps log that is already captured (CHECKPOINTRETENTIONTIME);
    ``ends_at_unreadable``: TRANLOGOPTIONS UNREADABLEREDO ABEND; ``adds_trandata``: DDLOPTIONS ADDTRANDATA;
    ``needs_trandata``: the same with ABEND; ``idle_encryption``: the positions of ENCRYPTTRAIL lines that do not encrypt any
    trail; ``sequences``: the patterns of SEQUENCE lines; ``ddl``: the statements to capture, None to capture none;
    ``passive``: RMTHOSTOPTIONS; ``replicates``: GETREPLICATES.
    """

    group: str
    login: LoginParameters = LoginParameters()
    tables: tuple[TableStatement, ...] = ()
    excludes: tuple[str, ...] = ()
    sequences: tuple[str, ...] = ()
    trails: tuple[TrailStatement, ...] = ()
    passive: PassiveOptions | None = None
    decrypts: bool = False
    restart_record: bool = True
    truncates: bool = False
    replicates: bool = False
    cache_size: int = 64 << 20
    definitions: str = ""
    checkpoint_seconds: int = 10
    bounded: BoundedParameters = BoundedParameters()
    long: LongTransactions = LongTransactions()
    reads_tables: bool = False
    log_retention: float = 0.0
    ends_at_unreadable: bool = False
    end: RunEnd = RunEnd()
    idle_encryption: tuple[str, ...] = ()
    adds_trandata: bool = False
    needs_trandata: bool = False
    ddl: DdlRules | None = None
    ddl_errors: DdlErrors = DdlErrors()
    ddl_substitutions: DdlSubstitutions = DdlSubstitutions()
    ddl_options: DdlOptions = DdlOptions()


class BatchStatement(NamedTuple):
    """The limits of BATCHSQL: OPSPERBATCH, OPSPERQUEUE, BYTESPERQUEUE, BATCHESPERQUEUE."""

    operations: int | None = None
    queue_operations: int | None = None
    queue_bytes: int | None = None
    queue_batches: int | None = None


class ReplicatParameters(NamedTuple):
    """The parameters of a Replicat.

    ``group_operations``: GROUPTRANSOPS, or BATCHTRANSOPS of BATCHSQL; ``appliers``: APPLY_PARALLELISM or
    MAX_APPLY_PARALLELISM; ``fewest_appliers``: APPLY_PARALLELISM or MIN_APPLY_PARALLELISM; ``full_serialization``:
    COMMIT_SERIALIZATION; ``suppress_triggers``, ``defer_constraints``, ``non_transactional``: SUPPRESSTRIGGERS, DEFERREFCONST
    and ALLOWNONTRANSACTIONAL of DBOPTIONS; ``special``: SPECIALRUN; ``ddl``: the statements to apply, by default all;
    ``layouts`` and ``latency``, in seconds: LAKETABLE and LATENCY, for a lake; ``defer_seconds``: DEFERAPPLYINTERVAL.
    """

    group: str
    login: LoginParameters = LoginParameters()
    maps: tuple[MapStatement, ...] = ()
    excludes: tuple[str, ...] = ()
    truncates: bool = False
    group_operations: int = 1000
    max_operations: int | None = None
    discard: DiscardRule = DiscardRule()
    checkpoint_seconds: int = 10
    appliers: int = 4
    fewest_appliers: int = 1
    full_serialization: bool = False
    look_ahead: int = 10_000
    batch: BatchStatement = BatchStatement()
    end: RunEnd = RunEnd()
    suppress_triggers: bool = False
    defer_constraints: bool = False
    non_transactional: bool = False
    special: bool = False
    ddl: DdlRules = ALL_DDL
    ddl_errors: DdlErrors = DdlErrors()
    ddl_substitutions: DdlSubstitutions = DdlSubstitutions()
    ddl_options: DdlOptions = DdlOptions()
    layouts: LakeLayouts = LakeLayouts()
    latency: int = 0
    defer_seconds: float = 0.0


class RestartRule(NamedTuple):
    """An AUTORESTART line, or a profile of one group. ``wait`` and ``reset`` are in seconds.

    ``gives_up``: after the last retry within the reset time, the group is not restarted again.
    """

    kind: str
    pattern: str
    retries: int = 2
    wait: float = 120
    reset: float = 1200
    gives_up: bool = False


class PurgeRule(NamedTuple):
    """A PURGEOLDEXTRACTS line. ``keep_hours`` is in hours, ``every`` in seconds."""

    trail: str
    use_checkpoints: bool = True
    keep_hours: int = 0
    keep_files: int = 1
    every: float = HOUR


class ManagerParameters(NamedTuple):
    """Manager's parameters. ``autostart``: (kind, pattern) pairs. ``starts_service``: AUTOSTART SERVICE.

    ``service_port``: the port of PORT, where the service listens too; 0 if the file has no PORT. ``access``: ACCESSRULE.
    """

    port: int = 7809
    service_port: int = 0
    access: AccessRules = AccessRules()
    autostart: tuple[tuple[str, str], ...] = ()
    starts_service: bool = False
    autorestart: tuple[RestartRule, ...] = ()
    purge: tuple[PurgeRule, ...] = ()


class Globals(NamedTuple):
    """The GLOBALS file."""

    schema: str = ""
    checkpoint_table: str = ""
    wallet_location: str = ""
    master_key: str = ""


def extract_parameters(found: list[Parameter], path: Path) -> ExtractParameters:
    """An Extract's parameters. Raises ParameterError."""
    require_same_tables(found)
    purges_source(found)
    adding = [item.args["addtrandata"] for item in _named(found, "DDLOPTIONS") if "addtrandata" in item.args]
    result = ExtractParameters(
        group=_group(found, "EXTRACT", path),
        login=_login(found),
        tables=_tables(found),
        excludes=_excludes(found, "TABLEEXCLUDE"),
        sequences=tuple(item.args["sequence"] for item in _named(found, "SEQUENCE")),
        trails=trail_statements(found),
        passive=passive_options(found),
        idle_encryption=tuple(item.place for item in idle_encryption(found)),
        decrypts=bool(_named(found, "DECRYPTTRAIL")),
        restart_record=not any("overwritemode" in item.args for item in _named(found, "RECOVERYOPTIONS")),
        truncates=_takes_truncates(found, "TABLE"),
        replicates=_switch(found, "GETREPLICATES", "IGNOREREPLICATES"),
        cache_size=_last(found, "CACHEMGR", "cachesize", 64 << 20),
        checkpoint_seconds=_last(found, "CHECKPOINTSECS", "seconds", 10),
        definitions=_last(found, "SOURCEDEFS", "file", ""),
        reads_tables=bool(_named(found, "SOURCEISTABLE")),
        log_retention=float(_last(found, "TRANLOGOPTIONS", "checkpointretentiontime", 0)) * DAY,
        ends_at_unreadable=_ends_at_unreadable(found),
        end=run_end(found),
        adds_trandata=bool(adding),
        needs_trandata=any(item == "ABEND" for item in adding),
        ddl=ddl_rules(found),
        ddl_errors=ddl_errors(found),
        ddl_substitutions=ddl_substitutions(found),
        ddl_options=ddl_options(found),
    )
    result = result._replace(
        bounded=bounded_parameters(found, result.checkpoint_seconds),
        long=long_transactions(found),
    )
    if not result.tables:
        raise ParameterError("a TABLE line is required", where=str(path), hint="add, for example, TABLE shop.*;")
    return result


def _ends_at_unreadable(found: list[Parameter]) -> bool:
    """Whether the last TRANLOGOPTIONS UNREADABLEREDO says ABEND."""
    texts = [item.args["unreadableredo"] for item in _named(found, "TRANLOGOPTIONS") if "unreadableredo" in item.args]
    return bool(texts) and "abend" in str(texts[-1]).lower()


def replicat_parameters(found: list[Parameter], path: Path) -> ReplicatParameters:
    """A Replicat's parameters. Raises ParameterError."""
    purges_source(found)
    maps = _maps(found, path)
    given = _last(found, "APPLY_PARALLELISM", "number", 0)
    most = _last(found, "MAX_APPLY_PARALLELISM", "number", 4)
    return ReplicatParameters(
        group=_group(found, "REPLICAT", path),
        login=_login(found),
        maps=maps,
        excludes=_excludes(found, "MAPEXCLUDE"),
        truncates=_takes_truncates(found, "MAP"),
        latency=_latency(found),
        defer_seconds=_deferred(found),
        group_operations=_last(found, "BATCHSQL", "batchtransops", 0) or _last(found, "GROUPTRANSOPS", "number", 1000),
        max_operations=_last(found, "MAXTRANSOPS", "number", None),
        discard=discard_rule(found),
        checkpoint_seconds=_last(found, "CHECKPOINTSECS", "seconds", 10),
        appliers=given or most,
        fewest_appliers=given or min(most, _last(found, "MIN_APPLY_PARALLELISM", "number", 1)),
        full_serialization=bool(_named(found, "COMMIT_SERIALIZATION")),
        look_ahead=_last(found, "LOOK_AHEAD_TRANSACTIONS", "number", 10_000),
        batch=BatchStatement(*(_last(found, "BATCHSQL", name, None) for name in _BATCH_LIMITS)),
        end=run_end(found),
        suppress_triggers=_suppresses(found),
        defer_constraints=any("deferrefconst" in item.args for item in _named(found, "DBOPTIONS")),
        non_transactional=any("allownontransactional" in item.args for item in _named(found, "DBOPTIONS")),
        special=bool(_named(found, "SPECIALRUN")),
        ddl=ddl_rules(found) or ALL_DDL,
        ddl_errors=ddl_errors(found),
        ddl_substitutions=ddl_substitutions(found),
        ddl_options=ddl_options(found),
        layouts=lake_layouts(found),
    )


def _maps(found: list[Parameter], path: Path) -> tuple[MapStatement, ...]:
    """The MAP lines in order. Raises ParameterError if there is none, or one that would not be used."""
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
            rules,
            switches,
        )
        for (item, ignored), (_, clauses), (_, rules), (_, switches) in zip(
            _with_ignored(found, "MAP"),
            with_clauses(found, "MAP"),
            with_rules(found),
            with_switches(found),
            strict=True,
        )
    ]
    if not maps:
        raise ParameterError(
            "a MAP line is required", where=str(path), hint="add, for example, MAP shop.*, TARGET shop.*;"
        )
    _require_single_maps(found)
    return tuple(maps)


def _require_single_maps(found: list[Parameter]) -> None:
    """Raise ParameterError for a second MAP with the same source and target below ALLOWDUPTARGETMAP: it would not be used."""
    allowed, known = False, set[tuple[str, str]]()
    for item in found:
        if item.name in ("ALLOWDUPTARGETMAP", "NOALLOWDUPTARGETMAP"):
            allowed = item.name == "ALLOWDUPTARGETMAP"
        elif item.name == "MAP" and "exceptionsonly" not in item.args:
            names = (item.args["source_table"], item.args["target"])
            if allowed and names in known:
                raise item.wrong(
                    f"MAP {names[0]}, TARGET {names[1]} is specified twice, and a target receives each source row once:"
                    " ALLOWDUPTARGETMAP is not supported",
                    code=CODE,
                    hint="use one MAP for these tables, or a second Replicat",
                )
            known.add(names)


def _suppresses(found: list[Parameter]) -> bool:
    """Whether the last DBOPTIONS option about triggers is SUPPRESSTRIGGERS."""
    words = ("suppresstriggers", "nosuppresstriggers")
    said = [word for item in _named(found, "DBOPTIONS") for word in words if word in item.args]
    return bool(said) and said[-1] == "suppresstriggers"


def manager_parameters(found: list[Parameter]) -> ManagerParameters:
    """Manager's parameters."""
    given = _named(found, "AUTOSTART")
    autostart = tuple((_kind(item), item.args["group_name"]) for item in given if "group_name" in item.args)
    return ManagerParameters(
        port=_last(found, "PORT", "number", 7809),
        service_port=_last(found, "PORT", "number", 0),
        access=access_rules(found),
        autostart=autostart,
        starts_service=any("group_name" not in item.args for item in given),
        autorestart=tuple(_restart(item) for item in _named(found, "AUTORESTART")),
        purge=tuple(_purge(item) for item in _named(found, "PURGEOLDEXTRACTS")),
    )


def globals_parameters(found: list[Parameter]) -> Globals:
    """The parameters of GLOBALS."""
    return Globals(
        _last(found, "GGSCHEMA", "schema", ""),
        _last(found, "CHECKPOINTTABLE", "checkpoint_table", ""),
        _last(found, "WALLETLOCATION", "directory", ""),
        _last(found, "MASTERKEYNAME", "key_name", ""),
    )


def run_end(found: Sequence[Parameter]) -> RunEnd:
    """The last END. Its time is in the machine's local time zone."""
    given = [item for item in found if item.name == "END"]
    if not given:
        return RunEnd()
    when: Timestamp | None = given[-1].args.get("when")
    return RunEnd(runtime=True) if when is None else RunEnd(when.moment)


def image_rules(found: Iterable[Parameter]) -> list[ImageRules]:
    """The image rules of each TABLE line, in order.

    The switches apply to the lines below them. LOGALLSUPCOLS and UPDATERECORDFORMAT apply to the whole file. LOGALLSUPCOLS
    implies UPDATERECORDFORMAT COMPACT unless the file has an UPDATERECORDFORMAT.
    """
    parameters = list(found)
    names = {item.name for item in parameters}
    formats = [item.args for item in parameters if item.name == "UPDATERECORDFORMAT"]
    supplemental = "LOGALLSUPCOLS" in names
    unified = Unified.COMPACT if supplemental else None
    if formats:
        unified = Unified.FULL if "full" in formats[-1] else Unified.COMPACT
    rules = ImageRules(supplemental=supplemental, unified=unified)
    result: list[ImageRules] = []
    for item in parameters:
        rules = rules._replace(**_SWITCHES.get(item.name, {}))
        if item.name == "TABLE":
            result.append(rules)
    return result


def _tables(found: list[Parameter]) -> tuple[TableStatement, ...]:
    """The TABLE lines in order. Switches for row images apply to the lines below them."""
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
            _with_ignored(found, "TABLE"), image_rules(found), with_clauses(found, "TABLE"), strict=True
        )
    )


def _named(found: list[Parameter], name: str) -> list[Parameter]:
    return [item for item in found if item.name == name]


def _with_ignored(found: list[Parameter], name: str) -> Iterator[tuple[Parameter, frozenset[int]]]:
    """Each statement of a name, with the operations excluded by the IGNORE… lines above it (until their GET… line).

    The other statements of a file that takes some TRUNCATEs exclude them too.
    """
    ignored: dict[str, frozenset[int]] = {"TRUNCATES": TRUNCATES} if _takes_truncates(found, name) else {}
    for item in found:
        kind = item.name.removeprefix("GET").removeprefix("IGNORE")
        if kind in _SWITCHED and item.name == f"IGNORE{kind}":
            ignored[kind] = _SWITCHED[kind]
        elif kind in _SWITCHED:
            ignored.pop(kind, None)
        elif item.name == name:
            yield item, frozenset().union(*ignored.values())


def _takes_truncates(found: list[Parameter], name: str) -> bool:
    """Whether GETTRUNCATES is in effect for a statement of a name: until IGNORETRUNCATES, for the statements below it."""
    takes = False
    for item in found:
        if item.name in ("GETTRUNCATES", "IGNORETRUNCATES"):
            takes = item.name == "GETTRUNCATES"
        elif takes and item.name == name:
            return True
    return False


def _last(found: list[Parameter], name: str, argument: str, default: Any) -> Any:
    values = [item.args[argument] for item in _named(found, name) if argument in item.args]
    return values[-1] if values else default


def _excludes(found: list[Parameter], name: str) -> tuple[str, ...]:
    """The patterns of TABLEEXCLUDE or MAPEXCLUDE, then those of SCHEMAEXCLUDE as patterns of all tables of the schemas."""
    tables = (item.args["table"] for item in _named(found, name))
    return (*tables, *(f"{item.args['schema']}.*" for item in _named(found, "SCHEMAEXCLUDE")))


def _deferred(found: list[Parameter]) -> float:
    """The interval of DEFERAPPLYINTERVAL in seconds, 0 without one. Raises ParameterError if it is too long."""
    stated = _named(found, "DEFERAPPLYINTERVAL")
    if not stated:
        return 0.0
    last = stated[-1]
    unit = next(name for name in last.args if name != "number")
    seconds = read_interval(f"{last.args['number']}{unit}")
    if seconds > WEEK:
        raise last.wrong("DEFERAPPLYINTERVAL is longer than seven days", "number", hint="write at most 7 DAYS")
    return seconds


def _latency(found: list[Parameter]) -> int:
    """The seconds of the last LATENCY line."""
    lines = _named(found, "LATENCY")
    return lines[-1].args["number"] * (60 if "min" in lines[-1].args else 1) if lines else 0


def _switch(found: list[Parameter], on: str, off: str) -> bool:
    switches = [item.name for item in found if item.name in (on, off)]
    return bool(switches) and switches[-1] == on


def _group(found: list[Parameter], name: str, path: Path) -> str:
    groups = _named(found, name)
    if not groups:
        raise ParameterError(f"the file must begin with {name} and the group name", where=f"{path}:1:1")
    return str(groups[0].args["group_name"])


def _login(found: list[Parameter]) -> LoginParameters:
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


def _kind(item: Parameter) -> str:
    return next(name.upper() for name in ("er", "extract", "replicat", "distpath") if name in item.args)


def _restart(item: Parameter) -> RestartRule:
    given = item.args
    wait = given["waitseconds"] if "waitseconds" in given else given.get("waitminutes", 2) * MINUTE
    reset = given.get("resetminutes", 20) * MINUTE
    return RestartRule(_kind(item), given["group_name"], given.get("retries", 2), wait, reset)


def purges_source(found: list[Parameter]) -> bool:
    """Whether a group purges the trail that it reads. Raises ParameterError for a rule of Manager."""
    given = _named(found, "PURGEOLDEXTRACTS")
    for item in given:
        if item.args:
            raise item.wrong(
                "PURGEOLDEXTRACTS in the file of a group has no options: it purges the trail that the group reads",
                hint="specify trails and options in Manager's file",
            )
    return bool(given)


def _purge(item: Parameter) -> PurgeRule:
    given = item.args
    if "trail" not in given:
        raise item.wrong("PURGEOLDEXTRACTS in Manager's file requires a trail", hint="for example ./dirdat/*")
    hours = given.get("minkeephours", 0) + 24 * given.get("minkeepdays", 0)
    every = MINUTE * given.get("frequencyminutes", 0) + HOUR * given.get("frequencyhours", 0)
    files = 1 if hours else given.get("minkeepfiles", 1)
    return PurgeRule(given["trail"], "nousecheckpoints" not in given, hours, files, float(every or HOUR))
