"""The command line of scripts/redo: generates redo to experiment with, and prints the statements that read it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from ggshell.clock import SystemClock, from_datetime
from ggshell.demo.redo_figure import START, write_figure
from ggshell.demo.redo_workload import Workload, WorkloadShape, redo_writers, write_definitions
from ggshell.durations import read_interval
from ggshell.home.home import Home
from ggshell.plurals import counted
from ggshell.progress_text import progress_text

_EVERY_SECONDS = 0.5
_PARAMETERS = """EXTRACT {group}
SOURCEDB redo://{folder}
{definitions}EXTTRAIL ./dirdat/{trail}
TABLE shop.*{keys};
"""


def seconds(text: str) -> float:
    """Parse a duration to seconds: ``90``, ``20M``, ``24H``, ``3D``."""
    try:
        return read_interval(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def share(text: str) -> float:
    """Parse a share: ``0.05`` or ``5%``."""
    value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a valid share: use 0 to 1, or 0% to 100%")
    return value


def moment(text: str) -> int:
    """Parse a time in UTC to microseconds since 1970."""
    return from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC))


def parser() -> argparse.ArgumentParser:
    """Define the command line."""
    result = argparse.ArgumentParser(
        prog="scripts/redo",
        description="Creates Oracle redo as rows of V$LOGMNR_CONTENTS, and prints the statements for an Extract that reads it.",
    )
    result.add_argument("--home", type=Path, help="write the Extract's parameter file into this home's dirprm")
    kinds = result.add_subparsers(dest="kind", required=True)
    figure = kinds.add_parser("figure", help="the manual's example of Bounded Recovery: T27, T45, T801, T950, T1024 …")
    figure.add_argument("folder", type=Path)
    made = kinds.add_parser("make", help="a workload over any span of log time, the same for the same seed")
    made.add_argument("folder", type=Path)
    made.add_argument("--span", type=seconds, default=60.0, help="log time: 90, 20M, 24H, 3D (60)")
    made.add_argument("--rate", type=float, default=100.0, help="transactions per second of log time (100)")
    made.add_argument("--rollbacks", type=share, default=0.05, help="share of transactions that roll back (5%%)")
    made.add_argument(
        "--statement-rollbacks", type=share, default=0.02, help="share with a statement that is rolled back (2%%)"
    )
    made.add_argument("--rows", type=int, default=20, help="maximum number of changes in a transaction (20)")
    made.add_argument("--open", type=seconds, default=2.0, help="maximum time that a transaction is open (2S)")
    made.add_argument("--long", type=share, default=0.0, help="share of transactions that stay open longer (0)")
    made.add_argument("--long-open", type=seconds, default=3600.0, help="maximum time that these stay open (1H)")
    made.add_argument("--threads", type=int, default=1, help="redo threads (1)")
    made.add_argument("--start", type=moment, default=START, help="start of the log, UTC (2026-01-01)")
    made.add_argument("--scn", type=int, default=1000, help="the SCN before the first (1000)")
    made.add_argument("--segment-bytes", type=int, default=64 << 20, help="size of a segment (64 MB)")
    made.add_argument("--gzip", action="store_true", help="compress complete segments")
    made.add_argument("--seed", type=int, default=1)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate the log; a summary goes to stderr, the statements to stdout."""
    given = parser().parse_args(arguments)
    folder = given.folder.resolve()
    if any(folder.glob("*.jsonl*")):
        sys.stderr.write(f"{folder} already contains redo: use another folder\n")
        return 2
    if given.kind == "figure":
        writer = write_figure(folder)
        sys.stderr.write(f"{counted(writer.rows, 'row')}, up to SCN {writer.scn}\n")
        _statements(given.home, folder, "br1", "ba", definitions=False)
        return 0
    shape = WorkloadShape(
        given.span,
        given.rate,
        given.rollbacks,
        given.statement_rollbacks,
        given.rows,
        given.open,
        given.long,
        given.long_open,
        given.seed,
    )
    options = {"time": given.start, "scn": given.scn, "segment_bytes": given.segment_bytes, "packed": given.gzip}
    with _progress_line(given.span) as progress:
        made = Workload(shape, list(redo_writers(folder, given.threads, **options)), progress=progress).run()
    write_definitions(folder)
    sys.stderr.write(
        f"{counted(made.rows, 'row')}: {counted(made.transactions, 'transaction')}, {made.committed} committed,"
        f" {made.rolled_back} rolled back\n"
    )
    _statements(given.home, folder, "redo1", "ra", definitions=True)
    return 0


@contextmanager
def _progress_line(span: float) -> Iterator[Callable[[float], None]]:
    """A line on a terminal's standard error that shows how much of the log time is written; removed at the end."""
    clock = SystemClock()
    began = clock.steady()
    following = began + _EVERY_SECONDS

    def show(written: float) -> None:
        nonlocal following
        now = clock.steady()
        if now >= following:
            following = now + _EVERY_SECONDS
            text = progress_text(int(written), int(span), "seconds of log time", now - began)
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    if not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")


def _statements(home: Path | None, folder: Path, group: str, trail: str, *, definitions: bool) -> None:
    """Write an Extract's parameter file to the home, and print its statements, which can be piped to ggshell."""
    text = _PARAMETERS.format(
        group=group,
        folder=folder,
        trail=trail,
        definitions=f"SOURCEDEFS {folder}/redo.def\n" if definitions else "",
        keys="" if definitions else ", KEYCOLS (id)",
    )
    if home is not None:
        found = Home(home)
        found.ensure()
        found.parameters(group).write_text(text)
    lines = [
        f"DBLOGIN SOURCEDB redo://{folder}",
        f"ADD EXTRACT {group}, TRANLOG, SCN 1",
        f"ADD EXTTRAIL ./dirdat/{trail}, EXTRACT {group}",
        f"START EXTRACT {group}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
