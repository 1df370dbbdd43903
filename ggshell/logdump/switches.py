"""GHDR, DETAIL, RECLEN and the other switches; FILTER; LOG, TIMEOFFSET, TRANSHIST."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from ggshell.clock import to_datetime
from ggshell.errors import NotFoundError, StatementError, UsageError
from ggshell.logdump.answers import Answer, Facts, Lines
from ggshell.logdump.display import Level, zone_of
from ggshell.logdump.filters import make
from ggshell.logdump.registry import action
from ggshell.logdump.session import Session

SUBJECTS = frozenset(
    (
        *(
            "RECTYPE",
            "FILENAME",
            "ANSINAME",
            "RBA",
            "TRANSID",
            "IOTIME",
            "STARTTIME",
            "ENDTIME",
            "STRING",
            "HEX",
            "CSN",
        ),
        *("LOGCSN", "SYSKEY", "SYSKEYLEN", "TRANSIND", "UNDOFLAG", "RECLEN", "AUDITRBA", "AUDITPOS", "GGSTOKEN"),
        *("USERTOKEN", "INT16", "INT32", "INT64", "PROCESS"),
    )
)
_SPLIT = re.compile(r";(?=(?:[^'\"]|'[^']*'|\"[^\"]*\")*$)")


@action("DETAIL", "detail")
@action("FILEHEADER", "file_header")
@action("GGSTOKEN", "ggs_tokens")
@action("HEADERTOKEN", "header_tokens")
@action("USERTOKEN", "user_tokens")
@action("METADATA", "metadata")
def switch(
    session: Session, name: str, *, on: bool = False, off: bool = False, detail: bool = False, data: bool = False
) -> Iterator[Answer]:
    """Show more or less of each record; nothing is said."""
    setattr(session.display, name, Level.MORE if detail or data else Level.ON if on and not off else Level.OFF)
    yield from ()


@action("GHDR", "ghdr")
@action("DUMP", "dump")
def flag(session: Session, name: str, *, on: bool = False, off: bool = False) -> Iterator[Answer]:
    """The same of what is shown or not."""
    setattr(session.display, name, on and not off)
    yield from ()


@action("RECLEN")
def record_length(session: Session, *, n: int | None = None) -> Iterator[Answer]:
    """How many bytes of a record are shown."""
    if n is not None:
        session.display.record_length = n
        yield Lines((f"Reclen set to {n} ",))
    else:
        yield Lines((f"Reclen is {session.display.record_length} ",))


@action("TIMEOFFSET")
def time_offset(session: Session, *, local: bool = False, gmt: str | bool = "") -> Iterator[Answer]:
    """The zone of times."""
    session.display.zone = None if local else zone_of(gmt if isinstance(gmt, str) else "")
    yield from ()


@action("LOG")
@action("LOG TO")
def log_to(session: Session, *, file: str) -> Iterator[Answer]:
    """Keep what is shown in a file too."""
    session.log = Path(file).absolute()
    yield Lines((f"--- Session log {file} opened {session.display.time(to_datetime(session.clock.now()))} ---",))


@action("LOG STOP")
def log_stop(session: Session) -> Iterator[Answer]:
    """No longer."""
    session.log = None
    yield from ()


@action("DECRYPT")
def decrypt(session: Session, *, on: bool = False, off: bool = False, keyname: str = "") -> Iterator[Answer]:
    """Trails are not encrypted yet, so there is nothing to decrypt.  Raises UsageError when it is asked for."""
    if on:
        raise UsageError("no trail of this version is encrypted", hint="DECRYPT OFF")
    yield from ()


@action("CD")
def change_directory(session: Session, *, directory: str) -> Iterator[Answer]:
    """Another folder for names of files.  Raises NotFoundError."""
    try:
        os.chdir(directory)
    except OSError as error:
        raise NotFoundError(f"cannot go to {directory}: {error.strerror}") from None
    yield from ()


@action("TRANSHIST")
def transaction_history(session: Session, *, n: int | None = None) -> Iterator[Answer]:
    """How many large transactions COUNT keeps; alone they are listed."""
    if n is not None:
        session.large = deque(session.large, maxlen=n)
        return
    pairs = [(each.xid or "?", f"{each.records} records, {each.size} bytes, RBA {each.rba}") for each in session.large]
    yield Facts(tuple(pairs)) if pairs else Lines(("No large transaction is known; COUNT finds them.",))


@action("TRANSRECLIMIT", "record_limit")
@action("TRANSBYTELIMIT", "byte_limit")
def transaction_limit(session: Session, name: str, *, n: int) -> Iterator[Answer]:
    """From how many records or bytes on a transaction is large."""
    setattr(session, name, n)
    yield from ()


@action("FILTER ENABLE", True)
@action("FILTER ON", True)
@action("FILTER DISABLE", False)
@action("FILTER OFF", False)
def filter_on(session: Session, on: bool) -> Iterator[Answer]:
    """Whether filters count."""
    session.filters.enabled = on
    yield from ()


@action("FILTER CLEAR")
def filter_clear(session: Session, *, n: int | None = None, all: bool = False) -> Iterator[Answer]:  # noqa: A002 - the manual's word
    """Remove one filter, or all."""
    if n is None or all:
        session.filters.include.filters.clear()
        session.filters.exclude.filters.clear()
    else:
        session.filters.remove(n)
    yield from ()


@action("FILTER")
def filter_add(
    session: Session, *, include: bool = False, exclude: bool = False, match: str = "", **conditions: str
) -> Iterator[Answer]:
    """Add conditions, or say how those of a side work together."""
    side = session.filters.exclude if exclude else session.filters.include
    if match:
        sides = [side] if include or exclude else [session.filters.include, session.filters.exclude]
        for each in sides:
            each.match_all = match.upper() == "ALL"
        return
    made = []
    for subject, text in conditions.items():
        first, *more = _SPLIT.split(text)
        made.append(make(subject, first, session.display.moment))
        for part in more:
            word, _, rest = part.strip().partition(" ")
            if not word:
                continue
            if word.upper() not in SUBJECTS:
                raise StatementError(f"FILTER does not know {word}", hint=f"one of {', '.join(sorted(SUBJECTS))}")
            made.append(make(word, rest, session.display.moment))
    side.filters += made
    session.filters.enabled = True
    yield from ()
