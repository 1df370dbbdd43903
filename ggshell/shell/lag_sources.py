"""Where the heartbeats of a lag report come from: texts of a statement as sources of the lag pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ggshell.errors import NotFoundError, StateError
from ggshell.shell.asking import home_keys
from ggshell.shell.session import Session

if TYPE_CHECKING:
    from ggshell.spark.questions.beats import Source

_HINT = "an alias of the credential store, a folder with a lag archive (dirlag), a home, or a trail"


def sources_of(session: Session, texts: Sequence[str], since: int) -> list[Source]:
    """The sources that texts mean; without any this home's archive, or the database of the login.

    Raises NotFoundError for a text that means nothing, StateError when nothing is named and there is nothing.
    """
    if texts:
        once = dict.fromkeys(texts)  # what is named twice counts once
        return [_source(session, number, text, since) for number, text in enumerate(once, 1)]
    from ggshell.process.lag_archive import lag_folder
    from ggshell.spark.questions.beats import archive

    folder = lag_folder(session.home)
    if next(folder.glob("day=*/*.parquet"), None) is not None:
        return [archive(1, "this home", folder)]
    if session.login is None:
        raise StateError(
            "this home has no lag archive, and no database is logged in to",
            code="GGS-00204",
            hint="DBLOGIN …, FROM source, or LAGARCHIVE in a Replicat's parameters",
        )
    return [_of_database(session, 1, session.login.database, session.connection(), since)]


def _source(session: Session, number: int, text: str, since: int) -> Source:
    from ggshell.spark.questions.beats import archive

    path = session.home.resolve(text)
    for folder in (path, path / "dirlag"):
        if next(folder.glob("day=*"), None) is not None:
            return archive(number, text, folder)
    if _is_trail(path):
        return _of_trail(session, number, text, path)
    connection = _connect(session, text)
    try:
        return _of_database(session, number, text, connection, since)
    finally:
        connection.close()


def _is_trail(path: Path) -> bool:
    from ggshell.spark.paths import trail_files

    try:
        return bool(trail_files(str(path)))
    except NotFoundError:
        return False


def _of_trail(session: Session, number: int, text: str, path: Path) -> Source:
    from ggshell.heartbeat.row import layout_of
    from ggshell.spark.paths import trail_files
    from ggshell.spark.questions.beats import in_trail
    from ggshell.spark.splits import metadata_records

    files = trail_files(str(path))
    definitions = {definition for file in files for _, _, definition in metadata_records(Path(file))}
    tables = sorted({each.name for each in definitions if layout_of(each) is not None})
    if not tables:
        raise NotFoundError(f"{text} carries no heartbeats", hint="ADD HEARTBEATTABLE in the source of its Extract")
    return in_trail(number, text, files, tables, session.engines, home_keys(session))


def _of_database(session: Session, number: int, name: str, connection: Any, since: int) -> Source:
    from ggshell.databases.postgres import heartbeat, heartbeat_rows
    from ggshell.shell.commands.heartbeat import names_of
    from ggshell.spark.questions.beats import history

    names = names_of(session)
    heartbeat.require(connection, names)
    return history(number, name, heartbeat_rows.read_history(connection, names, since))


def _connect(session: Session, alias: str) -> Any:
    from ggshell.databases.postgres.session import connect
    from ggshell.shell.commands.database import DEFAULT_DOMAIN
    from ggshell.store.credential import CredentialStore

    try:
        found = CredentialStore(session.home).resolve(alias, DEFAULT_DOMAIN)
    except NotFoundError as error:
        raise NotFoundError(f"{alias} has no heartbeats: it is no alias, archive, home or trail", hint=_HINT) from error
    from ggshell.databases.postgres.session import connection_info

    return connect(connection_info(found.userid, found.password))
