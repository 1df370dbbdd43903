"""The results file: what each bench measured in its last run, with the machine, its load and the commit.

A run replaces only the benches that it has run. The file keeps the rounds and nothing that follows from them, so no two
statements in it can disagree.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from benches.figures import Figure, significant
from benches.machine import Load

VERSION = 1


class Run(NamedTuple):
    """The last run of a bench. ``quick``: with smaller inputs, which shows that it works and not how fast it is."""

    machine: str
    commit: str
    before: Load
    after: Load
    quick: bool
    figures: tuple[Figure, ...]

    @property
    def busy(self) -> bool:
        return self.before.busy or self.after.busy

    @property
    def judged(self) -> bool:
        """Whether the run says something about goals: whole inputs on an idle machine."""
        return not (self.busy or self.quick)


def read(file: Path) -> dict[str, Run]:
    """The runs of a results file by bench. Raises ValueError if it has another version."""
    content = json.loads(file.read_text(encoding="utf-8"))
    if content.get("version") != VERSION:
        raise ValueError(f"{file} is not a results file of version {VERSION}")
    return {name: _run(name, values) for name, values in content["benches"].items()}


def save(file: Path, name: str, run: Run) -> None:
    """Replace the run of one bench, and keep the others."""
    runs = {**(read(file) if file.exists() else {}), name: run}
    content = {"version": VERSION, "benches": {each: _values(runs[each]) for each in sorted(runs)}}
    temporary = file.with_name(file.name + ".new")
    temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(file)


def _values(run: Run) -> dict[str, Any]:
    figures = [
        {
            **{key: getattr(each, key) for key in ("case", "unit", "peer_name", "less", "goal")},
            "ours": [significant(value) for value in each.ours],
            "peer": [significant(value) for value in each.peer],
        }
        for each in run.figures
    ]
    loads = {"before": run.before._asdict(), "after": run.after._asdict()}
    return {"machine": run.machine, "commit": run.commit, **loads, "quick": run.quick, "figures": figures}


def _run(name: str, values: dict[str, Any]) -> Run:
    figures = tuple(
        Figure(bench=name, **{**each, "ours": tuple(each["ours"]), "peer": tuple(each["peer"])})
        for each in values["figures"]
    )
    loads = Load(**values["before"]), Load(**values["after"])
    return Run(values["machine"], values["commit"], *loads, values["quick"], figures)


def changes(before: Run, after: Run) -> list[str]:
    """What has changed in a bench, a line for each figure that both runs have."""
    known = {(each.case, each.peer_name): each for each in before.figures}
    pairs = ((known.get((each.case, each.peer_name)), each) for each in after.figures)
    return [_change(old, new) for old, new in pairs if old is not None]


def _change(old: Figure, new: Figure) -> str:
    percent = 100 * (new.ratio / old.ratio - 1)
    moved = f"{old.ratio:.2f} -> {new.ratio:.2f} ({percent:+.0f} %), worst {old.worst:.2f} -> {new.worst:.2f}"
    within = abs(new.ratio - old.ratio) <= (old.spread * old.ratio + new.spread * new.ratio) / 2
    return f"{new.bench}: {new.case}, {new.peer_name}: {moved}{', within the spread' if within else ''}"


def commit(folder: Path) -> str:
    """The commit of a checkout, with a plus sign if files have changed since."""
    name = _git(folder, "rev-parse", "--short=10", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", "ggshell", "grammar", "scripts")
    return f"{name}+" if changed else name


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["/usr/bin/env", "git", *words], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip() or ("unknown" if done.returncode else "")
