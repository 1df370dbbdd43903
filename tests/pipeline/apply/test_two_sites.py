"""Two sites that change the same rows: each ends with the rows that the rules of the manual give."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from pipeline.apply.two_sites import COMPACT, FULL, Change, Model, Rules, Site, Values

from ggshell.record.image_rules import ImageRules, Unified

IGNORED_ROWS: Rules = {
    "UPDATEROWMISSING": [("IGNORE", "", "")],
    "DELETEROWEXISTS": [("OVERWRITE", "", "")],
    "DELETEROWMISSING": [("IGNORE", "", "")],
}


def latest(method: str, by: str) -> Rules:
    return {
        "INSERTROWEXISTS": [(method, by, "")],
        "UPDATEROWEXISTS": [(method, by, "")],
        **IGNORED_ROWS,
    }


def everywhere(method: str, missing: str) -> Rules:
    return {
        **{key: [(method, "", "")] for key in ("INSERTROWEXISTS", "UPDATEROWEXISTS", "DELETEROWEXISTS")},
        "UPDATEROWMISSING": [(missing, "", "")],
        "DELETEROWMISSING": [("IGNORE", "", "")],
    }


GROUPS: Rules = {
    "INSERTROWEXISTS": [("USEMAX", "changed", "")],
    "UPDATEROWEXISTS": [("USEMAX", "rank", "name rank"), ("USEMAX", "changed", "")],
    **IGNORED_ROWS,
}
SUMS: Rules = {
    "UPDATEROWEXISTS": [("USEDELTA", "", "price"), ("USEMAX", "changed", "")],
    **IGNORED_ROWS,
}

PROMISES: dict[str, tuple[Rules, Rules, str]] = {
    "the latest": (latest("USEMAX", "changed"), latest("USEMAX", "changed"), "insert update"),
    "the latest or equal": (latest("USEMAXEQ", "changed"), latest("USEMAXEQ", "changed"), "insert update"),
    "the lowest rank": (latest("USEMIN", "rank"), latest("USEMINEQ", "rank"), "insert update"),
    "the highest rank of two that tie": (latest("USEMAX", "rank"), latest("USEMAXEQ", "rank"), "insert update tie"),
    "deletes win": (latest("USEMAX", "changed"), latest("USEMAX", "changed"), "update delete"),
    "one site wins": (everywhere("IGNORE", "IGNORE"), everywhere("OVERWRITE", "OVERWRITE"), "update delete"),
    "groups of columns": (GROUPS, GROUPS, "update"),
    "sums": (SUMS, SUMS, "update"),
}
"""The rules of both sites, and the operations after which both have the same rows. A key is inserted once, or never deleted:
without a record of deleted rows, a late change cannot recognize that its row is a different one."""


class Workload:
    """Changes at both sites; times and ranks are unique, unless ties are wanted."""

    def __init__(self, rng: random.Random, operations: str, *, falling: bool = False, wild: bool = False) -> None:
        self._rng = rng
        self._operations = operations.split()
        self._step = -1 if falling else 1
        self._wild = wild
        self._time = 0
        self._keys = iter(range(100, 10_000))

    def change(self, rows: dict[str, Values]) -> Change | None:
        """A change of one of the rows, or a new row."""
        kind = self._rng.choice([each for each in self._operations if each != "tie"])
        row = rows[self._rng.choice(sorted(rows))] if rows else None
        if kind == "insert":
            key = str(self._rng.randrange(1, 8))
            return Change(None, self._values(key)) if key not in rows else None
        if row is None:
            return Change(None, self._values(str(next(self._keys)))) if "delete" in self._operations else None
        if kind == "delete":
            return Change(row, None)
        fresh = self._values(str(row["id"]))
        chosen = self._rng.sample(["name", "price"], self._rng.randrange(3))
        if self._wild:
            chosen += self._rng.sample(["rank", "changed"], self._rng.randrange(3))
        else:
            chosen += ["changed", "rank"]
        after = {name: fresh[name] if name in chosen else row[name] for name in row}
        if kind == "move":
            after["id"] = str(self._rng.randrange(1, 8))
            if after["id"] in rows:
                after["id"] = row["id"]
        return Change(row, after) if after != row else None

    def start(self) -> list[Values]:
        """The rows that both sites start with."""
        return [self._values(str(key)) for key in range(1, 6)]

    def _values(self, key: str) -> Values:
        self._time += 1
        rank: str | None = str(5000 + self._step * self._time)
        if "tie" in self._operations:
            rank = str(5000 + self._time // 3)
        name, price = self._rng.choice(["a", "b", None, "ö"]), str(self._rng.randrange(-50, 50))
        changed: str | None = f"2026-01-01 00:{self._time // 60:02}:{self._time % 60:02}"
        if self._wild:
            price = self._rng.choice([price, None])  # type: ignore[assignment]
            rank = self._rng.choice([None, "9", "10", "100"])
            changed = self._rng.choice([None, changed, "2026-01-01 00:00:05"])
        return {"id": key, "name": name, "price": price, "rank": rank, "changed": changed}


def sites(first: Rules, second: Rules, images: ImageRules, rng: random.Random) -> list[tuple[Site, Model]]:
    return [(Site(rules, images, rng.choice([1, 3, 1000])), Model(rules)) for rules in (first, second)]


def play(application: Workload, pairs: list[tuple[Site, Model]], rng: random.Random) -> None:
    """Both sites change rows, and each Replicat runs at random points; in the end all changes are applied."""
    written: list[list[Change]] = [[], []]
    applied = [0, 0]

    def run(here: int, transactions: int) -> bool:
        count = pairs[here][0].run(pairs[1 - here][0], transactions)
        for change in written[1 - here][applied[here] : applied[here] + count]:
            pairs[here][1].apply(change)
        applied[here] += count
        assert pairs[here][0].rows == pairs[here][1].rows
        return count > 0

    for _ in range(rng.randrange(5, 40)):
        here = rng.randrange(2)
        if rng.random() < 0.4:
            run(here, rng.randrange(1, 6))
            continue
        site, model = pairs[here]
        change = application.change(site.rows)
        if change is not None:
            site.write(change)
            model.write(change)
            written[here].append(change)
    while run(0, 3) or run(1, 3):
        continue


def seeds(request: pytest.FixtureRequest, few: int) -> Iterator[int]:
    yield from range(few * max(1, int(request.config.getoption("--rounds"))))


@pytest.mark.parametrize("images", [COMPACT, FULL], ids=["COMPACT", "FULL"])
@pytest.mark.parametrize("promise", PROMISES)
def test_both_sites_end_with_the_same_rows_if_the_method_promises_it(
    request: pytest.FixtureRequest, promise: str, images: ImageRules
) -> None:
    first, second, operations = PROMISES[promise]
    for seed in seeds(request, 15):
        rng = random.Random(f"{promise} {seed}")
        application = Workload(rng, operations, falling="lowest" in promise)
        pairs = sites(first, second, images, rng)
        for row in application.start():
            for site, model in pairs:
                site.target.rows[(str(row["id"]).encode(),)] = dict(enumerate(_encoded(row)))
                model.rows[str(row["id"])] = row
        play(application, pairs, rng)
        assert pairs[0][0].rows == pairs[1][0].rows, f"seed {seed}"


METHODS = {
    "INSERTROWEXISTS": ["USEMAX", "USEMAXEQ", "USEMIN", "USEMINEQ", "OVERWRITE", "IGNORE", "DISCARD"],
    "UPDATEROWEXISTS": ["USEMAX", "USEMAXEQ", "USEMIN", "USEMINEQ", "OVERWRITE", "IGNORE", "DISCARD"],
    "UPDATEROWMISSING": ["OVERWRITE", "IGNORE", "DISCARD"],
    "DELETEROWEXISTS": ["OVERWRITE", "IGNORE", "DISCARD"],
    "DELETEROWMISSING": ["IGNORE", "DISCARD"],
}


def random_rules(rng: random.Random) -> Rules:
    """A method for each conflict, sometimes with a column group of its own."""

    def method(conflict: str) -> tuple[str, str]:
        found = rng.choice(METHODS[conflict])
        return found, rng.choice(["rank", "changed"]) if found.startswith(("USEMAX", "USEMIN")) else ""

    rules = {conflict: [(*method(conflict), "")] for conflict in METHODS}
    for conflict in ("INSERTROWEXISTS", "UPDATEROWEXISTS"):
        if rng.random() < 0.4:
            rules[conflict].insert(0, (*method(conflict), "name rank"))
    if rng.random() < 0.4:
        rules["UPDATEROWEXISTS"].append(("USEDELTA", "", "price"))
    return rules


@pytest.mark.parametrize("images", [COMPACT, FULL], ids=["COMPACT", "FULL"])
@pytest.mark.slow
def test_every_method_resolves_every_conflict_as_the_manual_says(
    request: pytest.FixtureRequest, images: ImageRules
) -> None:
    for seed in seeds(request, 150):
        rng = random.Random(seed)
        pairs = sites(random_rules(rng), random_rules(rng), images, rng)
        play(Workload(rng, "insert update delete move", wild=True), pairs, rng)


ROW: Values = {"id": "1", "name": "one", "price": "10", "rank": "1", "changed": "2026-01-01 00:00:00"}
MINE = {**ROW, "name": "n", "changed": "2026-01-03 00:00:00"}
THEIRS = {**ROW, "price": "77", "changed": "2026-01-02 00:00:00"}
ALONE = ImageRules(unified=Unified.COMPACT)
"""UPDATERECORDFORMAT COMPACT without LOGALLSUPCOLS: the values of unchanged columns are unknown."""


def conflict(rules: Rules, images: ImageRules, compared: str = "ALL") -> Site:
    """A site that changed a row and then applied the other site's change of that row."""
    here, there = (Site(rules, images, compared=compared) for _ in range(2))
    for site in (here, there):
        site.target.rows[(b"1",)] = dict(enumerate(_encoded(ROW)))
    there.write(Change(ROW, MINE))
    here.write(Change(ROW, THEIRS))
    here.run(there, 1)
    return here


@pytest.mark.parametrize("images", [COMPACT, FULL], ids=["COMPACT", "FULL"])
@pytest.mark.parametrize("compared", ["ALL", "KEYINCLUDING (changed)"])
def test_the_winning_row_is_applied_as_a_whole_and_never_mixed_with_the_other(
    images: ImageRules, compared: str
) -> None:
    here = conflict(latest("USEMAX", "changed"), images, compared)
    assert here.rows == {"1": MINE}
    assert [(each.conflict, each.resolved, each.applied) for each in here.answered] == [("UPDATEROWEXISTS", True, True)]


@pytest.mark.parametrize(
    ("images", "compared"), [(ALONE, "ALL"), (ALONE, "KEYINCLUDING (changed)"), (ImageRules(), "ALL")]
)
def test_a_record_without_the_old_values_is_refused_and_never_mixed(images: ImageRules, compared: str) -> None:
    here = conflict(latest("USEMAX", "changed"), images, compared)
    assert here.rows == {"1": THEIRS}


def _encoded(row: Values) -> list[bytes | None]:
    return [value.encode() if value is not None else None for value in row.values()]
