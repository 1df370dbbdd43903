"""Resolves the sources of a lag report: converts the texts of a statement to sources of heartbeats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ggshell.cli.session import Session
from ggshell.cli.trail_queries import home_keys
from ggshell.errors import NotFoundError, StateError

if TYPE_CHECKING:
    from ggshell.connectors.logged_in import LoggedIn
    from ggshell.query.questions.heartbeats import HeartbeatSource

_HINT = "an alias of the credential store, a folder with a lag archive (dirlag), a home, or a trail"


@contextmanager
def sources_of(session: Session, texts: Sequence[str], since: int) -> Iterator[list[HeartbeatSource]]:
    """Yield the sources that the texts name; sources that hold the same heartbeats are merged.

    Raises NotFoundError for a text that names no source, StateError if no text is given and there is no default source.
    """
    from ggshell.query.questions.heartbeats import merged

    found = _found(session, texts, since)
    session.home.ensure()
    with TemporaryDirectory(prefix="lag-", dir=session.home.root / "dirtmp") as folder:
        yield merged(found, Path(folder))


def _found(session: Session, texts: Sequence[str], since: int) -> list[HeartbeatSource]:
    """Return each source; without texts, this home's archive, or else the database of the login."""
    if texts:
        once = dict.fromkeys(texts)  # a source that is named twice counts once
        return [_source(session, number, text, since) for number, text in enumerate(once, 1)]
    from ggshell.monitoring.lag_archive import lag_folder
    from ggshell.query.questions.heartbeats import archive

    folder = lag_folder(session.home)
    if next(folder.glob("day=*/*.parquet"), None) is not None:
        return [archive(1, "this home", folder)]
    if session.login is None:
        raise StateError(
            "this home has no lag archive, and you are not logged in to a database",
            code="GGS-00204",
            hint="DBLOGIN …, FROM source, or LAGARCHIVE in a Replicat's parameters",
        )
    return [_of_database(session, 1, session.login.database, session.login, since)]


def _source(session: Session, number: int, text: str, since: int) -> HeartbeatSource:
    from ggshell.query.questions.heartbeats import archive

    path = session.home.resolve(text)
    for folder in (path, path / "dirlag"):
        if next(folder.glob("day=*"), None) is not None:
            return archive(number, text, folder)
    if _is_trail(path):
        return _of_trail(session, number, text, path)
    login = _logged_in(session, text)
    try:
        return _of_database(session, number, text, login, since)
    finally:
        login.close()


def _is_trail(path: Path) -> bool:
    from ggshell.query.paths import trail_files

    try:
        return bool(trail_files(str(path)))
    except NotFoundError:
        return False


def _of_trail(session: Session, number: int, text: str, path: Path) -> HeartbeatSource:
    from ggshell.pipeline.heartbeat.row import layout_of
    from ggshell.query.paths import trail_files
    from ggshell.query.questions.heartbeats import in_trail
    from ggshell.query.splits import metadata_records

    files = trail_files(str(path))
    definitions = {definition for file in files for _, _, definition in metadata_records(Path(file))}
    tables = sorted({each.name for each in definitions if layout_of(each) is not None})
    if not tables:
        raise NotFoundError(f"{text} contains no heartbeats", hint="ADD HEARTBEATTABLE in the source of its Extract")
    return in_trail(number, text, files, tables, session.engines, home_keys(session))


def _of_database(session: Session, number: int, name: str, login: LoggedIn, since: int) -> HeartbeatSource:
    from ggshell.groups.heartbeat_settings import required_names
    from ggshell.query.questions.heartbeats import ASKED, history

    tables = login.heartbeat_tables(required_names(session.home))
    tables.require()
    return history(number, name, tables.history(ASKED, since))


def _logged_in(session: Session, alias: str) -> LoggedIn:
    """Log in with an alias. Raises NotFoundError, DatabaseError."""
    from ggshell.cli.commands.database import login_of_alias

    try:
        return login_of_alias(session, alias)
    except NotFoundError as error:
        raise NotFoundError(
            f"{alias} has no heartbeats: it is not an alias, archive, home or trail", hint=_HINT
        ) from error
