"""The arithmetic, the results file and the interface of the benches."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
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
    figure = figures.more_is_better("extract", "case", "rows/s", [80.0, 90.0, 70.0], [100.0, 100.0, 100.0], "peer", 0.7)
    assert (figure.ratios, figure.ratio, figure.worst, figure.holds) == ([0.8, 0.9, 0.7], 0.8, 0.7, True)
    assert figure.spread == pytest.approx(0.25)


def test_a_shorter_time_is_better(figures: Any) -> None:
    figure = figures.less_is_better("startup", "case", "ms", [100.0], [150.0], "peer", 2.0)
    assert (figure.ratio, figure.holds) == (1.5, False)
    assert "MISSED" in str(figure)


def test_a_figure_without_a_goal_is_only_shown(figures: Any) -> None:
    assert figures.less_is_better("latency", "p50", "ms", [1.0], [0.1], "peer", None).holds is None


def test_the_worst_round_is_judged_and_all_are_shown(figures: Any) -> None:
    rate = figures.more_is_better("path", "case", "MB/s", [80.0, 60.0, 90.0], [100.0, 100.0, 100.0], "peer", 0.7)
    assert (rate.ratio, rate.worst, rate.holds) == (0.8, 0.6, False)
    assert all(f"{ratio:.2f}" in str(rate) for ratio in (0.8, 0.6, 0.9))


def test_a_ratio_is_that_of_values_of_the_same_round(figures: Any) -> None:
    moved = figures.more_is_better("extract", "case", "rows/s", [50.0, 100.0], [100.0, 200.0], "peer", 0.5)
    assert (moved.ratios, moved.spread, moved.holds) == ([0.5, 0.5], 0.0, True)


def test_a_limit_counts_in_every_round(figures: Any) -> None:
    size = figures.less_is_better("path", "case", "MB", [50.0, 200.0], [100.0], "the limit", 1.0)
    assert (size.ratios, size.against_limit, size.holds) == ([2.0, 0.5], True, False)


def test_json_has_the_agreed_fields(figures: Any) -> None:
    values = json.loads(figures.more_is_better("extract", "case", "rows/s", [1.0], [3.0], "peer", 0.7).as_json())
    assert list(values) == [
        *("bench", "case", "unit", "ours", "peer", "peer_name"),
        *("ratio", "worst", "spread", "goal", "holds", "rounds"),
    ]
    assert (values["rounds"], values["holds"]) == ([[1.0, 3.0]], False)


@pytest.fixture
def results(figures: Any) -> Any:
    from benches import results

    return results


def run_of(figures: Any, results: Any, ours: list[float], cores: float = 0.0) -> Any:
    from benches.machine import Load

    figure = figures.less_is_better("memory", "case", "MB", ours, [100.0], "the limit", 1.0)
    return results.Run("2 cores", "abc", Load(0.1, cores), Load(1.0, 0.0), False, (figure,))


def test_a_run_replaces_only_its_own_bench_in_a_results_file(figures: Any, results: Any, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    first, second = run_of(figures, results, [50.0, 40.0]), run_of(figures, results, [25.0, 20.0])
    results.save(file, "memory", first)
    results.save(file, "trail", first._replace(figures=()))
    results.save(file, "memory", second)
    assert results.read(file) == {"memory": second, "trail": first._replace(figures=())}


def test_a_results_file_of_another_version_is_refused(results: Any, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"version": 99, "benches": {}}')
    with pytest.raises(ValueError, match="version"):
        results.read(tmp_path / "results.json")


def test_a_change_since_the_baseline_is_shown_with_its_spread(figures: Any, results: Any) -> None:
    slow, fast = run_of(figures, results, [50.0]), run_of(figures, results, [25.0])
    assert results.changes(slow, fast) == ["memory: case, the limit: 2.00 -> 4.00 (+100 %), worst 2.00 -> 4.00"]
    wide = run_of(figures, results, [40.0, 50.0, 62.5])
    assert results.changes(wide, slow)[0].endswith("within the spread")


def test_a_busy_machine_is_marked(figures: Any, results: Any) -> None:
    assert run_of(figures, results, [1.0], cores=0.5).busy
    assert not run_of(figures, results, [1.0], cores=0.1).busy


def test_the_load_of_the_machine_is_measured(results: Any) -> None:
    from benches.machine import load

    measured = load(0.1)
    assert measured.average >= 0
    assert measured.cores >= 0


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


def test_a_bench_has_every_library_that_it_imports() -> None:
    """In an environment with the extra ``bench`` alone: a bench once ran only where the tests' libraries were installed."""
    extras = tomllib.loads((SCRIPTS.parent / "pyproject.toml").read_text())["project"]
    wanted, names = ["bench"], {_name(each) for each in extras["dependencies"]}
    while wanted:
        for each in extras["optional-dependencies"][wanted.pop()]:
            inner = re.fullmatch(r"ggshell\[(.+)\]", each)
            wanted += inner[1].split(",") if inner else []
            names.add(_name(each))
    known = packages_distributions()
    trees = (ast.parse(file.read_text()) for file in (SCRIPTS / "benches").glob("*.py"))
    imported = {
        name.partition(".")[0]
        for tree in trees
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    lacking = {
        name
        for name in imported - sys.stdlib_module_names - {"ggshell", "benches"}
        if not names & {_name(each) for each in known.get(name, [name])}
    }
    assert lacking == set()


def _name(requirement: str) -> str:
    """The name of a distribution, without its version and its extras."""
    return re.split(r"[\[<>=!~; ]", requirement)[0].lower().replace("_", "-")
