"""The base type of request bodies: msgspec structs whose fields have the vendor's names. Unknown fields are refused
with a message that names them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec

from ggshell.errors import UsageError
from ggshell.service.answers import Object

_FIELD: Final = re.compile(r"`\$\.(\w+)`$")


def described(text: str, *values: str) -> msgspec.Meta:
    """Return what the OpenAPI document says about a field; ``values``: those that its handler accepts, if they are few.

    The handler checks them, because its message names the remedy.
    """
    return msgspec.Meta(description=text, extra_json_schema={"enum": list(values)} if values else None)


GroupStatus = Annotated[str, described("Starts, stops or kills the group.", "running", "stopped", "killed")]
Config = Annotated[list[str] | str | None, described("The parameter file, as lines or as one text.")]
Begin = Annotated[
    str | Object | None,
    described(
        "The start position: now, a time (2030-01-31T08:00:00Z), {sequence, offset} in a trail,"
        " or {at: {csn}} in the log of an Extract's source."
    ),
]


class Body(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A request's body. Clients may name its schema, which is ignored."""

    schema: str = msgspec.field(default="", name="$schema")


class Alias(Body):
    """An alias of the credential store."""

    alias: str = ""
    domain: str = "OracleGoldenGate"

    @property
    def connection(self) -> str:
        return f"{self.domain}.{self.alias}"


class GroupBody(Body):
    """The fields that Extracts and Replicats share, for POST and PATCH."""

    description: str | None = None
    config: Config = None
    credentials: Alias | None = None
    begin: Begin = None
    encryption_profile: str | Object | None = None
    managed_process_settings: str | Object | None = None
    critical: bool | None = None
    intent: str | None = None
    status: GroupStatus | None = None


def lines_of(config: list[str] | str) -> str:
    """Return the text of a parameter file, which clients send as lines or as one text."""
    text = config if isinstance(config, str) else "\n".join(config)
    if "\0" in text:
        raise UsageError("a parameter file must not contain NUL characters")
    return text if text.endswith("\n") else f"{text}\n"


def choices(body: Any, refusal: str) -> str:
    """Return the values of the field that a refusal of msgspec names, as a hint; empty if the field takes others too."""
    named = _FIELD.search(refusal)
    for field in msgspec.structs.fields(body) if named is not None else ():
        if named is not None and field.encode_name == named[1] and get_origin(field.type) is Literal:
            return f"{field.encode_name} is one of {', '.join(get_args(field.type))}"
    return ""
