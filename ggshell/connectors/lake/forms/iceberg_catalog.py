"""The catalog of an Iceberg lake: a SQLite file in its folder, a SQL database, or a REST catalog."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    CommitStateUnknownException,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
)
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from ggshell.connectors.lake.target import LakeTarget
from ggshell.errors import ConnectionLostError, GgsError, StoreError
from ggshell.files import read_json

CATALOG = "catalog.db"
NAME = "lake"
_STORE_VARIABLES = {
    "AWS_ENDPOINT_URL": "s3.endpoint",
    "AWS_ACCESS_KEY_ID": "s3.access-key-id",
    "AWS_SECRET_ACCESS_KEY": "s3.secret-access-key",
    "AWS_SESSION_TOKEN": "s3.session-token",
    "AWS_REGION": "s3.region",
    "AZURE_STORAGE_ACCOUNT_NAME": "adls.account-name",
    "AZURE_STORAGE_ACCOUNT_KEY": "adls.account-key",
    "AZURE_STORAGE_SAS_TOKEN": "adls.sas-token",
}
"""The variables of object stores, and PyIceberg's names for them: it does not read all of them itself."""
VARIABLES = "PYICEBERG_CATALOG__LAKE__"
LOG = ("_ggshell", "log")
_FILES: Final = "ggshell.connectors.lake.forms.iceberg_io.StoreFileIO"
"""The class with which PyIceberg reads and writes files, unless the environment names another."""
ANSWER_SECONDS: Final = 30
"""How long a REST catalog may take for an answer. A commit can take several seconds."""
_DRIVERS = {"postgresql": "postgresql+psycopg"}
_OUTAGES = (
    AuthorizationExpiredError,
    CommitStateUnknownException,
    OperationalError,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
)
"""What a catalog that does not answer raises; a later attempt can succeed."""
_REFUSES_LOGIN: Final = re.compile(r"authentication failed|no password supplied|pg_hba\.conf|FATAL:.* does not exist")
"""What a database says that refuses a login. A driver raises the same error for this as for an outage."""


def open_catalog(folder: Path) -> SqlCatalog:
    """The catalog of a lake in a folder."""
    return SqlCatalog(NAME, uri=f"sqlite:///{folder / CATALOG}", warehouse=f"file://{folder}")


def catalog_of(target: LakeTarget) -> Catalog:
    """The catalog of a lake. Credentials come from the environment (PYICEBERG_CATALOG__LAKE__TOKEN, PGPASSWORD and others).

    Raises ConnectionLostError if the catalog cannot be reached.
    """
    if not target.catalog:
        return open_catalog(Path(target.location))
    kind, _, rest = target.catalog.partition("+")
    scheme, _, place = rest.partition("://")
    uri = f"{_DRIVERS.get(scheme, scheme)}://{place}"
    properties = _properties(os.environ)
    if "credential" in properties:
        properties.setdefault("oauth2-server-uri", f"{uri.rstrip('/')}/v1/oauth/tokens")
    if target.location != target.catalog:
        properties["warehouse"] = target.location
    try:
        return load_catalog(NAME, **{"uri": uri, **_implementation(kind), "py-io-impl": _FILES, **properties})
    except (RESTError, OSError, SQLAlchemyError) as error:
        raise catalog_error(target, error) or _unusable(ConnectionLostError, target, error) from error


def _implementation(kind: str) -> dict[str, str]:
    """The option of ``load_catalog`` that selects the class of a catalog."""
    return {"py-catalog-impl": f"{__name__}.{LimitedRestCatalog.__name__}"} if kind == "rest" else {"type": kind}


class LimitedRestCatalog(RestCatalog):  # type: ignore[misc]
    """A REST catalog whose requests have a time limit, which those of the library do not have."""

    def _create_session(self) -> Any:
        session = super()._create_session()
        send = session.send

        def limited(request: Any, **options: Any) -> Any:
            return send(request, **{**options, "timeout": options.get("timeout") or ANSWER_SECONDS})

        session.send = limited
        return session


def catalog_error(target: LakeTarget, error: Exception) -> GgsError | None:
    """The error for one that a catalog has raised: ConnectionLostError if a later attempt can succeed; None for others."""
    if isinstance(error, (NoSuchTableError, NoSuchNamespaceError)):
        return StoreError(
            f"lake {target.location} no longer contains a table of its catalog: {_first_line(error)}",
            hint="restore it, then START the group",
        )
    if isinstance(error, _OUTAGES) and not _REFUSES_LOGIN.search(str(error)):
        return _unusable(ConnectionLostError, target, error)
    return _unusable(StoreError, target, error) if isinstance(error, (RESTError, OperationalError)) else None


def _unusable(kind: type[GgsError], target: LakeTarget, error: Exception) -> GgsError:
    return kind(
        f"catalog {target.catalog or target.location} cannot be used: {_first_line(error)}",
        hint="check its address, and the user and password or token in the environment or in USERIDALIAS",
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _properties(environment: Mapping[str, str]) -> dict[str, str]:
    """The store's variables, and PyIceberg's variables for the catalog, which it reads only when it is imported."""
    names = {name: name.removeprefix(VARIABLES) for name in environment if name.startswith(VARIABLES)}
    given = {short.lower().replace("__", ".").replace("_", "-"): environment[name] for name, short in names.items()}
    return {**{short: environment[name] for name, short in _STORE_VARIABLES.items() if name in environment}, **given}


class CatalogCommits:
    """The newest commit of a group as a property of the log, for a catalog whose warehouse has no known location."""

    def __init__(self, target: LakeTarget, group: str) -> None:
        self._catalog = catalog_of(target)
        self._property = f"ggshell.{group}.commit"

    def names(self) -> list[str]:
        data = self._data()
        return [] if data is None else [f"{int(read_json(data)['batch']):012d}.json"]

    def read(self, name: str) -> bytes | None:
        data = self._data()
        return None if data is None else data.encode()

    def exists(self, name: str) -> bool:
        return self.names() >= [name]

    def create(self, name: str, data: bytes) -> bool:
        if self.exists(name):
            return self._data() == data.decode()  # The catalog can commit and lose its answer.
        with self._catalog.load_table(LOG).transaction() as transaction:
            transaction.set_properties({self._property: data.decode()})
        return True

    def delete(self, name: str) -> None:
        """The newest commit has replaced the earlier ones."""

    def _data(self) -> str | None:
        with suppress(NoSuchTableError, NoSuchNamespaceError):
            return self._catalog.load_table(LOG).properties.get(self._property)  # type: ignore[no-any-return]
        return None
