"""Commands that work in a database: DBLOGIN, REGISTER, TRANDATA, CHECKPOINTTABLE."""

from __future__ import annotations

from typing import Any

from ggshell.errors import UsageError
from ggshell.params import load_globals
from ggshell.shell.registry import command
from ggshell.shell.results import Result, joined, message
from ggshell.shell.session import Session
from ggshell.store.catalog import Catalog
from ggshell.store.credential import DEFAULT_DOMAIN, CredentialStore
from ggshell.types import TableName

_TRANDATA_COLUMNS = ("table", "identity", "key", "published")


def _login(session: Session, conninfo: str) -> Result:
    from ggshell.databases.postgres.session import connect, database_facts, execute

    with connect(conninfo, program="ggshell") as connection:
        session.database, session.user, _ = database_facts(connection)
        charset = execute(connection, "SHOW server_encoding")[0][0]
    session.conninfo = conninfo
    name = "UTF-8" if charset == "UTF8" else charset
    lines = [
        f"OGG-03036 Database character set identified as {name}. Locale: root.",
        "",
        "OGG-03037 Session character set identified as UTF-8.",
        "",
        "Successfully logged into database.",
    ]
    return Result("\n".join(lines), ("database", "user"), ((session.database, session.user),))


@command("DBLOGIN USERIDALIAS")
def dblogin_alias(session: Session, *, alias: str, domain: str = DEFAULT_DOMAIN) -> Result:
    from ggshell.databases.postgres.session import connection_info

    login = CredentialStore(session.home).resolve(alias, domain)
    return _login(session, connection_info(login.userid, login.password))


@command("DBLOGIN USERID")
def dblogin_user(session: Session, *, userid: str, password: str | None = None) -> Result:
    from ggshell.databases.postgres.session import connection_info

    return _login(session, connection_info(userid, password))


@command("DBLOGIN SOURCEDB")
def dblogin_source(
    session: Session,
    *,
    source: str,
    userid: str = "",
    password: str | None = None,
    useridalias: str = "",
    domain: str = DEFAULT_DOMAIN,
) -> Result:
    from ggshell.databases.postgres.session import connection_info

    if useridalias:
        login = CredentialStore(session.home).resolve(useridalias, domain)
        userid, password = login.userid, login.password
    return _login(session, connection_info(userid or source, password, source if userid else None))


@command("REGISTER EXTRACT")
def register_extract(session: Session, *, group_name: str, database: bool = False) -> Result:
    from ggshell.databases.postgres import slot, trandata
    from ggshell.types import format_lsn

    with session.connect() as connection:
        position = slot.register(connection, group_name)
        for owner, name in Catalog(session.home).trandata(session.database):
            if not trandata.info(connection, TableName(owner, name)).published:
                trandata.add(connection, TableName(owner, name))
    text = f"Extract {group_name.upper()} successfully registered with database at LSN {format_lsn(position)}."
    return Result(
        text, ("group", "slot", "lsn"), ((group_name.upper(), slot.slot_name(group_name), format_lsn(position)),)
    )


@command("UNREGISTER EXTRACT")
def unregister_extract(session: Session, *, group_name: str, database: bool = False) -> Result:
    from ggshell.databases.postgres import slot

    with session.connect() as connection:
        slot.unregister(connection, group_name)
    return message(f"Successfully unregistered EXTRACT {group_name.upper()} from database.")


def _tables(connection: Any, pattern: str) -> list[TableName]:
    from ggshell.databases.postgres import describe

    return describe.resolve(connection, pattern)


@command("ADD TRANDATA")
def add_trandata(
    session: Session, *, table: str, allcols: bool = False, cols: tuple[str, ...] = (), keycols: tuple[str, ...] = ()
) -> Result:
    from ggshell.databases.postgres import trandata

    results = []
    with session.connect() as connection:
        for name in _tables(connection, table):
            done = trandata.add(connection, name, keycols, all_columns=allcols)
            Catalog(session.home).save_trandata(session.database, name.owner, name.name, done.identity, done.key)
            text = f"Logging of supplemental redo log data is enabled for table {name}."
            text += f"\nReplica identity {done.identity} (was {done.before}), rows are identified by: {', '.join(done.key)}."
            results.append(Result(text, _TRANDATA_COLUMNS, ((str(name), done.identity, ", ".join(done.key), True),)))
    return joined(results)


@command("DELETE TRANDATA")
def delete_trandata(session: Session, *, table: str) -> Result:
    from ggshell.databases.postgres import trandata

    results = []
    with session.connect() as connection:
        for name in _tables(connection, table):
            trandata.delete(connection, name)
            Catalog(session.home).delete_trandata(session.database, name.owner, name.name)
            results.append(message(f"Logging of supplemental redo log data is disabled for table {name}."))
    return joined(results)


@command("INFO TRANDATA")
def info_trandata(session: Session, *, table: str) -> Result:
    from ggshell.databases.postgres import trandata

    results = []
    with session.connect() as connection:
        for name in _tables(connection, table):
            found = trandata.info(connection, name)
            word = "enabled" if found.enabled else "disabled"
            lines = [f"Logging of supplemental redo log data is {word} for table {name}."]
            if found.enabled:
                lines += ["", f"Columns supplementally logged for table {name}: {', '.join(found.key)}."]
            row = (str(name), found.identity, ", ".join(found.key), found.published)
            results.append(Result("\n".join(lines), _TRANDATA_COLUMNS, (row,)))
    return joined(results)


def _checkpoint_table(session: Session, name: str | None) -> TableName:
    text = name or load_globals(session.home.globals).checkpoint_table
    if not text:
        raise UsageError("Missing checkpoint table specification.", hint="name one, or set CHECKPOINTTABLE in GLOBALS")
    return TableName.parse(text)


@command("ADD CHECKPOINTTABLE")
def add_checkpointtable(session: Session, *, checkpoint_table: str | None = None) -> Result:
    from ggshell.databases.postgres import checkpoint_sql

    table = _checkpoint_table(session, checkpoint_table)
    with session.connect() as connection:
        checkpoint_sql.create(connection, table)
    return message(f"Successfully created checkpoint table {table}.")


@command("DELETE CHECKPOINTTABLE")
def delete_checkpointtable(session: Session, *, checkpoint_table: str | None = None, force: bool = False) -> Result:
    from ggshell.databases.postgres import checkpoint_sql

    table = _checkpoint_table(session, checkpoint_table)
    if not force:
        raise UsageError(f"checkpoint table {table} would be dropped", hint=f"DELETE CHECKPOINTTABLE {table} !")
    with session.connect() as connection:
        checkpoint_sql.drop(connection, table)
    return message(f"Successfully deleted checkpoint table {table}.")


@command("INFO CHECKPOINTTABLE")
def info_checkpointtable(session: Session, *, checkpoint_table: str | None = None) -> Result:
    from ggshell.databases.postgres import checkpoint_sql

    table = _checkpoint_table(session, checkpoint_table)
    with session.connect() as connection:
        rows = checkpoint_sql.groups(connection, table)
    lines = [f"Checkpoint table {table} exists."]
    lines += [
        f"  {group:<10}key {key:<12}CSN {csn or '(no data)'}, updated {updated}" for group, key, csn, updated in rows
    ]
    return Result("\n".join(lines), ("group", "key", "csn", "updated"), tuple(rows))


@command("CLEANUP CHECKPOINTTABLE")
def cleanup_checkpointtable(session: Session, *, checkpoint_table: str | None = None, replicat: str) -> Result:
    from ggshell.databases.postgres import checkpoint_sql

    table = _checkpoint_table(session, checkpoint_table)
    with session.connect() as connection:
        count = checkpoint_sql.cleanup(connection, table, replicat)
    return message(f"Removed {count} rows of REPLICAT {replicat.upper()} from checkpoint table {table}.")
