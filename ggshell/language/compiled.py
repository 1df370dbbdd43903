"""The trees of syntax lines, kept between runs, because pyparsing takes longer to load than most statements to run.

Each page has a file in the user's cache folder. An entry counts only for exactly the text of a syntax line and for this version
of notation.py, so a changed page or program needs no other invalidation. A file that is damaged, or that another user owns or
can write, is ignored, and the line is compiled. Nothing fails if the folder cannot be written.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from ggshell.files import read_json
from ggshell.language import notation
from ggshell.language.notation import (
    Alternatives,
    Line,
    Many,
    Node,
    Option,
    Series,
    Slot,
    Symbol,
    Word,
    compile_line,
    line_of,
)

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def compiled_line(text: str, page: str) -> Line:
    """The tree of a syntax line, from the user's cache or compiled. Raises StatementError if the notation is not valid."""
    file = _file(page)
    if file is None:
        return compile_line(text, page)
    known = _trees(file)
    if text in known:
        with contextlib.suppress(ValueError):  # the entry was not made by this program: it is replaced
            return line_of(_node(known[text]), text, page)
    line = compile_line(text, page)
    known[text] = _values(line.body)
    with contextlib.suppress(OSError):  # a cache that cannot be written is not used
        _write(file, known)
    return line


@cache
def _file(page: str) -> Path | None:
    """The file of a page, or None if this user has no cache folder."""
    home = os.environ.get("HOME", "")
    root = os.environ.get("XDG_CACHE_HOME", "") or (f"{home}/.cache" if home else "")
    return Path(root) / "ggshell" / "syntax" / _version() / f"{page}.json" if root.startswith("/") else None


@cache
def _version() -> str:
    """The version of the notation: the size and the checksum of its program."""
    program = Path(notation.__file__).read_bytes()
    return f"{len(program)}-{zlib.crc32(program):08x}"


@cache
def _trees(file: Path) -> dict[str, Any]:
    """The trees of a page by line; none if the file is missing, damaged or not this user's own."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            facts = os.fstat(descriptor)
            if facts.st_uid != os.geteuid() or facts.st_mode & _OTHERS_WRITE:
                return {}
            checksum, _, content = opened.read().partition(b"\n")
        if checksum != _checksum(content):
            return {}
        found = read_json(content)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(file: Path, trees: dict[str, Any]) -> None:
    """Replace the file of a page. It need not survive a crash, so it is not synced."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = json.dumps(trees).encode()
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(_checksum(content) + b"\n" + content)
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _checksum(content: bytes) -> bytes:
    return b"%08x" % zlib.crc32(content)


def _values(node: Node) -> list[Any]:
    """A tree as nested lists: the kind of each node and its parts."""
    match node:
        case Word(text, least):
            return ["word", text, least]
        case Slot(name):
            return ["slot", name]
        case Symbol(text):
            return ["symbol", text]
        case Series(items, commas):
            return ["series", [_values(item) for item in items], [*commas]]
        case Alternatives(arms):
            return ["alternatives", [_values(arm) for arm in arms]]
        case Option(item):
            return ["option", _values(item)]
        case Many(item):
            return ["many", _values(item)]


def _node(values: Any) -> Node:
    """The tree of nested lists. Raises ValueError if they are not what ``_values`` gives."""
    match values:
        case ["word", str(text), int(least)]:
            return Word(text, least)
        case ["slot", str(name)]:
            return Slot(name)
        case ["symbol", str(text)]:
            return Symbol(text)
        case ["series", [*items], [*commas]] if len(items) == len(commas) and all(
            isinstance(each, bool) for each in commas
        ):
            return Series(tuple(map(_node, items)), tuple(commas))
        case ["alternatives", [*arms]]:
            return Alternatives(tuple(map(_node, arms)))
        case ["option", item]:
            return Option(_node(item))
        case ["many", item]:
            return Many(_node(item))
    raise ValueError(f"{values!r} is not a node of a syntax line")
