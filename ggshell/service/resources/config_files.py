"""Configuration files: the parameter files in dirprm, and GLOBALS."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final, NamedTuple

from ggshell.check.parameter_files import kind_of
from ggshell.errors import ConflictError, HttpError, NotFoundError, StateError, UsageError
from ggshell.files import disk_errors
from ggshell.home.checkpoint import GroupKind
from ggshell.home.users import Role
from ggshell.language.redaction import MASK
from ggshell.parameters.access_rules import AccessRules, access_rules
from ggshell.parameters.lines import first_of
from ggshell.parameters.loading import examine
from ggshell.parameters.redacted_file import redacted_lines
from ggshell.service.answers import Answer, RawAnswer, Said, collection, item
from ggshell.service.bodies import Body, lines_of
from ggshell.service.call import Call
from ggshell.service.included_files import refusals_of, require_includes
from ggshell.service.refusals import not_here
from ggshell.service.responses import Items, Resource
from ggshell.service.routes import resource
from ggshell.service.sign_in import required
from ggshell.service.written_parameters import require_named

_BASE: Final = "/config/files"
_NAME: Final = re.compile(r"[A-Za-z0-9_$][A-Za-z0-9_$-]{0,127}\.(?i:prm|inc)")
_GLOBALS: Final = "GLOBALS"
_KEYS: Final = "ENCKEYS"
_PROCESSES: Final = {"MGR": "Manager", "SERVICE": "Service", _GLOBALS: _GLOBALS}


class ConfigFileBody(Body):
    """The content of a file, as lines or as one text."""

    lines: list[str] | str


class ConfigFile(Resource, tag="ogg:config"):
    """The lines of a file, without passwords."""

    lines: list[str]


class _Found(NamedTuple):
    """A configuration file. ``text``: its content with passwords, None if it does not exist."""

    name: str
    path: Path
    text: str | None

    @property
    def group(self) -> str:
        """The name of the group that the file belongs to, if there is one."""
        return self.path.stem.upper() if self.path.suffix.lower() == ".prm" else ""

    @property
    def existing(self) -> str:
        """The content. Raises NotFoundError."""
        if self.text is None:
            raise NotFoundError(f"configuration file {self.name} does not exist", hint="POST creates it")
        return self.text

    @property
    def tag(self) -> str:
        """The entity tag: it changes with every write, and does not depend on the passwords in the file."""
        shown = redacted_lines(self.existing)
        return f'"{hashlib.sha256(f"{self.path.stat().st_mtime_ns} {shown}".encode()).hexdigest()[:32]}"'


@resource("GET", _BASE, role=Role.USER, summary="List the configuration files", returns=Items)
def list_files(call: Call) -> Answer:
    folder = call.home.root / "dirprm"
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    names = [path.name for path in paths if _NAME.fullmatch(path.name) and path.is_file()]
    if call.home.globals.is_file():
        names.append(_GLOBALS)
    return Answer(collection(item(call.url(_BASE), name) for name in sorted(names)))


@resource(
    "GET",
    f"{_BASE}/{{file}}",
    role=Role.USER,
    summary="Show a configuration file, without its passwords",
    returns=ConfigFile,
)
def get_file(call: Call, file: str) -> Answer | RawAnswer:
    found = _find(call, file)
    text, headers = redacted_lines(found.existing), {"ETag": found.tag}
    if _names(call.request.headers.get("if-none-match", ""), found.tag):
        return RawAnswer(b"", "text/plain", 304, headers)
    return Answer(ConfigFile(lines=text.splitlines()), text=text, headers=headers)


@resource(
    "POST",
    f"{_BASE}/{{file}}",
    role=Role.ADMINISTRATOR,
    summary="Create a configuration file; service.prm and ACCESSRULE require the role Security",
    body=ConfigFileBody,
    status=201,
)
def create_file(call: Call, file: str) -> Answer:
    found = _to_change(call, file)
    if found.text is not None:
        raise ConflictError(f"configuration file {found.name} already exists", hint="use PUT to replace it")
    return _write(call, found, 201)


@resource(
    "PUT",
    f"{_BASE}/{{file}}",
    role=Role.ADMINISTRATOR,
    summary="Replace a configuration file; service.prm and ACCESSRULE require the role Security",
    body=ConfigFileBody,
)
def replace_file(call: Call, file: str) -> Answer:
    found = _to_change(call, file)
    found.existing  # noqa: B018 - raises if the file does not exist
    return _write(call, found, 200)


@resource(
    "DELETE",
    f"{_BASE}/{{file}}",
    role=Role.ADMINISTRATOR,
    summary="Delete a configuration file; service.prm and ACCESSRULE require the role Security",
)
def delete_file(call: Call, file: str) -> Answer:
    found = _to_change(call, file)
    found.existing  # noqa: B018 - raises if the file does not exist
    if found.group:
        for kind in _kinds(call, found.group):
            raise StateError(
                f"{found.name} is the parameter file of {kind} {found.group}", hint=f"DELETE {kind} {found.group} first"
            )
    _require_access_role(call, found, "")
    with disk_errors("delete", found.path):
        found.path.unlink(missing_ok=True)
    return Answer()


def _find(call: Call, name: str) -> _Found:
    """Return the file of a name.

    Raises UsageError for a name that no configuration file can have, HttpError 403 for a link out of the home.
    """
    if name.upper() == _KEYS:
        raise not_here(f"{_KEYS} as a configuration file", "use enckeys: keys are never shown")
    if name.upper() == _GLOBALS:
        path = call.home.globals
    elif _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name[:80]} is not a valid name of a configuration file", hint="use GLOBALS, name.prm or name.inc"
        )
    else:
        exact = call.home.root / "dirprm" / name
        stem, _, ending = name.rpartition(".")
        path = exact if exact.is_file() or ending.lower() != "prm" else call.home.parameters(stem)
    call.require_shown(path)
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
    return _Found(name, path, text)


def _to_change(call: Call, name: str) -> _Found:
    """Return the file of a name for a change. Raises HttpError 412 if its version is not the one that the client expects.

    The settings of the service decide who can sign in, so only the role Security changes them.
    """
    found = _find(call, name)
    if found.group == "SERVICE":
        required(call.principal, Role.SECURITY)
    headers = call.request.headers
    tag = found.tag if found.text is not None else ""
    expected, excluded = headers.get("if-match", ""), headers.get("if-none-match", "")
    if (expected and not _names(expected, tag)) or (excluded and _names(excluded, tag)):
        raise HttpError(412, f"configuration file {name} is not in the expected version", hint="read it again with GET")
    return found


def _names(header: str, tag: str) -> bool:
    """Whether a list of entity tags contains a tag; ``*`` is every existing file."""
    tags = [each.strip().removeprefix("W/") for each in header.split(",")]
    return bool(tag) and ("*" in tags or tag in tags)


def _write(call: Call, found: _Found, status: int) -> Answer:
    body: ConfigFileBody = call.body
    text = _with_passwords(lines_of(body.lines), found.text or "")
    _check(call, found, text)
    _require_access_role(call, found, text)
    require_named(call, found.path, text)
    call.home.ensure()
    with call.steps() as steps:
        steps.write_file(found.path, text)
    return Answer(status=status, headers={"ETag": found._replace(text=text).tag})


def _with_passwords(text: str, before: str) -> str:
    """Return a text in which masked lines have the passwords of the same lines before.

    A client that reads a file, changes a line and writes it back must not lose the passwords, which it cannot see. Raises
    UsageError for a masked line that the file did not have.
    """
    if MASK not in text:
        return text
    known: dict[str, list[str]] = {}
    for shown, line in zip(redacted_lines(before).splitlines(), before.splitlines(), strict=True):
        known.setdefault(shown, []).append(line)
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if MASK in line:
            if not known.get(line):
                raise UsageError(f"line {number + 1} contains {MASK} instead of a password", hint="send the password")
            lines[number] = known[line].pop(0)
    return "".join(f"{line}\n" for line in lines)


def _check(call: Call, found: _Found, text: str) -> None:
    """Check a file as its process will load it.

    Raises ParameterError if a group, Manager or the service could not start with it, or commands could not run, and
    UsageError for a file that it may not include. For other files the errors become messages.
    """
    process = _PROCESSES.get(found.group or found.path.name.upper(), "")
    groups = [kind.capitalize() for kind in _kinds(call, found.group) if not kind.is_path]
    process = process or next(iter(groups), "")
    if not process and not found.group:  # a file for INCLUDE
        require_includes(call.bounds, text, found.path)
        return
    refusals = refusals_of(call.bounds, text, found.path, process or kind_of(text, found.path.name) or "Extract")
    if refusals and process:
        raise first_of(refusals)
    for error in refusals:
        call.said.append(Said.of(error, "WARNING"))
    if not refusals:
        call.said.append(Said("OGG-10183", f"Parameter file {found.path.name} passed validity check."))


def _require_access_role(call: Call, found: _Found, text: str) -> None:
    """Require the role Security for a change of ACCESSRULE, which decides who can connect. Raises HttpError 403."""
    if found.group == "MGR":
        before, after = (_access_of(each, found.path) for each in (found.text or "", text))
        if before != after:
            required(call.principal, Role.SECURITY)
    elif not found.group and "ACCESSRULE" in f"{found.text or ''}{text}".upper():  # for INCLUDE
        required(call.principal, Role.SECURITY)


def _access_of(text: str, path: Path) -> AccessRules:
    """Return the rules of a file that may have errors."""
    return access_rules(examine(text, path, "Manager").parameters)


def _kinds(call: Call, group: str) -> list[GroupKind]:
    """Return the kinds of the groups that a parameter file belongs to."""
    return [kind for name, kind in call.home.group_names() if name == group]
