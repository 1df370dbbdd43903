"""The login of a lake: USERIDALIAS of the parameter file as variables of the environment, which the libraries read.

Without USERIDALIAS the variables that the process was started with apply. What an alias means depends on the location:

- ``s3://``: user and password are the access key and the secret key
- ``abfs://``: user and password are the account and its key
- ``iceberg:rest+https://``: user and password are the OAuth client and its secret; a user ``token`` has a bearer token
- ``iceberg:sql+postgresql://``: user and password of the database
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from ggshell.connectors.lake.target import LakeTarget
from ggshell.errors import ParameterError
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.parameters.loading import load_replicat
from ggshell.parameters.process_parameters import LoginParameters

_VARIABLES: Final = {
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    "abfs": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"),
    "abfss": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"),
    "sql": ("PGUSER", "PGPASSWORD"),
}
_REST: Final = "PYICEBERG_CATALOG__LAKE__"
_CHANGING: Final = threading.RLock()


def lake_environment(home: Home, login: LoginParameters, target: LakeTarget) -> dict[str, str]:
    """The variables for a login. Raises NotFoundError for an unknown alias, ParameterError if the location takes none."""
    if not login.alias:
        return {}
    found = CredentialStore(home).resolve(login.alias, login.domain)
    kind = (target.catalog or target.location).partition("://")[0].partition("+")[0]
    if kind == "rest":
        if found.userid.lower() == "token":
            return {f"{_REST}TOKEN": found.password}
        return {f"{_REST}CREDENTIAL": f"{found.userid}:{found.password}"}
    if kind not in _VARIABLES:
        raise ParameterError(
            f"USERIDALIAS {login.alias}: lake {target.location} does not accept a user and a password",
            hint="remove USERIDALIAS, and set the variables of the environment that the store's programs use",
        )
    return dict(zip(_VARIABLES[kind], (found.userid, found.password), strict=True))


def group_environment(home: Home, group: str, target: LakeTarget) -> dict[str, str]:
    """The variables for the login of a group's parameter file; none if it has no file yet."""
    path = home.parameters(group) if group else None
    if path is None or not path.is_file():
        return {}
    return lake_environment(home, load_replicat(path, group).login, target)


@contextmanager
def applied(environment: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the block. Other threads that apply variables wait."""
    with _CHANGING:
        before = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
