"""Metrics of trails between homes: what groups send or fetch, and what arrives. Counters begin again with each connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ggshell.cli.received_paths import received_paths
from ggshell.errors import GgsError
from ggshell.home.home import Home
from ggshell.service.group_snapshot import GroupSnapshot, connections_of

_SENT: Final = ("group", "type", "receiver")
_RECEIVED: Final = ("path", "trail")


def sent_metrics(found: Sequence[GroupSnapshot]) -> Iterator[Metric]:
    """Yield the connections of groups to other homes: to the receivers of trails, and of a RECVPATH to its source."""
    up = GaugeMetricFamily("ggshell_path_connected", "Whether the other home is connected.", labels=_SENT)
    sent = CounterMetricFamily("ggshell_path_bytes", "Bytes of the trail over this connection.", labels=_SENT)
    line = CounterMetricFamily("ggshell_path_line_bytes", "Bytes sent over the network, compressed.", labels=_SENT)
    waiting = GaugeMetricFamily("ggshell_path_in_flight_bytes", "Bytes that are not acknowledged.", labels=_SENT)
    trip = GaugeMetricFamily("ggshell_path_round_trip_seconds", "The last round trip.", labels=_SENT)
    connected = [each for each in found if each.found.is_connected]
    for each, answer in zip(connected, connections_of(connected), strict=True):
        transfers = answer.get("sources") or answer.get("receivers") or ()
        for number, place in enumerate(each.found.other_homes if answer else ()):
            labels = [each.found.group, each.found.type.value.lower(), place]
            up.add_metric(labels, float(bool(answer["connection"]["connected"])))
            for now in transfers[number : number + 1]:
                sent.add_metric(labels, now["sent"])
                line.add_metric(labels, now["on_line"])
                waiting.add_metric(labels, now["in_flight"])
                trip.add_metric(labels, now["round_trip"])
    yield from (up, sent, line, waiting, trip)


def received_metrics(home: Home) -> Iterator[Metric]:
    """Yield what has arrived since the service started."""
    up = GaugeMetricFamily("ggshell_receiver_connected", "Whether the sender is connected.", labels=_RECEIVED)
    families = {
        "bytes": CounterMetricFamily("ggshell_received_bytes", "Bytes of messages that arrived.", labels=_RECEIVED),
        "messages": CounterMetricFamily("ggshell_received_messages", "Messages that arrived.", labels=_RECEIVED),
        "syncs": CounterMetricFamily("ggshell_received_syncs", "The number of syncs to disk.", labels=_RECEIVED),
    }
    try:
        paths = received_paths(home)
    except GgsError:
        return  # INFO RECVPATH shows the error
    for path in paths:
        labels = [path.name, path.trail]
        up.add_metric(labels, float(path.connected))
        for name, family in families.items():
            family.add_metric(labels, getattr(path, name))
    yield from (up, *families.values())
