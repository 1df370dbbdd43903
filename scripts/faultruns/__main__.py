"""``scripts/faults [NAME...] [--rounds N] [--seed S] [--kind KIND] [--case TEXT] [--json]``."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from typing import NamedTuple

from benches.ground import Failed

from faultruns import files, network
from faultruns.chain import KINDS, MARIADB_KINDS, chain
from faultruns.load import Load
from faultruns.memory import most_memory
from faultruns.sides import missing_server
from faultruns.verdict import wait_for_verdict

NAMES = ("kill", "matrix", "cut", "restart", "disk", "large", "many", "interleaved", "files", "network", "soak")
_OWN_KINDS = {"files": files.KINDS, "network": network.KINDS}
"""The kinds of the faults that do not have those of a chain."""


class Outcome(NamedTuple):
    """One fault against one kind of Replicat. ``skipped``: why this machine cannot make the fault; ``megabytes``: the most
    memory that Extract or Replicat had, where that is what is tried; ``notes``: what else was measured."""

    fault: str
    rounds: int
    lost: int
    twice: int
    seconds: float
    kind: str
    seed: int
    transactions: int = 0
    skipped: str = ""
    megabytes: int = 0
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        begin = f"{self.fault:<9}{self.kind:<13}"
        if self.skipped:
            return f"{begin}skipped: {self.skipped}"
        memory = f"  {self.megabytes} MB" if self.megabytes else ""
        line = (
            f"{begin}{self.rounds:>5} rounds {self.transactions:>7} transactions {self.lost:>5} lost"
            f" {self.twice:>5} twice {self.seconds:>7.1f} s  seed {self.seed}{memory}"
        )
        return "\n".join([line, *(f"         {note}" for note in self.notes)])


def main() -> int:
    """Run the named faults, all by default; 0 when nothing was lost or came twice, 1 otherwise, 2 when one could not run."""
    parser = argparse.ArgumentParser(prog="scripts/faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--rounds", type=int, default=20, help="how often each is done to each kind of Replicat")
    parser.add_argument("--seed", type=int, default=1, help="decides moments and victims")
    kinds = list(dict.fromkeys([*KINDS, *MARIADB_KINDS, *files.KINDS, *network.KINDS]))
    parser.add_argument(
        "--kind", choices=kinds, action="append", help="kinds of Replicat; all that the fault has by default"
    )
    parser.add_argument("--case", default="", metavar="TEXT", help="of files: only the cases whose name has this text")
    parser.add_argument("--json", action="store_true", help="one object a line")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no fault is called {', '.join(unknown)}; there are {', '.join(NAMES)}")
    worst = 0
    for name in options.names or NAMES:
        for kind in options.kind or _kinds(name):
            try:
                outcome = run(name, kind, options.rounds, options.seed, options.case)
            except Failed as error:
                print(f"{name} {kind}: could not run: {error}", file=sys.stderr)
                worst = 2
                continue
            print(json.dumps(outcome._asdict()) if options.json else outcome, flush=True)
            worst = max(worst, int(bool(outcome.lost or outcome.twice)))
    return worst


def _kinds(name: str) -> list[str]:
    """The kinds of chains that a fault is made for. ``MARIADB`` of its module: also those with a MariaDB server."""
    if name in _OWN_KINDS:
        return list(_OWN_KINDS[name])
    also = MARIADB_KINDS if getattr(importlib.import_module(f"faultruns.{name}"), "MARIADB", False) else {}
    return [*KINDS, *also]


def run(name: str, kind: str, rounds: int, seed: int, case: str) -> Outcome:
    """One fault against one kind of Replicat, on servers and in a home of its own. Raises Failed."""
    fault = importlib.import_module(f"faultruns.{name}")
    missing = fault.missing() or (missing_server() if kind in MARIADB_KINDS else "")
    if missing:
        return Outcome(name, 0, 0, 0, 0.0, kind, seed, skipped=missing)
    if fault is network:
        begin = time.monotonic()
        network.run(rounds)
        return Outcome(name, rounds, 0, 0, round(time.monotonic() - begin, 1), kind, seed)
    if fault is files:
        begin = time.monotonic()
        number, transactions, found = files.run(kind, rounds, seed, case)
        seconds = round(time.monotonic() - begin, 1)
        return Outcome(name, number, found.lost, found.twice, seconds, kind, seed, transactions)
    with chain(kind, fault.prepare) as ground:
        begin = time.monotonic()
        with Load(ground.sides["north"], seed) as load:
            fault.spoil(ground, rounds, seed)
        found = wait_for_verdict(ground)
        seconds = round(time.monotonic() - begin, 1)
        megabytes = most_memory(ground) if hasattr(fault, "MOST_MEGABYTES") else 0
    outcome = Outcome(name, rounds, found.lost, found.twice, seconds, kind, seed, load.transactions)
    return outcome._replace(megabytes=megabytes, notes=tuple(ground.notes))


if __name__ == "__main__":
    sys.exit(main())
