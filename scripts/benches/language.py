"""``language``: ``ggshell check`` of a long obey file, compared with the time that it may take, and
lines a second compared with those of a tenth of its length."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benches.figures import Figure, alternate, less_is_better, more_is_better
from benches.ground import Failed
from ggshell.check.cli import check_sources

LINES = 10_000
LIMIT_SECONDS = 0.3
_FORMS = (
    "ADD EXTRACT e{n}, TRANLOG, BEGIN NOW",
    "add exttrail ./dirdat/a{k} extract e{n} megabytes {m}",
    "INFO EXTRACT e{n}, SHOWCH",
    "send extract e{n}, getlag",
    "add replicat r{n}, exttrail ./dirdat/a{k}, checkpointtable gg.checks -- a comment",
    "START ER e{n}",
    "INFO ALL",
    "stats r{n}, total, table shop.orders",
    "DBLOGIN USERIDALIAS north",
    "LAG e{n}",
)


def run(rounds: int, quick: bool) -> list[Figure]:
    long, short = script(LINES), script(LINES // 10)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.oby"
        path.write_text(long)
        whole = [_seconds(path) for _ in range(rounds)]
    _rate(short)  # what is compiled once is not measured
    rates, tenth = alternate(rounds, lambda _: _rate(long), lambda _: _rate(short))
    return [
        less_is_better("language", f"check, {LINES:,} lines", "s", whole, [LIMIT_SECONDS], "the limit", 1.0),
        more_is_better("language", "growth", "lines/s", rates, tenth, f"of {LINES // 10:,} lines", 0.8),
    ]


def _rate(text: str) -> float:
    """Lines a second, without the start of a process."""
    began = time.perf_counter()
    check_sources([("script.oby", text)])
    return text.count("\n") / (time.perf_counter() - began)


def script(lines: int) -> str:
    """An obey file of so many statements, none like another."""
    forms = (_FORMS[n % len(_FORMS)].format(n=n, k=n % 7, m=n % 90 + 10) for n in range(lines))
    return "\n".join(forms) + "\n"


def _seconds(path: Path) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-m", "ggshell.cli.main", "check", str(path), "--format", "json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode not in (0, 3) or '"code": "GGS-00101"' in result.stdout:
        raise Failed(f"the script was not understood: {result.stderr or result.stdout[:500]}")
    return time.perf_counter() - began
