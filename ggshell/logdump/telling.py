"""ENV, SHOW, FILES, COMPARE, HELP, HISTORY, FLOAT, X, EXIT: what Logdump tells, and what it does besides."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

from ggshell.clock import to_datetime
from ggshell.errors import NotFoundError, UsageError
from ggshell.logdump.answers import Answer, Differences, Facts, Lines
from ggshell.logdump.registry import action
from ggshell.logdump.session import Session
from ggshell.syntax import help as manual
from ggshell.syntax import pages
from ggshell.trail import iotypes
from ggshell.trail.look import LookedFile, Seen

_HEADER_FIELDS = (
    *(
        "hdr_ind",
        "partition",
        "undo_flag",
        "before_after",
        "rec_length",
        "io_type",
        "orig_node",
        "io_time",
        "audit_pos",
    ),
    *(
        "audit_rba",
        "trans_ind",
        "format_type",
        "syskey_len",
        "incomplete",
        "continued",
        "rec_count",
        "table_index",
        "name",
    ),
)


@action("ENV")
def environment(session: Session) -> Iterator[Answer]:
    """The settings and the open file."""
    display = session.display
    pairs = [("Current Volume", str(Path.cwd()))]
    if session.is_open:
        file, walk = session.file, session.walk
        last = session.last.seen.rba if session.last is not None else walk.place
        pairs += [
            ("LogTrail", str(file.path)),
            ("Trail Format", "New"),
            ("End of File", f"{file.size}"),
            ("Current Position", f"{last}"),
            ("Next Position", f"{walk.place}{' (in reverse)' if walk.backwards else ''}"),
            ("Last Modtime", display.time(to_datetime(file.modified))),
        ]
    else:
        pairs += [("LogTrail", "*Not Open*")]
    pairs += [
        ("Display RecLen", f"{display.record_length}"),
        ("Logtrail Filter", _on(session.filters.enabled)),
        ("Show Ghdr", _on(display.ghdr)),
        ("Detail", display.detail.value),
        ("GGS Tokens", display.ggs_tokens.value),
        ("User Tokens", display.user_tokens.value),
        ("Header Tokens", display.header_tokens.value),
        ("File Header", display.file_header.value),
        ("Metadata", display.metadata.value),
        (
            "Trans History",
            f"{session.large.maxlen} Transactions, Records {session.record_limit}, Bytes {session.byte_limit}",
        ),
        ("Local System", "Little Endian"),
        ("Logtrail Data", "Little Endian/UTF-8"),
        ("Dump", _on(display.dump)),
        ("Timeoffset", display.zone_name),
    ]
    yield Facts(tuple(pairs))


def _on(value: bool) -> str:
    return "On" if value else "Off"


@action("SHOW")
def show(
    session: Session,
    *,
    open: bool = False,  # noqa: A002 - the manual's word
    time: bool = False,
    env: bool = False,
    rectype: bool = False,
    filter: bool = False,  # noqa: A002 - the manual's word
) -> Iterator[Answer]:
    """Settings, the open file, times, operation types, filters."""
    if rectype:
        yield Lines(tuple(f"{number:>4} - {name}" for number, name in iotypes.NAMES.items()))
    elif filter:
        yield from show_filters(session)
    elif open:
        yield Lines((str(session.file.path) if session.is_open else "no trail file is open",))
    elif time:
        now = to_datetime(session.clock.now())
        yield Facts(
            (("Local", f"{now.astimezone():%Y/%m/%d %H:%M:%S}"), ("GMT", f"{now.astimezone(UTC):%Y/%m/%d %H:%M:%S}"))
        )
    else:
        yield from environment(session)


@action("FILTER SHOW")
def show_filters(session: Session) -> Iterator[Answer]:
    """The filters of both sides, numbered."""
    filters = session.filters
    lines = [f"Data filters are {'ENABLED' if filters.enabled else 'DISABLED'}"]
    number = 0
    for name, side in (("Include", filters.include), ("Exclude", filters.exclude)):
        if side.filters or name == "Include":
            lines.append(f"{name}  Match {'ALL' if side.match_all else 'ANY'}")
        for each in side.filters:
            number += 1
            lines.append(f"  {number:>2} {each.subject.capitalize():<11}: {each.text}")
    yield Lines(tuple(lines))


@action("FILES")
@action("FI")
@action("DIR")
def files(session: Session, *, file: str = "") -> Iterator[Answer]:
    """Files by a pattern; those beside the open one without it.  Raises NotFoundError."""
    if not file:
        trail = session.file.trail if session.is_open else None
        pattern = Path(f"{trail[0].folder}/{trail[0].prefix}*" if trail is not None else "*")
    else:
        pattern = Path(file)
        pattern = pattern / "*" if pattern.is_dir() else pattern
    found = sorted(each for each in pattern.parent.glob(pattern.name) if each.is_file())
    if not found:
        raise NotFoundError(f"no file is called {pattern}")
    pairs = []
    for each in found:
        state = each.stat()
        pairs.append(
            (str(each), f"{state.st_size:>12} bytes  {session.display.time(to_datetime(state.st_mtime_ns // 1000))}")
        )
    yield Facts(tuple(pairs))


@action("COMPARE")
@action("DIFF")
def compare(session: Session, *, first_rba: str, second_rba: str) -> Iterator[Answer]:
    """In what two records differ."""
    one, two = (_good(session.file, text) for text in (first_rba, second_rba))
    left, right = _values(one), _values(two)
    found = [(name, left.get(name, ""), right.get(name, "")) for name in dict.fromkeys((*left, *right))]
    yield Differences(one.rba, two.rba, tuple(each for each in found if each[1] != each[2]))


def _good(file: LookedFile, text: str) -> Seen:
    """Raises UsageError when no record stands there that can be taken apart."""
    if not text.isdigit():
        raise UsageError(f"{text} is no RBA", hint="COMPARE 1284, 1467")
    seen = file.at(int(text))
    if seen is None or seen.record is None:
        expected = f": expected {seen.fault}" if seen is not None and seen.fault else ""
        raise UsageError(f"no record begins at RBA {text} of {file.path}{expected}", hint="SCANFORHEADER finds one")
    return seen


def _values(seen: Seen) -> dict[str, str]:
    record = seen.record
    if record is None:
        return {}
    found = {name: str(getattr(record, name)) for name in _HEADER_FIELDS}
    try:
        images = (("before", record.before_columns()), ("column", record.columns()))
        for name, columns in images:
            found |= {f"{name} {index}": "NULL" if value is None else value.hex(" ", 2) for index, value in columns}
    except Exception as error:  # noqa: BLE001 - a data area that is no image is compared as bytes
        found["data"] = f"{record.data.hex(' ', 2)} ({error})" if dataclasses.is_dataclass(record) else ""
    found |= {f"token {name}": value.decode(errors="replace") for name, value in record.tokens.items()}
    if record.user_tokens:
        found["user tokens"] = record.user_tokens.hex(" ", 2)
    return found


@action("HELP")
def help_(session: Session, *, rest: str = "") -> Iterator[Answer]:
    """A command's page, or all commands."""
    known = pages.index("logdump")
    if not rest.strip(" ;"):
        yield Lines(tuple(f"  {page.title:<20}{page.summary}" for page in map(pages.read, known.values())))
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
def history(session: Session) -> Iterator[Answer]:
    """The commands so far."""
    yield Lines(tuple(f"{number:>4}> {text}" for number, text in enumerate(session.history, 1)))


@action("FLOAT")
def float_(session: Session, *, float_value: str, format: str = "%f") -> Iterator[Answer]:  # noqa: A002 - the manual's word
    """A number as printf shows it.  Raises UsageError."""
    try:
        yield Lines((format % float(float_value),))
    except (ValueError, TypeError):
        raise UsageError(f"{float_value} cannot be shown as {format}", hint="FLOAT 1.5 FORMAT %e") from None


@action("X")
def run(session: Session, *, command_text: str) -> Iterator[Answer]:
    """A command of the system.  Raises UsageError where these are off."""
    if not session.shell:
        raise UsageError("commands of the system are off (--no-shell)")
    done = subprocess.run(command_text, shell=True, capture_output=True, text=True, check=False)  # noqa: S602 - that is what X is for
    yield Lines(tuple((done.stdout + done.stderr).splitlines()))


@action("EXIT")
@action("QUIT")
def leave(session: Session) -> Iterator[Answer]:
    """The end."""
    session.finished = True
    yield from ()
