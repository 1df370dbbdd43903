"""The master key of the wallet, and its versions."""

from __future__ import annotations

from typing import Final, Literal

from ggshell.errors import NotFoundError, UsageError
from ggshell.groups.home_wallet import wallet_of
from ggshell.home.users import Role
from ggshell.home.wallet import KeyStatus, KeyVersion
from ggshell.service.answers import Answer, Said, collection, status_item, utc_text
from ggshell.service.bodies import Body
from ggshell.service.call import Call
from ggshell.service.responses import Resource, StatusItem, StatusItems
from ggshell.service.routes import resource

_BASE = "/masterkey"
_ONE = f"{_BASE}/{{version}}"
_STATUSES: Final[dict[KeyStatus, Literal["current", "available", "unavailable"]]] = {
    KeyStatus.CURRENT: "current",
    KeyStatus.AVAILABLE: "available",
    KeyStatus.DELETED: "unavailable",
}


class VersionBody(Body, kw_only=True):
    """The status of a version: ``unavailable`` marks it as deleted, ``available`` removes the mark."""

    status: Literal["current", "available", "unavailable"]
    created: str | None = None


class MasterKeyVersion(Resource, tag="ogg:masterKey"):
    """A version of the master key."""

    created: str | None
    status: Literal["current", "available", "unavailable"]


@resource("GET", _BASE, role=Role.USER, summary="List the versions of the master key", returns=StatusItems)
def list_versions(call: Call) -> Answer:
    return Answer(collection(_item(call, each) for each in _versions(call)))


@resource(
    "POST",
    _BASE,
    role=Role.ADMINISTRATOR,
    summary="Add a version; with the first, the wallet",
    body=Body,
    optional=True,
    status=201,
    returns=StatusItems,
)
def create_version(call: Call) -> Answer:
    """Add a version of the master key, which groups use from their next start.

    The vendor's API lets an Administrator do this, also with the first version, although CREATE WALLET requires SECURITY: a
    wallet that exists is never replaced.
    """
    wallet = wallet_of(call.home)
    if not wallet.exists:
        call.run("CREATE WALLET", told=True)
    call.run("RENEW MASTERKEY" if _versions(call) else "ADD MASTERKEY")
    newest = _versions(call)[-1]
    call.said.append(_created(newest.number, wallet.name))
    return Answer(collection([_item(call, newest)]), status=201)


def _created(number: int, name: str) -> Said:
    return Said("OGG-06142", f"Created version {number} of master encryption key '{name}' in the wallet.")


@resource(
    "GET", _ONE, role=Role.USER, summary="Show a version of the master key, never the key", returns=MasterKeyVersion
)
def get_version(call: Call, version: str) -> Answer:
    found = _find(call, version)
    return Answer(MasterKeyVersion(created=utc_text(found.created), status=_STATUSES[found.status]))


@resource("PATCH", _ONE, role=Role.ADMINISTRATOR, summary="Change the status of a version", body=VersionBody)
def update_version(call: Call, version: str) -> Answer:
    found, wanted = _find(call, version), call.body.status
    if wanted == _STATUSES[found.status] or (wanted == "available" and found.status is KeyStatus.CURRENT):
        return Answer()
    if wanted == "current":
        raise UsageError("an earlier version cannot become the current one", hint="add a version with POST masterkey")
    verb = "DELETE" if wanted == "unavailable" else "UNDELETE"
    call.run(f"{verb} MASTERKEY VERSION {found.number}", told=True)
    return Answer()


@resource("DELETE", _ONE, role=Role.ADMINISTRATOR, summary="Mark a version as deleted")
def delete_version(call: Call, version: str) -> Answer:
    """Mark a version as deleted: trails that are encrypted with it can be read until PURGE WALLET removes it."""
    found = _find(call, version)
    if found.status is not KeyStatus.DELETED:
        call.run(f"DELETE MASTERKEY VERSION {found.number}", told=True)
    return Answer()


def _versions(call: Call) -> list[KeyVersion]:
    wallet = wallet_of(call.home)
    if not wallet.exists:
        return []
    try:
        return sorted(wallet.versions(), key=lambda each: each.number)
    except NotFoundError:
        return []


def _find(call: Call, version: str) -> KeyVersion:
    for each in _versions(call):
        if str(each.number) == version:
            return each
    raise NotFoundError(f"version {version} of the master key does not exist")


def _item(call: Call, version: KeyVersion) -> StatusItem:
    return status_item(call.url(_BASE), str(version.number), _STATUSES[version.status])
