"""GHDR, DETAIL, RECLEN, LOG, TRANSHIST and the like: how much is shown, and where it is kept."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from ggshell.clock import to_datetime
from ggshell.errors import NotFoundError, StateError
from ggshell.logdump.answers import Answer, LargeTransactions, Lines
from ggshell.logdump.display import Level, zone_of
from ggshell.logdump.registry import action
from ggshell.logdump.session import Session
from ggshell.params.files import load_globals
from ggshell.store.home import Home
from ggshell.store.wallet import Wallet


@action("DETAIL", "DETAIL", "detail")
@action("FILEHEADER", "FILEHEADER", "file_header")
@action("GGSTOKEN", "GGSTOKEN", "ggs_tokens")
@action("HEADERTOKEN", "HEADERTOKEN", "header_tokens")
@action("USERTOKEN", "USERTOKEN", "user_tokens")
@action("METADATA", "METADATA", "metadata")
@action("METADATA DETAIL", "METADATA", "metadata")
def switch(
    session: Session,
    word: str,
    name: str,
    *,
    on: bool = False,
    off: bool = False,
    detail: bool = False,
    data: bool = False,
) -> Iterator[Answer]:
    """Show more or less of each record; nothing is said.  Alone it says how it is."""
    if not (on or off or detail or data):
        yield Lines((f"{word} is {getattr(session.display, name).value}",))
    else:
        more = detail or data or (on and word == "METADATA" and not off)
        setattr(session.display, name, Level.OFF if off else Level.MORE if more else Level.ON)


@action("GHDR", "GHDR", "ghdr")
@action("METADATA SQLFORMAT", "METADATA SQLFORMAT", "sql_format")
def flag(session: Session, word: str, name: str, *, on: bool = False, off: bool = False) -> Iterator[Answer]:
    """The same of what is shown or not."""
    if on or off:
        setattr(session.display, name, on)
    else:
        yield Lines((f"{word} is {'On' if getattr(session.display, name) else 'Off'}",))


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
@action("OUT")
@action("OUT TO")
def log_to(session: Session, *, file: str = "") -> Iterator[Answer]:
    """Keep what is shown in a file too; alone it says whether."""
    if file:
        session.start_log(Path(file).absolute())
        yield Lines((f"--- Session log {file} opened {session.display.time(to_datetime(session.clock.now()))} ---",))
    else:
        yield Lines((f"LOG is {f'On, to {session.log_name}' if session.log_name else 'Off'}",))


@action("LOG STOP")
@action("OUT STOP")
def log_stop(session: Session) -> Iterator[Answer]:
    """No longer."""
    session.stop_log()
    yield from ()


@action("WRITELOG")
def write_log(session: Session, *, text: str) -> Iterator[Answer]:
    """A text for the log alone.  Raises StateError when there is none."""
    if not session.log_name:
        raise StateError("no log is kept", hint="LOG TO file")
    session.write_log(f"{text}\n")
    yield from ()


@action("NOTIFY")
@action("NOTIFYINTERVAL")
def notify(session: Session, *, n: int | None = None) -> Iterator[Answer]:
    """After how many records COUNT tells its place."""
    if n is not None:
        session.notify = n
    else:
        yield Lines((f"NOTIFY is {f'{session.notify} records' if session.notify else 'Off'}",))


@action("SCANSCROLLING")
def scan_scrolling(session: Session, *, on: bool = False, off: bool = False) -> Iterator[Answer]:
    """Whether these notices use one line."""
    if on or off:
        session.one_line = on
    else:
        yield Lines((f"SCANSCROLLING is {'On' if session.one_line else 'Off'}",))


@action("DECRYPT")
def decrypt(session: Session, *, on: bool = False, off: bool = False, keyname: str = "") -> Iterator[Answer]:
    """Show encrypted rows in the clear, with keys of the home's wallet.  Raises NotFoundError, TrailError for a wrong key."""
    home = Home(session.home or Path(os.environ.get("GGSHELL_HOME") or "."))

    def keys(name: str, version: int) -> bytes:
        found = load_globals(home.globals)
        return Wallet(home, found.wallet_location, found.master_key).secret(keyname or name, version)

    session.decrypt(keys if on else None)
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
    elif session.large:
        yield LargeTransactions(tuple(session.large))
    else:
        hint = "COUNT finds them" if session.large.maxlen else "TRANSHIST n, and COUNT, find them"
        yield Lines((f"No large transaction is known; {hint}.",))


@action("TRANSRECLIMIT", "record_limit")
@action("TRANSBYTELIMIT", "byte_limit")
def transaction_limit(session: Session, name: str, *, n: int) -> Iterator[Answer]:
    """From how many records or bytes on a transaction is large."""
    setattr(session, name, n)
    yield from ()
