"""Opens the delivery of a Replicat: classic, parallel or coordinated, as specified by ADD REPLICAT."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ggshell.connectors.registry import connector_for
from ggshell.connectors.target_setup import TargetSetup, Watermarks
from ggshell.groups.applied_ddl import ddl_choices
from ggshell.groups.checkpoint_rows import row_key, thread_keys, thread_name
from ggshell.groups.lifecycle import GroupContext
from ggshell.groups.thread_changes import require_same_threads
from ggshell.home.checkpoint import AdditionalRows, AssignedThreads, GroupOptions, ReplicatKind
from ggshell.home.events import Severity
from ggshell.parameters.process_parameters import ReplicatParameters
from ggshell.pipeline.apply.adaptive import AdaptiveDelivery
from ggshell.pipeline.apply.applier import Answers, Applier, NamingApplier, Turns
from ggshell.pipeline.apply.checkpoint_table import names_gone
from ggshell.pipeline.apply.coordinated import LARGE_THREAD, CoordinatedDelivery
from ggshell.pipeline.apply.counters import Counted, OperationCounters
from ggshell.pipeline.apply.ddl_barrier import DdlBarrier
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.group_delivery import GroupDelivery
from ggshell.pipeline.apply.groups import AnsweredOperation
from ggshell.pipeline.apply.mapping import Mapper
from ggshell.pipeline.apply.parallel import ParallelDelivery, ParallelSettings
from ggshell.pipeline.apply.parallelism import ParallelismChoice
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.target import (
    BatchLimits,
    CheckpointRow,
    GroupTarget,
    SessionOptions,
    Target,
)
from ggshell.pipeline.apply.threads import Router, ThreadRule, thread_rule
from ggshell.record.definition import TableDefinition
from ggshell.record.name_patterns import matches
from ggshell.trail.name import TrailName
from ggshell.types import TableName


class ReplicatSetup(NamedTuple):
    """What every delivery of a group needs."""

    context: GroupContext
    parameters: ReplicatParameters
    target: TargetSetup
    """The group's own connection. ``has_row``: the group had a row, and START named no position to begin without it."""
    discard: DiscardFile
    responses: Responses
    reported: set[str]
    """The warnings about connections that were reported in this session."""

    @property
    def kind(self) -> ReplicatKind:
        return self.target.kind

    def key(self, name: str) -> int:
        """Return the key of the row of a thread in the checkpoint table."""
        return row_key(self.context.home, self.context.checkpoint, name)


def replicat_setup(
    context: GroupContext,
    parameters: ReplicatParameters,
    login: str,
    table: TableName | None,
    begin: CheckpointRow,
    discard: DiscardFile,
    responses: Responses,
) -> ReplicatSetup:
    """Return the setup of a group; ``begin``: the row of the checkpoint file, in case the checkpoint table has none yet."""
    options = context.checkpoint.options
    target = TargetSetup(
        login,
        context.group,
        context.home.root,
        options.replicat_kind,
        table,
        begin,
        row_key(context.home, context.checkpoint, context.group),
        context.clock,
        has_row=table is not None and options.group_key is not None,
        limits=BatchLimits(*parameters.batch),
        options=SessionOptions(
            parameters.suppress_triggers, parameters.defer_constraints, parameters.non_transactional
        ),
        max_operations=parameters.max_operations,
        threads=_left_threads(context),
    )
    return ReplicatSetup(context, parameters, target, discard, responses, set())


def _left_threads(context: GroupContext) -> tuple[tuple[str, int], ...]:
    """Return the rows that an earlier, coordinated Replicat of this name may have left, for a group of another kind."""
    options = context.checkpoint.options
    if options.added is None or options.replicat_kind is ReplicatKind.COORDINATED:
        return ()
    return tuple(thread_keys(context.home, context.checkpoint).items())


def open_target(setup: ReplicatSetup) -> GroupTarget:
    """Open the group's own connection, to the kind of database that its login names.

    Raises DatabaseError, ConnectionLostError, ConflictError, NotFoundError, ParameterError.
    """
    target = connector_for(setup.target.login).target(setup.target)
    _report_unmarked(setup, target)
    return target


def _report_unmarked(setup: ReplicatSetup, target: Target) -> None:
    """Report if a connection's changes are not marked; several connections for the same reason only once."""
    reason = target.unmarked
    if reason and reason not in setup.reported:
        setup.reported.add(reason)
        text = (
            f"The changes of {setup.context.group} are not marked: {reason}."
            " An Extract of the target database captures them like those of applications."
        )
        setup.context.report.event(Severity.WARNING, "GGS-00548", text)


def open_whole(setup: ReplicatSetup) -> GroupTarget:
    """Open the group's own connection and check that all its checkpoint table rows exist. Raises RowGoneError."""
    target = open_target(setup)
    try:
        _require_kept(setup, target)
    except BaseException:
        target.close()
        raise
    return target


def _require_kept(setup: ReplicatSetup, target: GroupTarget) -> None:
    """Check the additional rows that record what is applied above the group's own row.

    These are the rows of a coordinated Replicat's threads, or the transaction names that the appliers of a parallel Replicat
    record. Raises RowGoneError if any are missing.
    """
    kept = setup.context.checkpoint.options.additional
    if kept is None or not setup.target.has_row or not isinstance(target, Watermarks):
        return
    row = target.checkpoint()
    low = row.csn if row is not None else None
    if kept.all and str(low or "") == setup.context.checkpoint.latest_csn:
        return  # the last run ended with nothing applied above the row, and the row has not changed since
    if setup.kind is ReplicatKind.PARALLEL:
        what = "the record of its transactions in the transaction table" if target.names_gone() else ""
    else:
        gone = [name for name, found in _thread_rows(setup, target, kept).items() if found is None]
        what = f"the row of {', '.join(gone)}" if gone else ""
    if what:
        raise names_gone(setup.context.group, f"{what} of checkpoint table {setup.target.table}", low)


def _thread_rows(setup: ReplicatSetup, marks: Watermarks, kept: AdditionalRows) -> Mapping[str, CheckpointRow | None]:
    """Return the rows of the threads of the last run by their names; None for a row that does not exist."""
    names = [thread_name(setup.context.group, thread) for thread in kept.threads]
    return marks.thread_rows({name: setup.key(name) for name in names})


def with_additional_rows(options: GroupOptions, delivery: GroupDelivery, *, whole: bool) -> GroupOptions:
    """Return a checkpoint's options with a group's additional rows; ``whole``: nothing is applied above its own row."""
    threads = delivery.threads
    if threads is None:
        return options
    kept = options.additional or AdditionalRows()
    return options._replace(additional=kept._replace(threads=tuple(threads), all=whole))


def open_delivery(setup: ReplicatSetup, target: GroupTarget, mapper: Mapper) -> GroupDelivery:
    """Open the delivery at the position in the checkpoint table."""
    if setup.kind is ReplicatKind.CLASSIC:
        delivery = _delivery(setup, target, mapper, setup.target.begin, _counters(setup))
        delivery.start()
        return delivery
    if not isinstance(target, Watermarks):
        raise TypeError("not a target of several appliers")
    if setup.kind is ReplicatKind.PARALLEL:
        return _parallel(setup, target, target, mapper)
    return _coordinated(setup, target, target, mapper)


def _parallel(
    setup: ReplicatSetup, target: GroupTarget, marks: Watermarks, mapper: Mapper
) -> ParallelDelivery | AdaptiveDelivery:
    start, counters, clock = marks.start(), _counters(setup, shared=True), setup.context.clock
    numbers = itertools.count(max(start[2], default=0) + 1)
    own = _delivery(setup, target, mapper, start[0], counters)

    def opened(row: CheckpointRow, ids: Sequence[str] = (), sequences: Sequence[int] = ()) -> ParallelDelivery:
        answers, turns = Answers(), Turns() if setup.parameters.full_serialization else None
        appliers = _appliers(setup, mapper, row, numbers, counters, answers, turns)
        barrier = DdlBarrier(own, appliers, setup.responses.whole)
        settings = _parallel_settings(setup.parameters)
        begin = row, ids, sequences
        return ParallelDelivery(appliers, answers, mapper, begin, barrier, marks.save, settings, clock)

    is_adaptive = setup.parameters.fewest_appliers == 1 < setup.parameters.appliers
    text = f"Parallel delivery with {'up to ' if is_adaptive else ''}{setup.parameters.appliers} appliers" + (
        ", commits in the source's order." if setup.parameters.full_serialization else "."
    )
    setup.context.report.event(Severity.INFO, "GGS-00519", text)
    if not is_adaptive:
        return opened(*start)
    first = opened(*start) if start[1] else None
    return AdaptiveDelivery(own, opened, ParallelismChoice(clock, several=first is not None), clock, first)


def _parallel_settings(parameters: ReplicatParameters) -> ParallelSettings:
    return ParallelSettings(parameters.look_ahead, parameters.full_serialization, parameters.group_operations)


def _appliers(
    setup: ReplicatSetup,
    mapper: Mapper,
    row: CheckpointRow,
    numbers: Iterator[int],
    counters: OperationCounters,
    answers: Answers,
    turns: Turns | None,
) -> list[NamingApplier]:
    """Start the appliers of a parallel Replicat; on an error, end those that have started."""
    connector = connector_for(setup.target.login)
    appliers: list[NamingApplier] = []
    try:
        for number in range(setup.parameters.appliers):
            target = connector.applier_target(replace(setup.target, begin=row), number, numbers, turns)
            _report_unmarked(setup, target)
            delivery = _delivery(setup, target, mapper, row, counters, applier=True, whole_jobs=turns is not None)
            appliers.append(NamingApplier(number, target, delivery, answers, turns))
    except BaseException:
        for applier in appliers:
            applier.end()
        answers.close()
        raise
    for applier in appliers:
        applier.start()
    return appliers


def _coordinated(setup: ReplicatSetup, target: GroupTarget, marks: Watermarks, mapper: Mapper) -> CoordinatedDelivery:
    start, _, _ = marks.start()
    if not target.found:
        marks.forget_threads(thread_keys(setup.context.home, setup.context.checkpoint))
    answers = Answers()
    counters = _counters(setup, shared=True)
    rules = _thread_rules(setup)
    used = {LARGE_THREAD, 1}.union(*(range(rule.first, rule.last + 1) for _, _, rule in rules))
    connector = connector_for(setup.target.login)
    appliers: dict[int, Applier] = {}
    try:
        for number, thread in enumerate(sorted(used)):
            name = thread_name(setup.context.group, thread)
            own = connector.thread_target(replace(setup.target, group=name, key=setup.key(name), begin=start))
            _report_unmarked(setup, own)
            delivery = _delivery(setup, own, mapper, start, counters)
            delivery.start()
            appliers[thread] = Applier(number, own, delivery, answers)
        _keep_threads(setup, marks, start, rules)
    except BaseException:
        for applier in appliers.values():
            applier.end()
        answers.close()
        raise
    for applier in appliers.values():
        applier.start()
    text = f"Coordinated delivery with threads {', '.join(map(str, sorted(used)))}."
    setup.context.report.event(Severity.INFO, "GGS-00519", text)
    router = Router(lambda table: _rule_of(mapper, rules, table))
    alone = _delivery(setup, target, mapper, start, counters)
    barrier = DdlBarrier(alone, list(appliers.values()), setup.responses.whole)
    return CoordinatedDelivery(appliers, answers, mapper, router, start, barrier, marks.save)


def _keep_threads(
    setup: ReplicatSetup, marks: Watermarks, start: CheckpointRow, rules: Sequence[tuple[str, str, ThreadRule]]
) -> None:
    """Store the threads of all tables before anything is applied.

    Raises StateError if they differ from those of the last run where its threads have applied transactions.
    """
    context = setup.context
    kept = context.checkpoint.options.additional or AdditionalRows()
    now = tuple(AssignedThreads(source, *rule) for source, _, rule in rules)
    if kept.assigned == now:
        return
    rows = _thread_rows(setup, marks, kept) if kept.assigned else {}
    reached = max((row.csn for row in rows.values() if row is not None and row.csn is not None), default=None)
    trail = TrailName.parse(context.checkpoint.read.trail, context.home.root)
    require_same_threads(trail, start, reached, kept.assigned, now)
    options = context.checkpoint.options._replace(additional=kept._replace(assigned=now))
    context.save(context.checkpoint._replace(options=options))


def _thread_rules(setup: ReplicatSetup) -> list[tuple[str, str, ThreadRule]]:
    """Return the source pattern, the target pattern and the threads of each MAP line."""
    most = setup.context.checkpoint.options.maxthreads
    path = setup.context.home.parameters(setup.context.group)
    return [
        (
            each.source,
            each.target,
            thread_rule(each.thread, each.threadrange, most, barrier=each.barrier, where=f"{path}:{each.line}"),
        )
        for each in setup.parameters.maps
    ]


def _rule_of(mapper: Mapper, rules: Sequence[tuple[str, str, ThreadRule]], table: TableDefinition) -> ThreadRule | None:
    """Return the threads of a table by the first MAP line that selects it.

    A table that a clause has created is matched by its target instead.
    """
    mapping = mapper.resolve(table)
    if mapping is None:
        return None
    for source, _, rule in rules:
        if matches(source, table.name):
            return rule
    return next((rule for _, target, rule in rules if matches(target, mapping.target.name)), ThreadRule())


def _counters(setup: ReplicatSetup, *, shared: bool = False) -> OperationCounters:
    """Return the functions that count operations; with ``shared`` they hold a lock, because several threads call them."""
    statistics = setup.context.statistics

    def conflict(operation: AnsweredOperation) -> None:
        statistics.conflict(operation.source, operation.target, operation.conflict or "", resolved=operation.resolved)

    if not shared:
        return OperationCounters(statistics.add, statistics.discard, statistics.ignore, conflict)
    lock = threading.Lock()

    def one_at_a_time(count: Counted) -> Counted:
        def add(source: TableName, target: TableName, io_type: int, number: int) -> None:
            with lock:
                count(source, target, io_type, number)

        return add

    def conflict_alone(operation: AnsweredOperation) -> None:
        with lock:
            conflict(operation)

    return OperationCounters(
        one_at_a_time(statistics.add),
        one_at_a_time(statistics.discard),
        one_at_a_time(statistics.ignore),
        conflict_alone,
    )


def _delivery(
    setup: ReplicatSetup,
    target: Target,
    mapper: Mapper,
    position: CheckpointRow,
    counters: OperationCounters,
    *,
    applier: bool = False,
    whole_jobs: bool = False,
) -> Delivery:
    parameters = setup.parameters
    return Delivery(
        target,
        mapper,
        group_operations=1 << 30 if whole_jobs else parameters.group_operations,
        max_operations=None if setup.kind is not ReplicatKind.CLASSIC else parameters.max_operations,
        counters=counters,
        discard=setup.discard,
        truncates=parameters.truncates,
        responses=setup.responses,
        position=position,
        applier=applier,
        ddl=ddl_choices(setup.parameters, setup.context.report),
    )
