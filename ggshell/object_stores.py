"""Locations in object stores and on other file systems: ``s3://bucket/folder`` and the like, opened with Arrow's file systems.

Credentials come from the environment, as the programs of each store read them. A location never contains them, because
locations are in parameter files, logs and reports:

- ``s3://bucket/path`` (also ``s3a://``): AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE or the role
  of the machine; AWS_REGION; AWS_ENDPOINT_URL (or AWS_ENDPOINT_URL_S3) for a store that is not Amazon's
- ``gs://bucket/path``: GOOGLE_APPLICATION_CREDENTIALS or the account of the machine
- ``abfs://container@account.dfs.core.windows.net/path`` (also ``abfss://``), or ``abfs://container/path`` with
  AZURE_STORAGE_ACCOUNT_NAME: AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN, AZURE_CLIENT_ID and the others of Azure's
  default credential
- ``hdfs://host:port/path``: Hadoop's client library and configuration (HADOOP_HOME, CLASSPATH)
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from ggshell.errors import ConnectionLostError, GgsError, NotFoundError, UsageError

if TYPE_CHECKING:
    from pyarrow import fs

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://")
_SPELLINGS: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_AZURE: Final = ("abfs", "abfss")
SUPPORTED: Final = ("s3", "gs", "abfs", "abfss", "hdfs")
"""The schemes that ggshell is made for; Arrow's other file systems work if Arrow does not need options for them."""
STORE_SCHEMES: Final = (*SUPPORTED, *_SPELLINGS)
_S3_OPTIONS: Final = frozenset({"region", "scheme", "endpoint_override"})
_ATTEMPTS: Final = 3
"""How often a request is tried. A store that does not answer is then noticed after 11 seconds."""
_CODE: Final = "GGS-00716"
_NO_ACCESS: Final = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE|EXPIRED|UNRECOGNIZED_CLIENT|HTTP status 403|PERMISSION_DENIED|UNAUTHENTICATED"
    r"|Forbidden|credential",
    re.IGNORECASE,
)
_ABSENT: Final = re.compile(
    r"NO_SUCH_BUCKET|NoSuchBucket|Path does not exist|NOT_FOUND|ContainerNotFound", re.IGNORECASE
)
_NO_CONNECTION: Final = re.compile(r"NETWORK_CONNECTION|curlCode|resolve host|UNAVAILABLE|timed? ?out", re.IGNORECASE)


class StorePlace(NamedTuple):
    """A location: its file system, the path on it, and the location as text (without a slash at its end)."""

    system: fs.FileSystem
    path: str
    text: str

    def child(self, name: str) -> StorePlace:
        """A place in this folder."""
        return StorePlace(self.system, f"{self.path}/{name}", f"{self.text}/{name}")


def is_elsewhere(text: str) -> bool:
    """Whether a text names a location outside this machine's file system."""
    match = _SCHEME.match(text)
    return match is not None and match[1] != "file"


def open_place(text: str, environment: Mapping[str, str] = os.environ) -> StorePlace:
    """Open the file system of a location; nothing is read yet, so a wrong bucket shows only when it is used.

    A text without a scheme, and ``file://``, is a folder or file of this machine. Raises UsageError for a location that is
    not valid or contains credentials, ConnectionLostError if its file system cannot be used here.
    """
    from pyarrow import fs

    match = _SCHEME.match(text)
    if match is None or match[1] == "file":
        path = os.path.abspath(text.removeprefix("file://"))  # noqa: PTH100 - Arrow takes texts
        return StorePlace(fs.LocalFileSystem(), path, path)
    plain = checked_location(text)
    location = f"{_SPELLINGS.get(match[1], match[1])}{plain[len(match[1]) :]}"
    try:
        if match[1] in _AZURE:
            system, path = _azure(location, environment)
        elif location.startswith("s3://"):
            system, path = _s3(location, environment)
        else:
            system, path = fs.FileSystem.from_uri(location)
    except ValueError as error:
        raise UsageError(
            f"{text} is not a valid location: {_first_line(error)}", hint=f"locations begin with {_names()}"
        ) from None
    except (OSError, NotImplementedError) as error:
        raise store_error(text, error) from None
    return StorePlace(system, path.rstrip("/"), plain)


def checked_location(text: str) -> str:
    """A location outside this machine, without a slash at its end; nothing is opened. Raises UsageError as ``open_place``."""
    plain = text.rstrip("/")
    _check(plain.partition("://")[0], plain)
    return plain


def _names() -> str:
    return ", ".join(f"{each}://" for each in SUPPORTED)


def _check(scheme: str, text: str) -> None:
    """Refuse a location that names no bucket or contains a secret."""
    parts = urlsplit(text)
    user = parts.netloc.rpartition("@")[0]
    if ":" in user or (user and scheme not in (*_AZURE, "hdfs")):
        raise UsageError(
            f"a location cannot contain credentials: {scheme}://…@{parts.netloc.rpartition('@')[2]}{parts.path}",
            hint="set the variables of the environment that the programs of this store use, for example AWS_ACCESS_KEY_ID",
        )
    if not parts.netloc:
        raise UsageError(f"{text} is not a valid location: it names no bucket", hint=f"write {scheme}://bucket/folder")


def _s3(location: str, environment: Mapping[str, str]) -> tuple[fs.FileSystem, str]:
    """S3's file system. The one that Arrow makes from a URI tries a request for 99 seconds if the store does not answer."""
    from pyarrow import fs

    parts = urlsplit(location)
    options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
    other = options.keys() - _S3_OPTIONS
    if other:
        raise ValueError(f"{min(other)} is not an option of S3: {', '.join(sorted(_S3_OPTIONS))}")
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or ""
    scheme, _, host = endpoint.rpartition("://")
    options = {**({"endpoint_override": host, "scheme": scheme or "https"} if host else {}), **options}
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not region and "endpoint_override" not in options and "region" not in options:
        region = fs.resolve_s3_region(parts.netloc)
    strategy = fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS)
    system = fs.S3FileSystem(**{"region": region, **options}, retry_strategy=strategy, allow_delayed_open=True)
    return system, f"{parts.netloc}{parts.path}"


def _azure(location: str, environment: Mapping[str, str]) -> tuple[fs.FileSystem, str]:
    """Azure's file system: Arrow takes the key of an account as an option, not from the environment."""
    from pyarrow import fs

    parts = urlsplit(location)
    container, _, host = parts.netloc.rpartition("@")
    account = host.partition(".")[0] if container else environment.get("AZURE_STORAGE_ACCOUNT_NAME", "")
    if not account:
        raise ValueError("it names no account, and AZURE_STORAGE_ACCOUNT_NAME is not set")
    key, token = (environment.get(f"AZURE_STORAGE_{each}") for each in ("ACCOUNT_KEY", "SAS_TOKEN"))
    system = fs.AzureFileSystem(account, account_key=key, sas_token=None if key else token)
    return system, f"{container or host}{parts.path}"


def store_error(text: str, error: Exception) -> GgsError:
    """The error for a location that cannot be used, by the cause that Arrow reports: absent, no access, not reachable.

    ``text``: the location. A later attempt can succeed after ConnectionLostError only.
    """
    reason = _first_line(error)
    if isinstance(error, FileNotFoundError) or _ABSENT.search(reason):
        return NotFoundError(f"{text} does not exist", hint="check the name of the bucket and the path")
    if isinstance(error, PermissionError) or _NO_ACCESS.search(reason):
        return NotFoundError(
            f"access to {text} was denied: {reason}",
            code=_CODE,
            hint="check the credentials in the environment of this process and their permissions",
        )
    if "libjvm" in reason or "libhdfs" in reason:
        reason, hint = "Hadoop's client library was not found", "set JAVA_HOME, HADOOP_HOME and CLASSPATH"
    elif _NO_CONNECTION.search(reason):
        hint = "check the address of the store (AWS_ENDPOINT_URL for S3), its region and the network"
    else:
        hint = "check the location and the store"
    return ConnectionLostError(f"cannot use {text}: {reason}", code=_CODE, hint=hint)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
