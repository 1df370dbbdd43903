"""The settings commands (GHDR, DETAIL, RECLEN, LOG, TRANSHIST and others): what is shown, and where it is logged."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from ggshell.cipher import Key
from ggshell.clock import to_datetime
from ggshell.errors import NotFoundError, StateError
from ggshell.home.home import Home
from ggshell.home.wallet import Wallet
from ggshell.logdump.answers import Answer, LargeTransactions, Lines
from ggshell.logdump.display import Level, zone_of
from ggshell.logdump.registry import action
from ggshell.logdump.state import LogdumpSession
from ggshell.parameters.loading import load_globals


@action("DETAIL", "DETAIL", "detail")
@action("FILEHEADER", "FILEHEADER", "file_header")
@action("GGSTOKEN", "GGSTOKEN", "ggs_tokens")
@action("HEADERTOKEN", "HEADERTOKEN", "header_tokens")
@action("USERTOKEN", "USERTOKEN", "user_tokens")
@action("METADATA", "METADATA", "metadata")
def switch(
    session: LogdumpSession,
    word: str,
    name: str,
    *,
    on: bool = False,
    off: bool = False,
    detail: bool = False,
    data: bool = False,
) -> Iterator[Answer]:
    """Set how much of each record is shown, without output; without arguments show the setting."""
    if not (on or off or detail or data):
        yield Lines((f"{word} is {getattr(session.display, name).value}",))
    else:
        setattr(session.display, name, Level.OFF if off else Level.MORE if detail or data else Level.ON)


@action("METADATA DETAIL")
def metadata_detail(
    session: LogdumpSession, *, on: bool = False, off: bool = False, data: bool = False
) -> Iterator[Answer]:
    """Show metadata records with every column, or skip them."""
    return switch(session, "METADATA", "metadata", off=off, detail=on or data)


@action("GHDR", "GHDR", "ghdr")
@action("METADATA SQLFORMAT", "METADATA SQLFORMAT", "sql_format")
def flag(session: LogdumpSession, word: str, name: str, *, on: bool = False, off: bool = False) -> Iterator[Answer]:
    """Switch a part of the display on or off; without arguments show the setting."""
    if on or off:
        setattr(session.display, name, on)
    else:
        yield Lines((f"{word} is {'On' if getattr(session.display, name) else 'Off'}",))


@action("RECLEN")
def record_length(session: LogdumpSession, *, n: int | None = None) -> Iterator[Answer]:
    """Set or show how many bytes of a record are shown."""
    if n is not None:
        session.display.record_length = n
        yield Lines((f"Reclen set to {n} ",))
    else:
        yield Lines((f"Reclen is {session.display.record_length} ",))


@action("TIMEOFFSET")
def time_offset(session: LogdumpSession, *, local: bool = False, gmt: str | bool = "") -> Iterator[Answer]:
    """Set the time zone of displayed times."""
    session.display.zone = None if local else zone_of(gmt if isinstance(gmt, str) else "")
    yield from ()


@action("LOG")
@action("LOG TO")
@action("OUT")
@action("OUT TO")
def log_to(session: LogdumpSession, *, file: str = "") -> Iterator[Answer]:
    """Write all output to a log file too; without an argument show whether there is one."""
    if file:
        session.start_log(Path(file).absolute())
        yield Lines((f"--- Session log {file} opened {session.display.time(to_datetime(session.clock.now()))} ---",))
    else:
        yield Lines((f"LOG is {f'On, to {session.log_name}' if session.log_name else 'Off'}",))


@action("LOG STOP")
@action("OUT STOP")
def log_stop(session: LogdumpSession) -> Iterator[Answer]:
    """Stop the log."""
    session.stop_log()
    yield from ()


@action("WRITELOG")
def write_log(session: LogdumpSession, *, text: str) -> Iterator[Answer]:
    """Write a text to the log only. Raises StateError if there is no log."""
    if not session.log_name:
        raise StateError("no log is kept", hint="LOG TO file")
    session.write_log(f"{text}\n")
    yield from ()


@action("NOTIFY")
@action("NOTIFYINTERVAL")
def notify(session: LogdumpSession, *, n: int | None = None) -> Iterator[Answer]:
    """Set or show after how many records COUNT reports its position."""
    if n is not None:
        session.notify = n
    else:
        yield Lines((f"NOTIFY is {f'{session.notify} records' if session.notify else 'Off'}",))


@action("SCANSCROLLING")
def scan_scrolling(session: LogdumpSession, *, on: bool = False, off: bool = False) -> Iterator[Answer]:
    """Set or show whether the position reports of COUNT overwrite one line."""
    if on or off:
        session.one_line = on
    else:
        yield Lines((f"SCANSCROLLING is {'On' if session.one_line else 'Off'}",))


@action("DECRYPT")
def decrypt(session: LogdumpSession, *, on: bool = False, off: bool = False, keyname: str = "") -> Iterator[Answer]:
    """Decrypt rows with keys from the home's wallet, or stop it. Raises NotFoundError, TrailError for a wrong key."""
    home = Home(session.home or Path(os.environ.get("GGSHELL_HOME") or "."))

    def keys(name: str, version: int) -> Sequence[Key]:
        found = load_globals(home.globals)
        return Wallet(home, found.wallet_location, found.master_key).keys(keyname or name, version)

    session.decrypt(keys if on else None)
    yield from ()


@action("CD")
def change_directory(session: LogdumpSession, *, directory: str) -> Iterator[Answer]:
    """Change the current directory. Raises NotFoundError."""
    try:
        os.chdir(directory)
    except OSError as error:
        raise NotFoundError(f"cannot go to {directory}: {error.strerror}") from None
    yield from ()


@action("TRANSHIST")
def transaction_history(session: LogdumpSession, *, n: int | None = None) -> Iterator[Answer]:
    """Set how many large transactions COUNT keeps; without an argument list them."""
    if n is not None:
        session.large = deque(session.large, maxlen=n)
    elif session.large:
        yield LargeTransactions(tuple(session.large))
    else:
        hint = "COUNT finds them" if session.large.maxlen else "TRANSHIST n, and COUNT, find them"
        yield Lines((f"No large transaction is known; {hint}.",))


@action("TRANSRECLIMIT", "record_limit")
@action("TRANSBYTELIMIT", "byte_limit")
def transaction_limit(session: LogdumpSession, name: str, *, n: int) -> Iterator[Answer]:
    """Set the number of records or bytes from which a transaction counts as large."""
    setattr(session, name, n)
    yield from ()
