"""docs/performance.md, written from docs/performance.json: every figure on the page comes from the results file."""

from __future__ import annotations

import statistics
from pathlib import Path

from benches.catalog import CATALOG
from benches.figures import Figure, number
from benches.growth_chart import chart, series_of
from benches.results import Run, read

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "performance.json"
PAGE = ROOT / "docs" / "performance.md"
CHART = ROOT / "docs" / "images" / "growth.svg"
GROWTH = "growth"
_HEAD = """# Performance

`scripts/bench` measures ggshell and its peer alternately, in the same run. This page is generated from
[performance.json](performance.json), which contains every round. To measure again, run
`scripts/bench NAME... --save docs/performance.json`, then `scripts/bench --page`.

- *Ratio*: above 1, ggshell is better. The median and the worst of the rounds are shown; *spread* is the distance of the best
  and the worst ratio as a share of the median.
- *Goal*: the ratio that the worst round must reach. Where ggshell is compared with a limit and not with another program,
  the limit is in the column *compared with*.

All figures are of the CPython version that each section names. [CPython versions](#cpython-versions) compares two of them;
free-threaded builds are not measured.
"""
_COLUMNS = (
    "| what | ours | compared with | ratio | worst | spread | goal |\n| --- | --- | --- | --- | --- | --- | --- |"
)


def page(runs: dict[str, Run]) -> str:
    """The whole text of the page."""
    sections = [_section(name, runs[name]) for name in CATALOG if name in runs]
    return "\n".join([_HEAD, *_verdict(runs), *sections])


def write() -> None:
    """Write the page and its chart."""
    runs = read(RESULTS)
    PAGE.write_text(page(runs), encoding="utf-8")
    if GROWTH in runs:
        CHART.write_text(chart(series_of(runs[GROWTH].figures)), encoding="utf-8")


def _verdict(runs: dict[str, Run]) -> list[str]:
    """How many goals are reached, which are missed, and which benches say nothing about goals."""
    figures = [figure for name in CATALOG if name in runs and runs[name].judged for figure in runs[name].figures]
    judged = [figure for figure in figures if figure.holds is not None]
    missed = [figure for figure in judged if not figure.holds]
    reached = f"{len(judged) - len(missed)} of {len(judged)} goals are reached"
    lines = [f"{reached}. These are missed:\n" if missed else f"{reached}."]
    lines += [f"- {_title(each)}: {each.worst:.2f}, goal {each.goal:g}" for each in missed]
    if unjudged := [CATALOG[name][0] for name in CATALOG if name in runs and not runs[name].judged]:
        lines += ["", f"Not judged, because the inputs were small or the machine was busy: {', '.join(unjudged)}."]
    return [*lines, ""]


def _title(figure: Figure) -> str:
    return f"{CATALOG[figure.bench][0]}, {figure.case}, compared with {figure.peer_name}"


def _section(name: str, run: Run) -> str:
    title, introduction = CATALOG[name]
    shown = _growth(run) if name == GROWTH else []
    table = [_COLUMNS, *map(_row, run.figures), ""]
    return "\n".join([f"## {title}\n", f"{introduction}\n", *shown, *table, _origin(name, run), ""])


def _growth(run: Run) -> list[str]:
    sentences = [f"- {each.sentence}" for each in series_of(run.figures)]
    return ["![Time by number of objects](images/growth.svg)\n", *sentences, ""]


def _row(figure: Figure) -> str:
    ours = f"{number(statistics.median(figure.ours))} {figure.unit}"
    peer = f"{figure.peer_name}: {number(statistics.median(figure.peer))} {figure.unit}"
    goal = "" if figure.goal is None else f"{figure.goal:g}"
    ratios = f"{figure.ratio:.2f} | {figure.worst:.2f} | {100 * figure.spread:.0f} %"
    return f"| {figure.case.replace('|', chr(92) + '|')} | {ours} | {peer.replace('|', chr(92) + '|')} | {ratios} | {goal} |"


def _origin(name: str, run: Run) -> str:
    rounds = max((len(each.ours) for each in run.figures), default=0)
    notes = [f"`scripts/bench {name}{' --quick' if run.quick else ''}`, {rounds} round{'s' if rounds != 1 else ''}"]
    notes.append(f"{run.machine}. Commit {run.commit}. Before: {run.before}. After: {run.after}.")
    if run.busy:
        notes.append("**Other programs kept the machine busy.**")
    if run.quick:
        notes.append("**Small inputs: the figures show that the bench works, not how fast ggshell is.**")
    return f"{notes[0]}. " + " ".join(notes[1:])
