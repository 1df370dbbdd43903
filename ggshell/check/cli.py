"""``ggshell check FILE...``: without a home, without a database; exit code 0, or 3 when something is wrong."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ggshell.check.formats import FORMATS
from ggshell.check.parameter_files import KINDS
from ggshell.check.run import OBEY, check_sources
from ggshell.errors import UsageError

PASSED, FAILED = 0, 3
_KINDS = {OBEY: OBEY} | {kind.lower(): kind for kind in KINDS}


def main(arguments: Sequence[str]) -> int:
    """Check files; the exit code.  Raises UsageError for a file that cannot be read."""
    options = _parser().parse_args(arguments)
    report = check_sources([(name, _read(name)) for name in options.files], _KINDS.get(options.kind))
    write = FORMATS[options.format]
    color = not options.no_color and sys.stdout.isatty()
    text = write(report, color=color) if options.format == "text" else write(report, strict=options.strict)
    sys.stdout.write(text)
    return FAILED if report.failed(strict=options.strict) else PASSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ggshell check", description="Check obey and parameter files offline.")
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="obey files, parameter files, GLOBALS; - is standard input"
    )
    parser.add_argument("--format", choices=list(FORMATS), default="text")
    parser.add_argument("--kind", choices=list(_KINDS), help="what the files are, where their contents do not tell")
    parser.add_argument("--strict", action="store_true", help="warnings count as errors")
    parser.add_argument("--no-color", action="store_true")
    return parser


def _read(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"cannot read {name}: line {line} is not UTF-8", hint="save the file as UTF-8") from error
