"""Logins to MariaDB and MySQL: ``mysql://user:password@host:port/database?option=value``, read and written."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from ggshell.connectors.data_sources import data_source
from ggshell.errors import DatabaseError
from ggshell.hosts import host_and_port

SCHEMES: Final = ("mysql://", "mariadb://")
PORT: Final = 3306
_FORM: Final = "use mysql://user@host:port/database, with the password in PASSWORD or in the credential store"
_MODES: Final = ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")


@dataclass(frozen=True, slots=True)
class MysqlAddress:
    """A login. ``socket``: the path of a Unix socket, empty for TCP.

    ``ssl_mode``: as in the option ``--ssl-mode`` of MySQL's clients; ``ssl_ca``, ``ssl_cert`` and ``ssl_key`` are files.
    """

    user: str = ""
    password: str = ""
    host: str = "localhost"
    port: int = PORT
    database: str = ""
    socket: str = ""
    ssl_mode: str = "PREFERRED"
    ssl_ca: str = ""
    ssl_cert: str = ""
    ssl_key: str = ""

    def __str__(self) -> str:
        """The login as one text, which ``parse_login`` reads. It contains the password."""
        secret = f":{quote(self.password, safe='')}" if self.password else ""
        user = f"{quote(self.user, safe='')}{secret}@" if self.user else ""
        options = {name: getattr(self, name) for name in _OPTIONS if getattr(self, name) != _DEFAULTS[name]}
        query = f"?{urlencode({name.replace('_', '-'): value for name, value in options.items()})}" if options else ""
        return f"mysql://{user}{host_and_port(self.host, self.port)}/{quote(self.database, safe='')}{query}"

    def __repr__(self) -> str:
        return f"MysqlAddress({self.shown})"

    @property
    def shown(self) -> str:
        """The database that the login names, without user or secret."""
        return f"{self.socket or host_and_port(self.host, self.port)}/{self.database}"

    def files(self, home: Path) -> tuple[Path, ...]:
        """The certificates and keys that the login names."""
        return tuple(home / name for name in (self.ssl_ca, self.ssl_cert, self.ssl_key) if name)

    def connect_arguments(self) -> dict[str, Any]:
        """The arguments of ``pymysql.connect`` for this login."""
        found: dict[str, Any] = {"user": self.user, "password": self.password, "host": self.host, "port": self.port}
        found |= {"database": self.database or None, "unix_socket": self.socket or None}
        if self.ssl_mode == "DISABLED" or self.socket:
            return found | {"ssl_disabled": True}
        if self.ssl_mode == "PREFERRED" and not self.ssl_ca and not self.ssl_cert:
            return found
        found |= {"ssl_ca": self.ssl_ca or None, "ssl_cert": self.ssl_cert or None, "ssl_key": self.ssl_key or None}
        if self.ssl_mode == "VERIFY_IDENTITY":
            return found | {"ssl_verify_identity": True, "ssl_verify_cert": True}
        return found | {"ssl_verify_cert": self.ssl_mode == "VERIFY_CA"}


_OPTIONS: Final = ("socket", "ssl_mode", "ssl_ca", "ssl_cert", "ssl_key")
_DEFAULTS: Final = {field.name: field.default for field in fields(MysqlAddress)}


def names_mysql(text: str) -> bool:
    """Whether a text is a login to MariaDB or MySQL."""
    return text.strip().lower().startswith(SCHEMES)


def parse_login(userid: str, password: str | None = None, source: str = "") -> MysqlAddress:
    """Return the login that a statement or a parameter file gives.

    The URL is in ``source``, with the user in ``userid``, or in ``userid``. Instead of a URL, either may name a data
    source of ODBC (``user@source``). A separate user or password takes precedence. Raises DatabaseError.
    """
    text, user = (source, userid) if names_mysql(source) else (userid, "")
    named = None if names_mysql(text) else _of_data_source(source or text.strip().rpartition("@")[2])
    if named is not None:
        user = userid.strip().partition("@")[0] if source or "@" in userid else ""
    found = _parse_url(text.strip()) if named is None else named
    if user:
        found = replace(found, user=user)
    if password:
        found = replace(found, password=password)
    if not found.user:
        raise DatabaseError(f"{text} has no user", hint=_FORM)
    return found


def _of_data_source(name: str) -> MysqlAddress | None:
    found = data_source(name)
    if found is None:
        return None
    port = found.get("port", str(PORT))
    if not port.isdigit():
        raise DatabaseError(f"the port of data source {name}, {port}, is not a number", hint="correct odbc.ini")
    return MysqlAddress(
        user=found.get("user", ""),
        host=found.get("host", "localhost"),
        port=int(port),
        database=found.get("dbname", ""),
        socket=found.get("socket", ""),
    )


def _parse_url(text: str) -> MysqlAddress:
    try:
        parts = urlsplit(text)
        port = parts.port or PORT
        given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise DatabaseError(f"{_masked(text)} is not a valid login: {error}", hint=_FORM) from None
    if f"{parts.scheme}://" not in SCHEMES or parts.fragment or "/" in parts.path[1:]:
        raise DatabaseError(f"{_masked(text)} is not a valid login", hint=_FORM)
    options = {name.replace("-", "_"): value for name, value in given}
    for name in options:
        if name not in _OPTIONS:
            known = ", ".join(option.replace("_", "-") for option in _OPTIONS)
            raise DatabaseError(f"{name} is not an option of a login to MariaDB or MySQL", hint=f"use {known}")
    mode = options.setdefault("ssl_mode", "PREFERRED").upper()
    if mode not in _MODES:
        raise DatabaseError(f"{mode} is not a valid ssl-mode", hint=f"use {', '.join(_MODES)}")
    return MysqlAddress(
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        host=parts.hostname or "localhost",
        port=port,
        database=unquote(parts.path[1:]),
        **{**options, "ssl_mode": mode},
    )


def _masked(text: str) -> str:
    """A text that is not a valid login, without what may be a password."""
    head, at, tail = text.rpartition("@")
    return f"{head.rpartition(':')[0]}:****@{tail}" if at and head.count(":") > 1 else text
