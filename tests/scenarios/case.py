"""A scenario as text: tables on both sides, statements, expectations.

A file in ``cases/`` holds cases in SQL, divided by lines that begin with ``---``:

    --- case: name                     begins a case; it gets its own schema, also its search path (``:schema`` in psql)
    --- tables                         SQL for source and target, before anything runs
    --- source tables, --- target tables   the same for one side
    --- trandata: statement;           instead of ADD TRANDATA {schema}.*; ``none`` for nothing
    --- extract: TABLE ...;            instead of TABLE {schema}.*;
    --- replicat: MAP ...;             instead of MAP {schema}.*, TARGET {schema}.*;
    --- source, --- target             SQL, in order, while everything runs
    --- equal: t, u (a, b)             waits until these tables are the same on both sides (all columns, or those named)
    --- holds: query = text            waits until a query at each target gives this text
    --- holds stopped: query = text    the same at once, for Replicats that have abended
    --- abends: text                   waits until every Replicat has abended, with this text in its report
    --- reports: text                  waits until every Replicat's report holds this text
    --- settles                        waits until everything has arrived or the Replicat has abended, at each target
    --- start                          starts what has abended
    --- differs: reason                PostgreSQL's own subscription behaves differently; says how and why

Other comments are SQL comments.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

CASES = Path(__file__).parent / "cases"
SETUP = ("tables", "source tables", "target tables")
STEPS = ("source", "target", "equal", "holds", "holds stopped", "abends", "reports", "settles", "start")


@dataclass(frozen=True)
class Step:
    """One action or expectation of a case while the groups run."""

    kind: str
    text: str


@dataclass(frozen=True)
class Case:
    """One scenario. ``schema`` is where its tables are, on both sides."""

    name: str
    schema: str
    source_tables: str = ""
    target_tables: str = ""
    trandata: str = "ADD TRANDATA {schema}.*"
    extract: str = "TABLE {schema}.*;"
    replicat: str = ""
    steps: tuple[Step, ...] = ()
    differs: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return self.name.replace(" ", "_")


def read_cases(folder: Path = CASES) -> list[Case]:
    """All cases, in the order of their files."""
    return [case for file in sorted(folder.glob("*.sql")) for case in _cases_of(file)]


def _cases_of(file: Path) -> list[Case]:
    number, cases = file.stem.split("_")[0], []
    for count, part in enumerate(("\n" + file.read_text(encoding="utf-8")).split("\n--- case:")[1:], start=1):
        title, _, body = part.partition("\n")
        cases.append(_case(f"{file.stem}: {title.strip()}", f"s{number}_{count:02}", body))
    return cases


def _case(name: str, schema: str, body: str) -> Case:
    facts: dict[str, str] = {}
    steps: list[Step] = []
    differs: list[str] = []
    for section in ("\n" + body).split("\n---")[1:]:
        head, _, text = section.partition("\n")
        kind, _, value = (word.strip() for word in head.partition(":"))
        if kind in SETUP:
            for side in ("source tables", "target tables") if kind == "tables" else (kind,):
                facts[side] = facts.get(side, "") + text + "\n"
        elif kind in STEPS:
            steps.append(Step(kind, value or text))
        elif kind == "differs":
            differs.append(value)
        elif kind in ("trandata", "extract", "replicat"):
            facts[kind] = f"{facts[kind]}\n{value}" if kind in facts else value
        else:
            raise ValueError(f"{name}: {kind} is not a section of a case")
    return Case(
        name,
        schema,
        facts.get("source tables", ""),
        facts.get("target tables", ""),
        facts.get("trandata", Case.trandata),
        facts.get("extract", Case.extract),
        facts.get("replicat", ""),
        tuple(steps),
        tuple(differs),
    )
