"""Metrics of a home in Prometheus' text format; names and units follow its conventions (seconds, bytes, ``_total``)."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ggshell import __version__
from ggshell.clock import Clock
from ggshell.home.checkpoint import SourceType
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, state_of
from ggshell.service.group_snapshot import GroupSnapshot, snapshots, with_statistics
from ggshell.service.heartbeat_metrics import HeartbeatMetrics
from ggshell.service.transfer_metrics import received_metrics, sent_metrics

_GROUP: Final = ("group", "type")
_MICRO: Final = 1e6
_STATES: Final = tuple(ProcessState)
MEDIA_TYPE: Final = CONTENT_TYPE_LATEST


class HomeCollector(Collector):
    """The metrics of a home, collected for each scrape; heartbeat lag is at most 15 seconds old.

    ``certificate_end``: until when the certificate of the service is valid, in microseconds since 1970; None without TLS.
    """

    def __init__(self, home: Home, clock: Clock, certificate_end: int | None = None) -> None:
        self._home = home
        self._clock = clock
        self._certificate_end = certificate_end
        self._heartbeats = HeartbeatMetrics(home, clock)

    def collect(self) -> Iterator[Metric]:
        now = self._clock.now()
        found = with_statistics(snapshots(self._home, now))
        yield from self._of_home()
        yield from _states(found)
        yield from _progress(found)
        yield _operations(found)
        yield _ddl(found)
        yield from _slots(found)
        yield from _bounded_recovery(found, now)
        yield from sent_metrics(found)
        yield from received_metrics(self._home)
        yield from self._heartbeats.collect()

    def _of_home(self) -> Iterator[Metric]:
        build = GaugeMetricFamily("ggshell_build_info", "The version of ggshell; always 1.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        running = state_of(self._home.manager)[0] is ProcessState.RUNNING
        yield _gauge("ggshell_manager_up", "Whether Manager is running.", float(running))
        disk = shutil.disk_usage(self._home.root)
        yield _gauge("ggshell_disk_free_bytes", "Free space of the home's file system.", disk.free)
        yield _gauge("ggshell_disk_size_bytes", "Size of the home's file system.", disk.total)
        if self._certificate_end is not None:
            text = "The time at which the certificate of the service expires."
            yield _gauge("ggshell_certificate_end_time_seconds", text, self._certificate_end / _MICRO)


def metrics_text(collector: HomeCollector) -> bytes:
    """Return all metrics of a home."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Once(collector.collect()))
    return generate_latest(registry)


class _Once(Collector):
    """Metrics that are already collected: a registry would otherwise collect them twice, to learn their names."""

    def __init__(self, found: Iterable[Metric]) -> None:
        self._found = [metric for metric in found if metric.samples]

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> list[Metric]:
        return self._found


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _labels(snapshot: GroupSnapshot) -> list[str]:
    return [snapshot.found.group, snapshot.found.type.value.lower()]


def _of_groups(name: str, text: str, values: Iterable[tuple[GroupSnapshot, float | None]]) -> Metric:
    """Return a gauge with one value for each group whose value is known."""
    family = GaugeMetricFamily(name, text, labels=_GROUP)
    for snapshot, value in values:
        if value is not None:
            family.add_metric(_labels(snapshot), value)
    return family


def _states(found: list[GroupSnapshot]) -> Iterator[Metric]:
    up = [(each, float(each.found.state is ProcessState.RUNNING)) for each in found]
    yield _of_groups("ggshell_group_up", "Whether the group's process is running.", up)
    states = GaugeMetricFamily(
        "ggshell_group_state", "The state of the group: 1 for the current one.", labels=[*_GROUP, "state"]
    )
    for each in found:
        for state in _STATES:
            states.add_metric([*_labels(each), state.value.lower()], float(each.found.state is state))
    yield states
    began = [(each, each.found.checkpoint.started / _MICRO or None) for each in found]
    yield _of_groups("ggshell_group_start_time_seconds", "When the group's process last started.", began)


def _progress(found: list[GroupSnapshot]) -> Iterator[Metric]:
    yield _of_groups(
        "ggshell_lag_seconds", "The age of the oldest record that waits.", ((each, each.lag) for each in found)
    )
    ages = ((each, each.checkpoint_age) for each in found)
    yield _of_groups("ggshell_checkpoint_age_seconds", "The time since the last checkpoint.", ages)
    times = ((each, each.found.checkpoint.record_time / _MICRO or None) for each in found)
    yield _of_groups(
        "ggshell_last_record_time_seconds", "The commit time of the last record that was processed.", times
    )
    yield from _trails(found)


def _trails(found: list[GroupSnapshot]) -> Iterator[Metric]:
    """How far trails are written and read. An RBA begins at 0 in each file, which ``rate()`` takes as a counter's reset."""
    labels = [*_GROUP, "trail"]
    seqno = GaugeMetricFamily("ggshell_trail_seqno", "The trail file that the group writes.", labels=labels)
    written = CounterMetricFamily(
        "ggshell_trail_written_bytes", "The RBA in the trail file that is written.", labels=labels
    )
    read = CounterMetricFamily("ggshell_trail_read_bytes", "The RBA in the trail file that is read.", labels=labels)
    for each in found:
        for trail in each.found.checkpoint.write:
            seqno.add_metric([*_labels(each), trail.trail], trail.current.seqno)
            written.add_metric([*_labels(each), trail.trail], trail.current.rba)
        source = each.found.checkpoint.read
        if source.source is SourceType.TRAIL:
            read.add_metric([*_labels(each), source.trail], source.current[1])
    yield from (seqno, written, read)


def _operations(found: list[GroupSnapshot]) -> Metric:
    text = "Operations since the group's process started."
    family = CounterMetricFamily("ggshell_operations", text, labels=[*_GROUP, "operation"])
    for each in found:
        if each.statistics:
            for kind, count in each.totals().items():
                family.add_metric([*_labels(each), kind.removesuffix("s")], count)
    return family


def _ddl(found: list[GroupSnapshot]) -> Metric:
    text = "DDL statements since the group's process started, and the errors and responses of DDLERROR."
    family = CounterMetricFamily("ggshell_ddl_operations", text, labels=[*_GROUP, "kind"])
    for each in found:
        if each.statistics:
            for kind, count in each.ddl.items():
                family.add_metric([*_labels(each), kind], count)
    return family


def _slots(found: list[GroupSnapshot]) -> Iterator[Metric]:
    facts = [(each, each.found.checkpoint.options.watch) for each in found]
    known = [(each, slot) for each, slot in facts if slot is not None]
    retained = ((each, float(slot.retained)) for each, slot in known)
    yield _of_groups("ggshell_slot_retained_bytes", "The log that the group's replication slot retains.", retained)
    left = ((each, slot.seconds_left) for each, slot in known)
    yield _of_groups(
        "ggshell_slot_limit_seconds", "The time until the slot reaches its limit at the current rate.", left
    )
    room = ((each, None if slot.room is None else float(slot.room)) for each, slot in known)
    yield _of_groups("ggshell_slot_room_bytes", "The log that the slot can still retain.", room)


def _bounded_recovery(found: list[GroupSnapshot], now: int) -> Iterator[Metric]:
    states = [(each, each.found.checkpoint.options.bounded) for each in found]
    known = [(each, state) for each, state in states if state is not None]
    objects = ((each, float(state.objects)) for each, state in known)
    yield _of_groups("ggshell_bounded_recovery_objects", "Long transactions that are persisted.", objects)
    outstanding = ((each, float(state.outstanding)) for each, state in known)
    yield _of_groups(
        "ggshell_bounded_recovery_outstanding", "Long transactions that are not persisted yet.", outstanding
    )
    ages = ((each, (now - state.last_time) / _MICRO if state.last_time else None) for each, state in known)
    yield _of_groups(
        "ggshell_bounded_recovery_age_seconds", "The time since the last Bounded Recovery checkpoint.", ages
    )
    intervals = ((each, float(state.interval) if state.interval else None) for each, state in known)
    yield _of_groups("ggshell_bounded_recovery_interval_seconds", "BRINTERVAL.", intervals)
