"""The arithmetic and the interface of the benches: the direction of ratios, and the fields of every object."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from benches import figures

    return figures


def test_a_higher_rate_is_better(figures: Any) -> None:
    figure = figures.more_is_better("extract", "case", "rows/s", [80.0, 90.0, 10.0], [100.0, 100.0, 100.0], "peer", 0.7)
    assert (figure.ours, figure.ratio, figure.holds) == (80.0, 0.8, True)


def test_a_shorter_time_is_better(figures: Any) -> None:
    figure = figures.less_is_better("startup", "case", "ms", [100.0], [150.0], "peer", 2.0)
    assert (figure.ratio, figure.holds) == (1.5, False)
    assert "MISSED" in str(figure)


def test_a_figure_without_a_goal_is_only_shown(figures: Any) -> None:
    assert figures.less_is_better("latency", "p50", "ms", [1.0], [0.1], "peer", None).holds is None


def test_the_worst_round_is_judged_and_all_are_shown(figures: Any) -> None:
    rate = figures.worst_judged("path", "case", "MB/s", [80.0, 60.0, 90.0], [100.0, 100.0, 100.0], "peer", 0.7)
    assert [(each.ratio, each.holds) for each in rate] == [(0.9, None), (0.8, None), (0.6, False)]
    size = figures.worst_judged("path", "case", "MB", [50.0, 200.0], [100.0], "the limit", 1.0, less=True)
    assert [(each.ratio, each.holds) for each in size] == [(2.0, None), (0.5, False)]


def test_json_has_the_agreed_fields(figures: Any) -> None:
    line = figures.more_is_better("extract", "case", "rows/s", [1.0], [3.0], "peer", 0.7).as_json()
    assert list(json.loads(line)) == ["bench", "case", "unit", "ours", "peer", "peer_name", "ratio", "goal", "holds"]


def test_the_sides_alternate_and_so_does_the_first_one(figures: Any) -> None:
    order: list[str] = []

    def side(name: str) -> Any:
        return lambda number: order.append(name) or float(number)

    assert figures.alternate(3, side("a"), side("b")) == [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]
    assert order == ["a", "b", "b", "a", "a", "b"]


def test_percentiles(figures: Any) -> None:
    values = [float(number) for number in range(100)]
    assert figures.percentile(values, 0.5) == 50.0
    assert figures.percentile(values, 0.99) == 99.0
    assert figures.percentile([7.0], 0.99) == 7.0


@pytest.mark.slow
def test_an_unknown_bench_is_a_usage_error() -> None:
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    result = subprocess.run(
        [sys.executable, "-m", "benches", "speed"], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert "extract, replicat, apply" in result.stderr
