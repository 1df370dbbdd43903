"""``ggshell move check | prepare | load | follow | verify | switch | back | finish``: moves a database step by step."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ggshell.clock import SystemClock, local_text, pause
from ggshell.connectors.move_side import Direction
from ggshell.errors import GgsError, StateError, UsageError
from ggshell.home.home import Home
from ggshell.move import steps
from ggshell.move.check import check_aliases
from ggshell.move.draining import Drain
from ggshell.move.findings import FindingSeverity
from ggshell.move.request import GROUPS, LONGEST_GROUPS, MoveRequest
from ggshell.move.scripts import pair_of
from ggshell.move.state import MoveFile
from ggshell.move.switching import DRAIN_SECONDS, switch
from ggshell.plurals import counted

Obey = Callable[[Path, str, str], bool]
"""Runs statements in a home: the home, a name for messages, and the text. Returns whether all succeeded."""
DONE, FAILED = 0, 1
_STEPS: Final = {
    "check": "find what would prevent the move, without changing anything",
    "prepare": "begin to capture changes in the source, and close the target to clients",
    "load": "copy definitions and rows in parallel",
    "follow": "apply the changes since then, and replicate in the other direction too",
    "verify": "compare rows and objects while changes flow",
    "switch": "let clients write in the target instead of the source",
    "back": "let clients write in the source again",
    "status": "show the progress of the move",
    "finish": "remove everything that the move needed",
}


def main(arguments: Sequence[str], *, home: Path | None, obey: Obey) -> int:
    """Run one step and return the exit code. ``home``: the home without ``--home``. Raises UsageError."""
    options = _parser().parse_args(arguments)
    root = Path(options.home or home or ".").resolve()
    try:
        return _run(options, Home(root), obey)
    except GgsError as error:
        if isinstance(error, UsageError):
            raise
        _say(f"ERROR: {error.code}  {error}")
        return FAILED


def _run(options: argparse.Namespace, home: Home, obey: Obey) -> int:
    clock = SystemClock()
    means = steps.Means(home, _obeying(home, obey), _say, Drain(home, clock, pause, _say))
    match options.step:
        case "check":
            return FAILED if _check(home, _request(home, options), options.accept) else DONE
        case "prepare":
            request = _request(home, options)
            if MoveFile(home.root).find() is None:
                _require_possible(home, request, options.accept)
            steps.prepare(means, request)
        case "load":
            steps.load(means)
        case "follow":
            steps.follow(means)
        case "verify":
            steps.verify(means)
        case "switch" | "back":
            direction = Direction.FORWARD if options.step == "switch" else Direction.BACK
            done = switch(means, clock, direction, limit=options.limit)
            if done is None:
                return DONE
            _say(f"Ended {counted(done.ended, 'session')} of clients, set {counted(done.sequences, 'sequence')}.")
        case "status":
            _status(home)
        case _:
            steps.finish(means)
    if options.step in _NEXT:
        _say(_NEXT[options.step])
    return DONE


_NEXT: Final = {
    "prepare": "Next: ggshell move load",
    "load": "Next: ggshell move follow",
    "follow": "Next: ggshell move verify, then ggshell move switch",
    "verify": "Next: ggshell move switch",
    "switch": "Next: connect the applications to the target. ggshell move back returns; ggshell move finish ends the move.",
    "back": "Next: connect the applications to the source again. ggshell move switch repeats the switch.",
    "finish": "The move has ended.",
}


def _require_possible(home: Home, request: MoveRequest, accepted: Sequence[str]) -> None:
    """Check before the first change. Raises StateError if an error is found that is not accepted."""
    if errors := _check(home, request, accepted):
        raise StateError(
            f"the check found {counted(errors, 'error')}; nothing has been changed",
            code="GGS-01264",
            hint="correct the cause, or accept an error: --accept CODE,…",
        )


def _check(home: Home, request: MoveRequest, accepted: Sequence[str]) -> int:
    """Show the findings and return the number of errors that are not accepted."""
    findings = [
        replace(each, severity=FindingSeverity.WARNING) if each.code in accepted else each
        for each in check_aliases(home, request)
    ]
    for each in findings:
        subject = "" if each.text.startswith((f"{each.subject}: ", f"{each.subject} ")) else f"{each.subject}: "
        _say(f"{each.severity.upper():<12} {each.code}  {subject}{each.text}")
        if each.action:
            _say(f"{'':12} {each.action}")
        for line in each.script.splitlines():
            _say(f"{'':16} {line}")
    errors = sum(each.severity is FindingSeverity.ERROR for each in findings)
    _say(f"{counted(errors, 'error')}, {counted(len(findings) - errors, 'other finding')}.")
    return errors


def _request(home: Home, options: argparse.Namespace) -> MoveRequest:
    """Return the request of the options, or the one that was prepared. Raises UsageError without either."""
    schemas = tuple(part for part in (options.schemas or "").split(",") if part)
    found = MoveFile(home.root).find()
    groups = options.groups or (found.request.groups if found else GROUPS)
    if options.source and options.target:
        return MoveRequest(options.source, options.target, schemas, options.jobs, groups)
    if found is None:
        raise UsageError("the databases are not known", hint="use --from ALIAS --to ALIAS")
    return found.request


def _status(home: Home) -> None:
    state = MoveFile(home.root).get()
    request = state.request
    _say(f"Move from {request.source} to {request.target}: schemas {', '.join(request.schemas)}.")
    _say(f"Complete: {', '.join(state.done) or 'nothing'}.")
    _say(f"Clients write in {pair_of(request, state.live).source}.")
    for each in state.switches:
        pair = pair_of(request, each.direction)
        _say(f"{local_text(each.time)}  {pair.source} to {pair.target}, downtime {each.seconds:.3f} seconds")
    if state.closing is not None:
        _say("A switch has begun and has not ended: run ggshell move switch or back again.")


def _obeying(home: Home, obey: Obey) -> Callable[[str, str], bool]:
    """Print a script, keep it in the home, and run it."""

    def run(step: str, script: str) -> bool:
        path = home.root / "dirsql" / f"move_{step}.oby"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script, encoding="utf-8")
        _say(f"Running {path}:")
        _say("".join(f"    {line}\n" for line in script.splitlines()))
        return obey(home.root, str(path), script)

    return run


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ggshell move",
        description="Move a PostgreSQL database to another server. docs/move-a-database.md describes the steps.",
    )
    actions = parser.add_subparsers(required=True, dest="step", metavar=" | ".join(_STEPS))
    home = argparse.ArgumentParser(add_help=False)
    home.add_argument(
        "--home", help="home directory (default: GGSHELL_HOME, the configuration file or the current folder)"
    )
    for name, text in _STEPS.items():
        each = actions.add_parser(name, parents=[home], help=text, description=f"{text[0].upper()}{text[1:]}.")
        if name in ("check", "prepare"):
            _add_request(each)
        if name in ("switch", "back"):
            each.add_argument(
                "--limit",
                type=float,
                default=DRAIN_SECONDS,
                metavar="SECONDS",
                help=f"maximum time for the last changes to arrive (default: {DRAIN_SECONDS:g})",
            )
    return parser


def _groups(text: str) -> str:
    """Return how group names begin. Raises ArgumentTypeError for what cannot be part of a name."""
    if not re.fullmatch(f"[A-Za-z][A-Za-z0-9]{{0,{LONGEST_GROUPS - 1}}}", text):
        raise argparse.ArgumentTypeError(
            f"{text} is not a valid name: a letter, then up to {LONGEST_GROUPS - 1} letters and digits"
        )
    return text.upper()


def _add_request(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="source", metavar="ALIAS", help="alias of the source in the credential store")
    parser.add_argument("--to", dest="target", metavar="ALIAS", help="alias of the target")
    parser.add_argument("--schemas", metavar="NAME,...", help="schemas to move (default: all)")
    parser.add_argument(
        "--accept",
        type=lambda text: tuple(part.strip().upper() for part in text.split(",")),
        default=(),
        metavar="CODE,...",
        help="errors of the check that do not prevent this move, such as GGS-01034",
    )
    parser.add_argument(
        "--groups",
        type=_groups,
        metavar="NAME",
        help=f"how the names of the groups begin, if another database of the server is being moved (default: {GROUPS})",
    )
    parser.add_argument("--jobs", type=int, default=4, help="parallel jobs of the load (default: 4)")
