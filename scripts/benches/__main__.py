"""``scripts/bench [NAME...] [--json] [--quick] [--rounds N]``."""

from __future__ import annotations

import argparse
import importlib
import sys

from benches.figures import machine
from benches.ground import Failed

NAMES = (
    "extract",
    "replicat",
    "apply",
    "latency",
    "startup",
    "memory",
    "language",
    "heartbeat",
    "ddl",
    "trail",
    "spark",
    "redo",
    "recovery",
    "service",
    "path",
    "move",
    "load",
)


def main() -> int:
    """Run the named benches, all by default; 0 when every goal holds, 1 when one is missed, 2 when one could not run."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument(
        "--quick", action="store_true", help="smaller loads, one round: whether it works, not how fast it is"
    )
    parser.add_argument("--rounds", type=int, help="rounds of each side (3; the median counts)")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no bench is called {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if not options.json:
        print(f"Machine: {machine()}")
    verdicts = [_bench(name, options) for name in options.names or NAMES]
    return max(verdicts)


def _bench(name: str, options: argparse.Namespace) -> int:
    rounds = options.rounds or (1 if options.quick else 3)
    try:
        figures = importlib.import_module(f"benches.{name}").run(rounds, options.quick)
    except Failed as error:
        print(f"{name}: could not run: {error}", file=sys.stderr)
        return 2
    for figure in figures:
        print(figure.as_json() if options.json else figure, flush=True)
    return int(any(figure.holds is False for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
