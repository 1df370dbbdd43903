"""Heartbeat lag as metrics: recent percentiles by path and hop, and when the last heartbeat arrived.

They come from the lag archive, which DuckDB reads; the answer is kept for some seconds, since a scrape must be quick.
"""

from __future__ import annotations

import threading
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from ggshell.clock import Clock
from ggshell.errors import GgsError
from ggshell.home.home import Home

KEPT_SECONDS: Final = 15.0
_WINDOW: Final = 3_600_000_000
"""The age of the oldest heartbeat that counts, in microseconds."""
_ARRIVALS_WINDOW: Final = 7 * 24 * _WINDOW
"""How long the last heartbeat of a group is reported. It is longer, so that an alert does not end while it holds."""


class HeartbeatMetrics:
    """The heartbeat metrics of a home. Any thread can call ``collect``."""

    def __init__(self, home: Home, clock: Clock) -> None:
        self._home = home
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: list[Metric] = []
        self._until = -1.0

    def collect(self) -> list[Metric]:
        """Return the metrics; empty if the home has no lag archive."""
        with self._lock:
            if self._clock.steady() >= self._until:
                self._kept = self._read()
                self._until = self._clock.steady() + KEPT_SECONDS
            return self._kept

    def _read(self) -> list[Metric]:
        folder = self._home.root / "dirlag"
        if not folder.is_dir():
            return []
        from ggshell.monitoring.lag_archive import newest, spreads

        now = self._clock.now()
        try:
            found, last = spreads(folder, "HOUR", now - _WINDOW), newest(folder, now - _ARRIVALS_WINDOW)
            groups = {name for name, _ in self._home.group_names()}
        except GgsError:
            return []
        lag = Metric("ggshell_heartbeat_lag_seconds", "The lag of recent heartbeats, at most one hour old.", "summary")
        for each in {(each.remote, each.path, each.hop): each for each in found}.values():
            labels = {"remote": each.remote, "path": _label(each.path), "hop": each.hop}
            for rank, value in (("0.5", each.p50), ("0.95", each.p95), ("0.99", each.p99), ("1", each.longest)):
                lag.add_sample("ggshell_heartbeat_lag_seconds", {**labels, "quantile": rank}, value)
        arrived = GaugeMetricFamily(
            "ggshell_heartbeat_last_received_time_seconds",
            "When a Replicat received its last heartbeat.",
            labels=["group"],
        )
        for group, moment in last.items():
            if group in groups:
                arrived.add_metric([group], moment / 1e6)
        return [lag, arrived]


def _label(path: str) -> str:
    """Return a path as the value of a label: ``EXT1/PMP1/REP1``."""
    return path.removeprefix("==> ").removesuffix(" ==>").replace(" ==> ", "/")
