"""Measuring points: performance, positions, statistics and Bounded Recovery of the processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ggshell.cli.received_paths import received_paths
from ggshell.cli.results.groups import trail_file
from ggshell.errors import GgsError, NotFoundError
from ggshell.groups.statistics import ddl_operations
from ggshell.home.checkpoint import SourceType
from ggshell.home.process_file import ProcessState, state_of
from ggshell.home.shown_place import ShownPlace
from ggshell.home.users import Role
from ggshell.service.answers import Answer, Object, Said, collection, item, utc_text
from ggshell.service.call import Call
from ggshell.service.group_snapshot import GroupSnapshot, asked, connection_of, snapshots
from ggshell.service.measuring_points import MeasuringPoint, ProcessList
from ggshell.service.process_facts import ProcessFacts, process_facts
from ggshell.service.refusals import not_here
from ggshell.service.responses import Items
from ggshell.service.routes import resource
from ggshell.service.trail_names import trail_fields

_BASE: Final = "/mpoints"
_MICRO: Final = 1_000_000
_STATES: Final = {"R": "Running", "S": "Sleeping", "D": "Disk sleep", "T": "Stopped", "Z": "Zombie", "I": "Idle"}
_BR_BUCKETS: Final = (10 << 10, 100 << 10, 1 << 20, 10 << 20, 100 << 20)
_AGE_BUCKETS: Final = (3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600)


class Process(NamedTuple):
    """A process of the home; ``group`` is None for Manager and the service."""

    name: str
    kind: str
    state: str
    pid: int
    started: int
    port: int = 0
    group: GroupSnapshot | None = None


def processes(call: Call) -> list[Process]:
    """Return every process of the home: the groups, Manager and the service."""
    found = [_of_group(each) for each in snapshots(call.home, call.state.clock.now())]
    state, manager = state_of(call.home.manager)
    if manager is not None:
        found.append(Process("MGR", "Manager", state.value.lower(), manager.pid, manager.started))
    port = call.state.settings.port
    for name in ("adminsrvr", "distsrvr", "recvsrvr", "pmsrvr"):
        found.append(Process(name, name, "running", os.getpid(), call.state.started, port))
    return found


def _of_group(each: GroupSnapshot) -> Process:
    entry = each.found.process if each.found.runs else None
    kind = "Distribution Path" if each.found.type.is_path else each.found.type.value.capitalize()
    pid = entry.pid if entry is not None else 0
    return Process(each.found.group, kind, each.found.state.value.lower(), pid, each.found.checkpoint.started, 0, each)


@resource("GET", f"{_BASE}/processes", role=Role.USER, summary="List the processes", returns=ProcessList)
def list_processes(call: Call) -> Answer:
    return Answer({"$schema": "mpoints:processes", "processes": [_process(call, each) for each in processes(call)]})


@resource("GET", _BASE, role=Role.USER, summary="List the processes that have measuring points", returns=Items)
def list_points(call: Call) -> Answer:
    return Answer(collection(item(call.url(_BASE), each.name) for each in processes(call)))


def _process(call: Call, found: Process) -> Object:
    checkpoint = found.group.found.checkpoint if found.group is not None else None
    state_time = max(found.started, checkpoint.updated if checkpoint is not None else 0)
    return {
        "processName": found.name,
        "processType": found.kind,
        "processMode": "Standard",
        "processState": found.state,
        "processId": found.pid,
        "portNumber": found.port,
        "startTime": utc_text(found.started),
        "stateTime": utc_text(state_time),
        "lastHeartbeat": utc_text(call.state.clock.now() if found.pid else state_time),
        "firstMessage": utc_text(found.started),
        "lastMessage": utc_text(state_time),
    }


@resource("GET", f"{_BASE}/{{item}}", role=Role.USER, summary="List the measuring points of a process", returns=Items)
def list_kinds(call: Call, name: str) -> Answer:
    _find(call, name)
    return Answer(collection(item(call.url(f"{_BASE}/{name}"), kind) for kind in sorted(KINDS)))


@resource(
    "GET",
    f"{_BASE}/{{item}}/{{kind}}",
    role=Role.USER,
    summary="Show a measuring point of a process",
    returns=MeasuringPoint,
)
def get_point(call: Call, name: str, kind: str) -> Answer:
    """Return the values of a measuring point; one that the process does not have is empty, with a note."""
    if kind in WITHOUT_MEANING:
        raise not_here(f"the measuring point {kind}", WITHOUT_MEANING[kind])
    point = KINDS.get(kind)
    if point is None:
        raise NotFoundError(f"measuring point {kind} does not exist", hint=f"use one of {', '.join(sorted(KINDS))}")
    found = _find(call, name)
    return Answer({"$schema": f"mpoints:{kind}", **point(call, found)})


def _find(call: Call, name: str) -> Process:
    for found in processes(call):
        if found.name.lower() == name.lower():
            return found
    raise NotFoundError(f"process {name} does not exist", hint="GET mpoints/processes lists the processes")


def _group(found: Process) -> GroupSnapshot:
    """Return the group of a process. Raises NotFoundError for Manager and the service."""
    if found.group is None:
        raise NotFoundError(f"{found.name} does not have this measuring point: it is not an Extract, Replicat or path")
    return found.group


def _facts(found: Process) -> ProcessFacts | None:
    return process_facts(found.pid) if found.pid else None


def _performance(call: Call, found: Process) -> Object:
    facts = _facts(found)
    if facts is None:
        return {"processId": found.pid}
    return {
        "processId": found.pid,
        "processStartTime": utc_text(found.started),
        "cpuTimeUs": facts.user + facts.kernel,
        "userTimeUs": facts.user,
        "kernelTimeUs": facts.kernel,
        "workingSetSize": facts.resident,
        "privateBytes": facts.virtual,
        "pageFaults": facts.page_faults,
        "ioReadBytes": facts.read_bytes,
        "ioReadCount": facts.reads,
        "ioWriteBytes": facts.written_bytes,
        "ioWriteCount": facts.writes,
        "threadCount": len(facts.threads),
    }


def _threads(call: Call, found: Process) -> Object:
    facts = _facts(found)
    threads = [
        {
            "threadId": each.number,
            "threadName": each.name,
            "threadState": _STATES.get(each.state, each.state),
            "cpuTimeUs": each.user + each.kernel,
            "userTimeUs": each.user,
            "kernelTimeUs": each.kernel,
        }
        for each in (facts.threads if facts is not None else ())
    ]
    return {"threadPerformance": threads}


def _health(call: Call, found: Process) -> Object:
    critical = [each for each in processes(call) if each.group is not None]
    unhealthy = [each.name for each in critical if each.state == ProcessState.ABENDED.value.lower()]
    healthy = [each.name for each in critical if each.name not in unhealthy]
    return {
        "isHealthy": not unhealthy,
        "criticalResourcesHealthy": len(healthy),
        "criticalResourcesUnhealthy": len(unhealthy),
        "unhealthyResources": unhealthy,
    }


def _statistics(call: Call, found: Process) -> Object:
    group = asked(_group(found))
    totals = group.totals()
    mapped = {f"mappedTotal{kind.capitalize()}": count for kind, count in totals.items()}
    ddl = {f"ddl{kind.capitalize()}": count for kind, count in group.ddl.items()}
    ddl["ddlOperations"] = ddl_operations(group.ddl)
    return {"startTime": utc_text(found.started), **mapped, **ddl, "heartbeats": group.statistics.get("heartbeats", 0)}


def _table_statistics(call: Call, found: Process) -> Object:
    tables: list[dict[str, Any]] = list(asked(_group(found)).statistics.get("tables", ()))
    rows = [
        {
            "sourceTable": each["source"],
            "targetTable": each["target"],
            **{
                f"{section}{kind.capitalize()}": n
                for section in each["counts"]
                for kind, n in each["counts"][section].items()
            },
        }
        for each in tables
    ]
    kind = "statisticsTableReplicat" if found.kind == "Replicat" else "statisticsTableExtract"
    return {kind: rows}


def _position(call: Call, found: Process) -> Object:
    group = _group(found)
    milliseconds = round((group.lag or 0) * 1000)
    checkpoint = group.found.checkpoint
    return {
        "lowWatermarkLag": milliseconds,
        "highWatermarkLag": milliseconds,
        "lastOperationLag": milliseconds,
        "lowWatermarkTimestamp": utc_text(checkpoint.record_time),
        "lastOperationTimestamp": utc_text(checkpoint.record_time),
        "endOfFile": bool(checkpoint.caught_up and checkpoint.caught_up >= checkpoint.updated),
        "csn": checkpoint.latest_csn or None,
    }


def _trail_input(call: Call, found: Process) -> Object:
    read = _group(found).found.checkpoint.read
    if read.source is not SourceType.TRAIL:
        return {"trailInput": []}
    return {"trailInput": [{**trail_fields(read.trail), "sequence": read.current[0], "offset": read.current[1]}]}


def _trail_output(call: Call, found: Process) -> Object:
    written = _group(found).found.checkpoint.write
    trails = [
        {
            **trail_fields(each.trail),
            "sequence": each.current.seqno,
            "offset": each.current.rba,
            "maximumSize": each.megabytes << 20,
            "timestamp": utc_text(each.current_time),
        }
        for each in written
    ]
    return {"trailOutput": trails}


def _ask(call: Call, found: Process, verb: str, **arguments: Any) -> dict[str, Any]:
    """Return what the process answers, empty if it does not run; a refusal becomes a message of the answer."""
    from ggshell.groups.process_request import request
    from ggshell.service.group_snapshot import ANSWER_SECONDS

    process = _group(found).found.process
    if process is None or not found.pid:
        return {}
    try:
        return request(process.socket, verb, timeout=ANSWER_SECONDS, **arguments)
    except GgsError as error:
        call.said.append(Said.of(error, "WARNING"))
        return {}


def _cache(call: Call, found: Process) -> Object:
    return {"cacheStatistics": _ask(call, found, "CACHEMGR")}


def _open_transactions(call: Call, found: Process) -> Object:
    answer = _ask(call, found, "SHOWTRANS", xid="", count=None, duration=0.0, detail=False)
    rows = [_open_transaction(found.name, each) for each in answer.get("transactions", ())]
    if not rows and not call.said:
        call.said.append(Said("OGG-25166", f"{found.name} has no open transactions."))
    return {"currentInflightTransactions": rows}


def _open_transaction(extract: str, facts: Object) -> Object:
    place = ShownPlace.of(facts)
    values = place.values
    return {
        "xid": str(facts.get("xid", "")),
        "extract": extract,
        "redoThread": values.get("thread", 1),
        "startTime": str(facts["start_time"]).replace("+00:00", "Z"),
        "scn": place.csn,
        "redoSeq": values.get("seqno", 0),
        "redoRba": values.get("rba", 0),
        "status": str(facts.get("status", "Running")),
        "items": facts.get("items", 0),
    }


def _bounded_status(call: Call, found: Process) -> Object:
    state = _group(found).found.checkpoint.options.bounded
    if state is None:
        return {"brCurrentStatus": "NOT USED"}
    return {
        "brCurrentStatus": state.status,
        "lastCheckpointNumber": state.last_number,
        "lastCheckpointTime": utc_text(state.last_time),
        "nextCheckpointTime": utc_text(state.next_time),
        "forceCheckpointTime": utc_text(state.forced_time),
        "checkpointIntervalSeconds": state.interval,
        "totalNumObjectsPersisted": state.objects,
        "totalStateBytesPersisted": state.state,
        "totalDataBytesPersisted": state.data,
        "outstandingNumObjects": state.outstanding,
        "outstandingDataBytes": state.outstanding_data,
        "lastFailure": state.failure,
    }


def _buckets(limits: tuple[int, ...], values: list[float]) -> list[Object]:
    """Count values in buckets by their upper limits; the last bucket has none."""
    edges: list[float] = [*limits, float("inf")]
    counts = [0] * len(edges)
    for value in values:
        counts[next(place for place, edge in enumerate(edges) if value <= edge)] += 1
    return [
        {"upperLimit": None if edge == float("inf") else edge, "count": count}
        for edge, count in zip(edges, counts, strict=True)
    ]


def _bounded_sizes(call: Call, found: Process) -> list[Object]:
    state = _group(found).found.checkpoint.options.bounded
    return _buckets(_BR_BUCKETS, [float(each.data) for each in (state.persisted if state is not None else ())])


def _bounded_ages(call: Call, found: Process) -> list[Object]:
    state, now = _group(found).found.checkpoint.options.bounded, call.state.clock.now()
    ages = [(now - each.begin_time) / _MICRO for each in (state.persisted if state is not None else ())]
    return _buckets(_AGE_BUCKETS, ages)


def _bounded_pools(call: Call, found: Process) -> Object:
    _group(found)
    sizes, ages = len(_BR_BUCKETS) + 1, len(_AGE_BUCKETS) + 1
    pool = {"id": f"p{found.pid}_extr", "instance": 1, "objectSizeBucketsLen": sizes, "objectAgeBucketsLen": ages}
    return {"pools": [{**pool, "extantObjectSizeBucketsLen": sizes, "extantObjectAgeBucketsLen": ages}]}


def _heartbeat(call: Call, found: Process) -> Object:
    from ggshell.monitoring.lag_archive import newest, spreads

    group, folder = _group(found), call.home.root / "dirlag"
    since = call.state.clock.now() - 3600 * _MICRO
    if not folder.is_dir():
        return {"heartbeat": []}
    last = newest(folder, since).get(group.found.group, 0)
    rows = [
        {
            "remote": each.remote,
            "path": each.path,
            "hop": each.hop,
            "count": each.beats,
            "p50": each.p50,
            "p95": each.p95,
        }
        for each in spreads(folder, "HOUR", since)
        if group.found.group in each.path
    ]
    return {"heartbeat": rows, "lastReceived": utc_text(last)}


_APPLIER_FIELDS: Final = {"open_jobs": "openJobs"}
_TRANSACTIONS: Final = (
    ("openTransactions", "open"),
    ("waitingTransactions", "waiting"),
    ("dependentTransactions", "dependent"),
)


def _appliers(call: Call, found: Process) -> Object:
    answer = _ask(call, found, "STATUS")
    counts = {name: answer[f"{word}_transactions"] for name, word in _TRANSACTIONS if f"{word}_transactions" in answer}
    appliers = [
        {_APPLIER_FIELDS.get(name, name): value for name, value in each.items()}
        for each in answer.get("appliers", answer.get("threads", []))
    ]
    return {"status": answer.get("status", found.state), "appliers": appliers, **counts}


def _network(call: Call, found: Process) -> Object:
    group = _group(found)
    answer, targets = connection_of(group), [each for each in group.found.checkpoint.write if each.is_elsewhere]
    rows = [
        {
            "pathName": found.name,
            "remoteUri": target.receiver,
            "connected": True,
            "totalBytesSent": each["on_line"],
            "trailBytesSent": each["sent"],
            "bytesInFlight": each["in_flight"],
            "roundTripTime": round(each["round_trip"] * _MICRO),
        }
        for target, each in zip(targets, answer.get("receivers", ()), strict=False)
    ]
    return {"distsrvrNetworkStats": rows}


def _arrivals(call: Call, found: Process) -> Object:
    rows = [
        {
            "pathName": each.name,
            "targetFileName": each.trail,
            "lastFileReceived": trail_file(each.trail, each.position.seqno),
            "totalBytesReceived": each.bytes,
            "totalMessagesReceived": each.messages,
            "lastDataTimestamp": utc_text(each.last),
        }
        for each in received_paths(call.home)
    ]
    return {"recvsrvrStats": rows}


Point = Callable[[Call, Process], Object]
KINDS: Final[dict[str, Point]] = {
    "process": _process,
    "processPerformance": _performance,
    "threadPerformance": _threads,
    "serviceHealth": _health,
    "statisticsExtract": _statistics,
    "statisticsReplicat": _statistics,
    "statisticsTableExtract": _table_statistics,
    "statisticsTableReplicat": _table_statistics,
    "positionEr": _position,
    "trailInput": _trail_input,
    "trailOutput": _trail_output,
    "cacheStatistics": _cache,
    "currentInflightTransactions": _open_transactions,
    "heartbeat": _heartbeat,
    "parallelReplicat": _appliers,
    "coordinationReplicat": _appliers,
    "distsrvrPathStats": _statistics,
    "distsrvrTableStats": _table_statistics,
    "distsrvrNetworkStats": _network,
    "recvsrvrStats": _arrivals,
    "brStatus": _bounded_status,
    "brObjectSizes": lambda call, found: {"objectSizes": _bounded_sizes(call, found)},
    "brExtantObjectSizes": lambda call, found: {"extantObjectSizes": _bounded_sizes(call, found)},
    "brObjectAges": lambda call, found: {"objectAges": _bounded_ages(call, found)},
    "brExtantObjectAges": lambda call, found: {"extantObjectAges": _bounded_ages(call, found)},
    "brPoolsInfo": _bounded_pools,
}
_STATISTICS: Final = "use statisticsExtract or statisticsReplicat"
WITHOUT_MEANING: Final = {
    "batchSqlStatistics": f"Replicat counts operations, not its batches: {_STATISTICS}",
    "configurationEr": "use config/files",
    "configurationManager": "use config/files",
    "coordinationReplicatThread": "use coordinationReplicat",
    "databaseInOut": _STATISTICS,
    "dependencyStats": "dependencies are not counted by table: use parallelReplicat",
    "distsrvrChunkStats": "a path sends no chunks: use distsrvrPathStats",
    "networkStatistics": "Extracts use no network for trails: use sources/{path}/stats",
    "pmsrvrProcStats": "processes send no packets to be collected: use /metrics",
    "pmsrvrStats": "processes send no packets to be collected: use /metrics",
    "pmsrvrWorkerStats": "processes send no packets to be collected: use /metrics or threadPerformance",
    "queueBucketStatistics": "the cache has no queues: use cacheStatistics",
    "queueStatistics": "the cache has no queues: use cacheStatistics",
    "statisticsProcedureExtract": f"procedures are not replicated: {_STATISTICS}",
    "statisticsProcedureReplicat": f"procedures are not replicated: {_STATISTICS}",
    "superpoolStatistics": "the cache has one pool: use cacheStatistics",
}
"""The vendor's measuring points of things that ggshell does not have, with what to use instead."""
