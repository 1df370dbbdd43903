"""``scripts/bench [NAME...] [--json] [--quick] [--rounds N] [--idle] [--save FILE] [--baseline FILE] [--page]``."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from benches import page, results
from benches.catalog import CATALOG
from benches.figures import Figure
from benches.ground import Failed
from benches.machine import load, machine

ROUNDS = 5
PASSED, MISSED, COULD_NOT_RUN, BUSY = range(4)


def main() -> int:
    """Run the named benches, all by default; the worst exit code: 0 if every goal holds, 1 if one is missed, 2 if a bench could
    not run, 3 if it was refused because the machine is busy."""
    options = _options()
    if options.page:
        page.write()
        return PASSED
    baseline = results.read(options.baseline) if options.baseline else {}
    if not options.json:
        print(f"Machine: {machine()}")
    return max(_bench(name, options, baseline.get(name)) for name in options.names or CATALOG)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CATALOG)}; all by default")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument(
        "--quick", action="store_true", help="smaller loads, one round: whether it works, not how fast it is"
    )
    parser.add_argument("--rounds", type=int, help=f"rounds of each side ({ROUNDS}; the worst one is judged)")
    parser.add_argument("--idle", action="store_true", help="refuse to run if other programs keep the machine busy")
    parser.add_argument("--save", type=Path, metavar="FILE", help="replace these benches in a results file")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="show what has changed since a results file")
    parser.add_argument("--page", action="store_true", help="write docs/performance.md from docs/performance.json")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(CATALOG))
    if unknown:
        parser.error(f"no bench is called {', '.join(unknown)}; there are {', '.join(CATALOG)}")
    return options


def _bench(name: str, options: argparse.Namespace, baseline: results.Run | None) -> int:
    before = load()
    if before.busy and options.idle:
        print(f"{name}: refused: the machine is busy ({before})", file=sys.stderr)
        return BUSY
    commit = results.commit(page.ROOT)
    try:
        figures = importlib.import_module(f"benches.{name}").run(
            options.rounds or (1 if options.quick else ROUNDS), options.quick
        )
    except Failed as error:
        print(f"{name}: could not run: {error}", file=sys.stderr)
        return COULD_NOT_RUN
    run = results.Run(machine(), commit, before, load(), options.quick, tuple(figures))
    _show(run.figures, json=options.json)
    print(f"{name}: before {run.before}; after {run.after}{' BUSY' if run.busy else ''}", file=sys.stderr)
    if baseline is not None:
        print("\n".join(results.changes(baseline, run)), file=sys.stderr)
    if options.save:
        results.save(options.save, name, run)
    return MISSED if any(figure.holds is False for figure in figures) else PASSED


def _show(figures: tuple[Figure, ...], *, json: bool) -> None:
    for figure in figures:
        print(figure.as_json() if json else figure, flush=True)


if __name__ == "__main__":
    sys.exit(main())
