"""The general commands (ENV, SHOW, FILES, HELP, HISTORY, FLOAT, X, EXIT) and the time commands (TIME, CTIME …)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS, from_datetime, to_datetime
from ggshell.durations import MICROSECONDS, days_text
from ggshell.errors import NotFoundError, UsageError
from ggshell.language import help as manual
from ggshell.language import pages
from ggshell.logdump.answers import Answer, Facts, FilterList, Lines, RecordTypes
from ggshell.logdump.display import Level, stamp
from ggshell.logdump.registry import action
from ggshell.logdump.state import LogdumpSession
from ggshell.system import run_command
from ggshell.trail import iotypes

_PRINTF = re.compile(r"[^%]{0,40}%[-+ #0]{0,5}\d{0,3}(?:\.\d{1,3})?[eEfFgG][^%]{0,40}")


@action("ENV")
def environment(session: LogdumpSession) -> Iterator[Answer]:
    """Show the settings and the open file."""
    display = session.display
    history = f"{session.large.maxlen} Transactions, Records {session.record_limit}, Bytes {session.byte_limit}"
    notices = f"{session.notify} records, Scrolling {_on(session.one_line)}" if session.notify else "Off"
    detail = "Data" if display.detail is Level.MORE else display.detail.value
    yield Facts(
        (
            ("Current Volume", str(Path.cwd())),
            *_open_file(session),
            ("Display RecLen", f"{display.record_length}"),
            ("Logtrail Filter", _on(session.filters.enabled)),
            ("Show Ghdr", _on(display.ghdr)),
            ("Detail", detail),
            ("GGS Tokens", display.ggs_tokens.value),
            ("User Tokens", display.user_tokens.value),
            ("Header Tokens", display.header_tokens.value),
            ("File Header", display.file_header.value),
            ("Metadata", display.metadata.value),
            ("Trans History", history),
            ("LargeBlock I/O", "On"),
            ("Local System", f"{sys.byteorder.capitalize()} Endian"),
            *(
                [("Logtrail Data", "Little Endian/UTF-8" if session.file.ours else "by record")]
                if session.is_open
                else ()
            ),
            ("Logtrail Headers", "ASCII"),
            ("Dump", "ASCII" if display.dump else "Off"),
            ("Timeoffset", display.zone_name),
            ("Scan Notify Interval", notices),
            ("Session Log", session.log_name or "Off"),
        )
    )


def _open_file(session: LogdumpSession) -> list[tuple[str, str]]:
    if not session.is_open:
        return [("LogTrail", "*Not Open*")]
    file, walk = session.file, session.walk
    last = session.last.seen.rba if session.last is not None else walk.place
    durable = file.durable_end()
    return [
        ("LogTrail", str(file.path)),
        ("Trail Format", "New"),
        ("End of File", f"{file.size}"),
        *([("Durable End", f"{durable}")] if durable is not None else []),
        ("Current Position", f"{last}"),
        ("Next Position", f"{walk.place}{' (in reverse)' if walk.backwards else ''}"),
        ("Last Modtime", session.display.time(to_datetime(file.modified))),
    ]


def _on(value: bool) -> str:
    return "On" if value else "Off"


@action("SHOW")
def show(
    session: LogdumpSession,
    *,
    open: bool = False,  # noqa: A002 - the manual's word
    time: bool = False,
    env: bool = False,
    rectype: bool = False,
    filter: bool = False,  # noqa: A002 - the manual's word
) -> Iterator[Answer]:
    """Show the settings, the open file, the time, the operation types or the filters."""
    if rectype:
        yield RecordTypes(tuple(iotypes.NAMES.items()))
    elif filter:
        yield FilterList(session.filters)
    elif open:
        yield Lines((str(session.file.path) if session.is_open else "no trail file is open",))
    elif time:
        yield from show_time(session)
    else:
        yield from environment(session)


@action("FILES")
@action("FI")
@action("DIR")
def files(session: LogdumpSession, *, file: str = "") -> Iterator[Answer]:
    """List files by a pattern, by default the files of the open trail. Raises NotFoundError."""
    if not file:
        trail = session.file.trail if session.is_open else None
        pattern = Path(f"{trail[0].folder}/{trail[0].prefix}*" if trail is not None else "*")
    else:
        pattern = Path(file)
        pattern = pattern / "*" if pattern.is_dir() else pattern
    found = sorted(each for each in pattern.parent.glob(pattern.name) if each.is_file())
    if not found:
        raise NotFoundError(f"no file matches {pattern}")
    pairs = []
    for each in found:
        state = each.stat()
        pairs.append(
            (str(each), f"{state.st_size:>12} bytes  {session.display.time(to_datetime(state.st_mtime_ns // 1000))}")
        )
    yield Facts(tuple(pairs))


@action("HELP")
def help_(session: LogdumpSession, *, rest: str = "") -> Iterator[Answer]:
    """Show a command's manual page, or list all commands."""
    known = pages.index("logdump")
    if not rest.strip(" ;"):
        yield Lines(tuple(f"  {page.title:<20}{manual.index_line(page)}" for page in map(pages.read, known.values())))
        return
    stem = rest.strip(" ;").split()[0].lower()
    near = [path for name, path in known.items() if name == stem] or [
        path for name, path in known.items() if name.startswith(stem)
    ]
    near = near or [
        path for path in known.values() if any(line.split()[0] == stem.upper() for line in pages.read(path).syntax)
    ]
    if not near:
        raise NotFoundError(f"Logdump has no command {rest}", hint="HELP lists them")
    yield Lines(tuple(manual.plain(manual.fragments(near[:1])).splitlines()))


@action("HISTORY")
def history(session: LogdumpSession, *, n: int = 0) -> Iterator[Answer]:
    """List the commands so far, or the last ``n``."""
    every = list(enumerate(session.history, 1))
    yield Lines(tuple(f"{number:>4}> {text}" for number, text in every[-n:]))


@action("FLOAT")
def float_(session: LogdumpSession, *, float_value: str, format: str = "%f") -> Iterator[Answer]:  # noqa: A002 - the manual's word
    """Print a number in a printf format. Raises UsageError."""
    if _PRINTF.fullmatch(format) is None:
        raise UsageError(f"{format} is not a valid number format", hint="FLOAT 1.5 FORMAT %e")
    try:
        yield Lines((format % float(float_value),))
    except (ValueError, OverflowError):
        raise UsageError(f"{float_value} is not a number", hint="FLOAT 1.5 FORMAT %e") from None


@action("X")
def run(session: LogdumpSession, *, command_text: str) -> Iterator[Answer]:
    """Run an operating system command, which can use the terminal if there is one.

    Raises UsageError if such commands are switched off or the command fails."""
    if not session.shell:
        raise UsageError("system commands are disabled (--no-shell)")
    done = run_command(command_text, terminal=session.interactive)
    if done.output:
        yield Lines(tuple(done.output.splitlines()))
    if done.code:
        raise UsageError(f"the command exited with code {done.code}")


@action("EXIT")
@action("QUIT")
def leave(session: LogdumpSession) -> Iterator[Answer]:
    """End the session."""
    session.finished = True
    yield from ()


# The time commands: TIME, CTIME, COMPUTETIMESTAMP, INTERPRETTIMESTAMP, INTERPRETINTERVAL.


@action("TIME")
def show_time(session: LogdumpSession) -> Iterator[Answer]:
    """Show the current time."""
    now = to_datetime(session.clock.now())
    yield Facts((("Local", stamp(now.astimezone())), ("GMT", stamp(now))))


@action("CTIME")
def c_time(session: LogdumpSession, *, n: int) -> Iterator[Answer]:
    """Show the time for a number of seconds since 1970. Raises UsageError outside the years 1 to 9999."""
    yield Lines(_both(n * MICROSECONDS, n))


@action("INTERPRETTIMESTAMP")
def interpret_timestamp(session: LogdumpSession, *, n: int) -> Iterator[Answer]:
    """Show the time for the IO Time of a record header. Raises UsageError outside the years 1 to 9999."""
    yield Lines(_both(n - JULIAN_EPOCH_MICROSECONDS, n))


@action("COMPUTETIMESTAMP")
def compute_timestamp(session: LogdumpSession, *, time_string: str) -> Iterator[Answer]:
    """Show the Julian timestamp of a time, as record headers store it."""
    number = from_datetime(session.display.moment(time_string)) + JULIAN_EPOCH_MICROSECONDS
    yield Lines((f"{time_string} is JulianTimestamp {number}",))


@action("INTERPRETINTERVAL")
def interpret_interval(session: LogdumpSession, *, n: int) -> Iterator[Answer]:
    """Show a number of microseconds as days, hours, minutes, seconds, milliseconds and microseconds."""
    yield Lines((f"Interval {n} is {days_text(n)}",))


def _both(microseconds: int, given: int) -> tuple[str, str]:
    try:
        moment: datetime = to_datetime(microseconds)
        return f"{stamp(moment.astimezone(UTC))} GMT", f"{stamp(moment.astimezone())} LCT"
    except (OverflowError, ValueError, OSError):
        raise UsageError(f"{given} is outside the years 1 to 9999") from None
