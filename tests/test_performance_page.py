"""docs/performance.md is what its results file generates, and no other document contains measured figures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {ROOT / "docs" / "performance.md"})
_VALUE = r"\d[\d.,]*\d? ?"
MEASURED = re.compile(
    rf"{_VALUE}(?:rows|records|transactions|requests|statements|MB|GB) ?(?:/ ?s\b|a second|per second|each second)"
    rf"|\b(?:takes?|took|needed|used|costs?|measured)(?: about| only| around)? {_VALUE}(?:ms|µs|ns|seconds|s|MB|GB|%)(?!\w)"
    rf"|{_VALUE}(?:times|×|x) (?:as |faster|slower|better|less|more)"
    rf"|\({_VALUE}(?:ms|µs|ns)\b",
    re.IGNORECASE,
)
"""What only a measurement can say. Examples of output, in blocks and code spans, are not read."""


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from benches import page

    return page


def test_the_page_is_what_the_results_file_generates(page: Any) -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page(page.read(page.RESULTS)), "run scripts/bench --page"


def test_the_chart_is_what_the_results_file_generates(page: Any) -> None:
    runs = page.read(page.RESULTS)
    assert page.CHART.read_text(encoding="utf-8") == page.chart(page.series_of(runs[page.GROWTH].figures))


def test_growth_is_described_by_a_sentence_for_each_series(page: Any) -> None:
    from benches.figures import less_is_better

    figures = [
        less_is_better("growth", "check, 100 lines", "s", [0.1], [0.1], "the smallest", None),
        less_is_better("growth", "check, 10,000 lines", "s", [0.4], [20.0], "n log n of 100", 0.8),
        less_is_better("growth", "check, 10,000 lines", "s", [0.4], [0.3], "the limit", 1.0),
    ]
    (series,) = page.series_of(figures)
    assert series.sentence == "check: 100 times as many lines (100 to 10,000) take 4 times as long (0.1 to 0.4 s)."
    svg = page.chart([series])
    assert svg.count("<circle") == 2
    assert "10,000" in svg


def test_only_whole_runs_on_an_idle_machine_are_judged(page: Any) -> None:
    from benches.figures import less_is_better
    from benches.machine import Load
    from benches.results import Run

    figure = less_is_better("memory", "Extract", "MB", [200.0], [100.0], "the limit", 1.0)
    run = Run("2 cores", "abc", Load(0.0, 0.0), Load(1.0, 0.1), False, (figure,))
    judged = page.page({"memory": run})
    assert "0 of 1 goals are reached" in judged
    assert "- Memory, Extract, compared with the limit: 0.50, goal 1" in judged
    for unjudged in (run._replace(quick=True), run._replace(before=Load(3.0, 1.5))):
        text = page.page({"memory": unjudged})
        assert "0 of 0 goals are reached." in text
        assert "Not judged, because the inputs were small or the machine was busy: Memory." in text


def measured_figures(text: str) -> list[str]:
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    return [found.group() for found in MEASURED.finditer(prose)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_a_document_contains_no_measured_figure(document: Path) -> None:
    assert measured_figures(document.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "Extract writes 309,687 rows/s.",
        "It delivers 58,097 transactions per second.",
        "Replicat used 141 MB.",
        "The check takes about 0.5 s.",
        "COMPARE is 4.5 times faster.",
        "because the matchers are faster (0.06 ms for a statement)",
    ],
)
def test_a_measured_figure_is_found(text: str) -> None:
    assert measured_figures(text)


def test_a_limit_is_not_a_measured_figure() -> None:
    assert measured_figures("It connects again after 30 seconds; at most 128 MB wait. `takes 5 s`") == []
