"""How a Replicat delivers: classic, parallel or coordinated, by what ADD REPLICAT said; each opened over the same target."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from enum import StrEnum
from queue import SimpleQueue
from typing import NamedTuple

from ggshell.apply.coordinated import LARGE_THREAD, CoordinatedDelivery
from ggshell.apply.delivery import Counted, Delivery
from ggshell.apply.discard import DiscardFile
from ggshell.apply.lane import Answer, Lane, NamingLane, Turns
from ggshell.apply.mapping import Mapper
from ggshell.apply.parallel import ParallelDelivery, Ways
from ggshell.apply.responses import Responses
from ggshell.apply.target import BatchLimits, CheckpointRow, GroupTarget, Target
from ggshell.apply.threads import Router, ThreadRule, thread_rule
from ggshell.databases.duckdb.session import is_duckdb
from ggshell.databases.postgres.lanes import LaneTarget, WatermarkTarget, row_numbers
from ggshell.databases.postgres.target import PostgresTarget
from ggshell.errors import ParameterError, StateError
from ggshell.params.files import ReplicatParameters
from ggshell.process.lifecycle import GroupContext
from ggshell.process.tables import matches
from ggshell.record.definition import TableDefinition
from ggshell.store.events import Severity
from ggshell.store.threads import thread_name
from ggshell.types import TableName

AnyDelivery = Delivery | ParallelDelivery | CoordinatedDelivery


class Kind(StrEnum):
    """The kinds of Replicat."""

    CLASSIC = "CLASSIC"
    PARALLEL = "PARALLEL"
    COORDINATED = "COORDINATED"


class Around(NamedTuple):
    """What every delivery of a group is given."""

    context: GroupContext
    parameters: ReplicatParameters
    conninfo: str
    table: TableName | None
    begin: CheckpointRow
    discard: DiscardFile
    responses: Responses

    @property
    def kind(self) -> Kind:
        return Kind(str(self.context.checkpoint.options.get("kind", Kind.CLASSIC)))

    @property
    def limits(self) -> BatchLimits:
        """BATCHSQL."""
        return BatchLimits(*self.parameters.batch)

    @property
    def home(self) -> str:
        return str(self.context.home.root)


def open_target(around: Around) -> GroupTarget:
    """The group's own connection, to the kind of database that its login names.

    Raises DatabaseError, ConnectionLostError, ConflictError, NotFoundError, ParameterError.
    """
    return _open_duckdb(around) if is_duckdb(around.conninfo) else _open_postgres(around)


def _open_duckdb(around: Around) -> GroupTarget:
    from ggshell.databases.duckdb.target import GATHER_ROWS, DuckTarget

    if around.kind is not Kind.CLASSIC:
        raise ParameterError(
            f"a {around.kind.lower()} Replicat cannot apply to a DuckDB file: one connection at a time may write it",
            hint="ADD REPLICAT without PARALLEL and COORDINATED: a classic one applies in bulk",
        )
    limit = around.parameters.max_operations
    gather = GATHER_ROWS if limit is None else min(limit, GATHER_ROWS)
    return DuckTarget(
        around.conninfo,
        around.context.group,
        around.home,
        around.table,
        around.begin,
        gather=gather,
        clock=around.context.clock,
    )


def _open_postgres(around: Around) -> PostgresTarget:
    target = PostgresTarget if around.kind is Kind.CLASSIC else WatermarkTarget
    if around.table is None and around.kind is not Kind.CLASSIC:
        raise ParameterError(
            f"a {around.kind.lower()} Replicat needs a checkpoint table", hint="ADD REPLICAT …, CHECKPOINTTABLE …"
        )
    place = (around.home, around.table, around.begin)
    opened = target(around.conninfo, around.context.group, *place, limits=around.limits)
    if around.kind is not Kind.PARALLEL:
        try:
            _require_no_lanes(opened, around)
        except BaseException:
            opened.close()
            raise
    return opened


def _require_no_lanes(target: PostgresTarget, around: Around) -> None:
    """Raises StateError where a parallel Replicat has left transactions behind that this kind would apply twice."""
    target.await_lanes()
    above = target.applied_above()
    if above:
        raise StateError(
            f"{len(above)} transaction{'s'[: len(above) != 1]} above the low watermark of {around.context.group} are"
            " applied already, by a parallel Replicat that did not stop clean: a"
            f" {around.kind.lower()} one would apply them again",
            code="GGS-00564",
            where=f"checkpoint table {around.table}",
            hint="add the group as PARALLEL again, START it, and STOP it (not KILL); then take over",
        )


def open_delivery(around: Around, target: GroupTarget, mapper: Mapper) -> AnyDelivery:
    """The delivery, standing where the checkpoint table says."""
    if around.kind is Kind.CLASSIC:
        delivery = _delivery(around, target, mapper, around.begin, _counters(around))
        delivery.start()
        return delivery
    if not isinstance(target, WatermarkTarget) or around.table is None:
        raise TypeError("not a target of lanes")
    if around.kind is Kind.PARALLEL:
        return _parallel(around, target, around.table, mapper)
    return _coordinated(around, target, around.table, mapper)


def end_delivery(delivery: AnyDelivery) -> None:
    """Let the threads of a delivery end, where it has some."""
    if not isinstance(delivery, Delivery):
        delivery.end()


def _parallel(around: Around, target: WatermarkTarget, table: TableName, mapper: Mapper) -> ParallelDelivery:
    parameters = around.parameters
    start = target.start()
    row, _, sequences = start
    answers: SimpleQueue[Answer] = SimpleQueue()
    turns = Turns() if parameters.full_serialization else None
    numbers, counters = row_numbers(sequences), _counters(around, shared=True)
    lanes: list[NamingLane] = []
    ways = Ways(parameters.look_ahead, parameters.full_serialization, parameters.group_operations)
    try:
        for number in range(parameters.appliers):
            own = LaneTarget(
                around.conninfo,
                around.context.group,
                around.home,
                table,
                row,
                number=number,
                numbers=numbers,
                turns=turns,
                limits=around.limits,
            )
            delivery = _delivery(around, own, mapper, row, counters, lane=True, whole_jobs=ways.full)
            lanes.append(NamingLane(number, own, delivery, answers, turns))
    except BaseException:
        for lane in lanes:
            lane.end()
        raise
    for lane in lanes:
        lane.start()
    text = f"Parallel delivery with {len(lanes)} appliers" + (", commits in the source's order." if ways.full else ".")
    around.context.report.event(Severity.INFO, "GGS-00519", text)
    return ParallelDelivery(lanes, answers, mapper, start, target.save, ways)


def _coordinated(around: Around, target: WatermarkTarget, table: TableName, mapper: Mapper) -> CoordinatedDelivery:
    start, _, _ = target.start()
    answers: SimpleQueue[Answer] = SimpleQueue()
    counters = _counters(around, shared=True)
    rules = _thread_rules(around)
    used = {LARGE_THREAD, 1}.union(*(range(rule.first, rule.last + 1) for _, _, rule in rules))
    lanes: dict[int, Lane] = {}
    try:
        for number, thread in enumerate(sorted(used)):
            name = thread_name(around.context.group, thread)
            own = PostgresTarget(around.conninfo, name, around.home, table, start, limits=around.limits)
            delivery = _delivery(around, own, mapper, start, counters)
            delivery.start()
            lanes[thread] = Lane(number, own, delivery, answers)
    except BaseException:
        for lane in lanes.values():
            lane.end()
        raise
    for lane in lanes.values():
        lane.start()
    text = f"Coordinated delivery with threads {', '.join(map(str, sorted(used)))}."
    around.context.report.event(Severity.INFO, "GGS-00519", text)
    router = Router(lambda table: _rule_of(mapper, rules, table))
    return CoordinatedDelivery(lanes, answers, mapper, router, start, target.save)


def _thread_rules(around: Around) -> list[tuple[str, str, ThreadRule]]:
    """Source and target pattern of each MAP line with its threads."""
    most = int(around.context.checkpoint.options.get("maxthreads", 25))
    path = around.context.home.parameters(around.context.group)
    return [
        (
            each.source,
            each.target,
            thread_rule(each.thread, each.threadrange, most, barrier=each.barrier, where=f"{path}:{each.line}"),
        )
        for each in around.parameters.maps
    ]


def _rule_of(mapper: Mapper, rules: Sequence[tuple[str, str, ThreadRule]], table: TableDefinition) -> ThreadRule | None:
    """The threads of a table by the first MAP line that takes it; of one that a clause has made, by its target."""
    mapping = mapper.resolve(table)
    if mapping is None:
        return None
    for source, _, rule in rules:
        if matches(source, table.name):
            return rule
    return next((rule for _, target, rule in rules if matches(target, mapping.target.name)), ThreadRule())


class _Counters(NamedTuple):
    counted: Counted
    discarded: Counted


def _counters(around: Around, *, shared: bool = False) -> _Counters:
    """What counts operations; one at a time where several threads do."""
    statistics = around.context.statistics
    if not shared:
        return _Counters(statistics.add, statistics.discard)
    lock = threading.Lock()

    def one_at_a_time(count: Counted) -> Counted:
        def add(source: TableName, target: TableName, io_type: int, number: int) -> None:
            with lock:
                count(source, target, io_type, number)

        return add

    return _Counters(one_at_a_time(statistics.add), one_at_a_time(statistics.discard))


def _delivery(
    around: Around,
    target: Target,
    mapper: Mapper,
    position: CheckpointRow,
    counters: _Counters,
    *,
    lane: bool = False,
    whole_jobs: bool = False,
) -> Delivery:
    parameters = around.parameters
    return Delivery(
        target,
        mapper,
        group_operations=1 << 30 if whole_jobs else parameters.group_operations,
        max_operations=None if around.kind is not Kind.CLASSIC else parameters.max_operations,
        counted=counters.counted,
        discard=around.discard,
        truncates=parameters.truncates,
        responses=around.responses,
        discarded=counters.discarded,
        position=position,
        lane=lane,
    )
