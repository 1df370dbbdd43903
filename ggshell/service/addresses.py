"""The forms of the API's addresses: direct, through the vendor's services, and through a reverse proxy. All name one API.

``/services/v2/extracts``, ``/services/adminsrvr/v2/extracts``, ``/services/north/adminsrvr/v2/extracts`` and
``/services/ServiceManager/v2/deployments`` are valid; see the vendor's page on reverse proxies.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ggshell.errors import HttpError

VERSION: Final = "v2"
SERVICES: Final = ("adminsrvr", "distsrvr", "recvsrvr", "pmsrvr", "ServiceManager")
_FORM: Final = re.compile(
    rf"(?P<base>/services/(?:(?:(?P<deployment>[^/]+)/)?(?P<service>{'|'.join(SERVICES)})/)?(?P<version>v\d+))(?P<rest>/.*)?"
)


class Address(NamedTuple):
    """An address of the API. ``base``: the part before the resource; ``path``: the resource, beginning with ``/``."""

    base: str
    path: str
    service: str = ""


def parse_address(path: str, deployment: str) -> Address | None:
    """Return the resource of a path, or None if the path is not below ``/services``.

    ``deployment``: the name of this deployment. Raises HttpError for another deployment or another version.
    """
    path = re.sub("/{2,}", "/", path)  # public scripts write deployments//north
    if path.rstrip("/") == "/services":
        return Address(f"/services/{VERSION}", "/")
    if not path.startswith("/services/"):
        return None
    found = _FORM.fullmatch(path)
    if found is None:
        raise HttpError(404, f"{path[:200]} is not an address of this API", hint=f"use /services/{VERSION}/…")
    if found["version"] != VERSION:
        raise HttpError(404, f"version {found['version']} of the API is not supported", hint=f"use {VERSION}")
    if found["deployment"] and found["deployment"] != deployment:
        raise HttpError(404, f"deployment {found['deployment'][:80]} does not exist", hint=f"use {deployment}")
    return Address(found["base"], found["rest"] or "/version", found["service"] or "")
