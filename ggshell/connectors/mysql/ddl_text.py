"""DDL of MariaDB and MySQL: which statement a text is, the objects that it names, and the same text with other names.

Both sides need it: an Extract describes the statements of the log, and a Replicat renames their objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from itertools import islice, pairwise
from typing import Final, NamedTuple

from ggshell.connectors.mysql.session import quote_name
from ggshell.pipeline.apply.target import TargetNames
from ggshell.record.ddl import DdlObject
from ggshell.types import TableName

ANSI_QUOTES: Final = 1 << 2
NO_BACKSLASH_ESCAPES: Final = 1 << 20
"""Bits of ``sql_mode`` that change how a text is read."""
_TOKEN = re.compile(
    r"(?P<space>\s+|/\*M?!\d*|\*/|/\*.*?\*/|(?:--(?=\s|\Z)|\#)[^\n]*)"
    r"|(?P<name>`(?:[^`]|``)*`)"
    r"|(?P<double>\"(?:[^\"\\]|\\.|\"\")*\")"
    r"|(?P<text>'(?:[^'\\]|\\.|'')*')"
    r"|(?P<word>[\w$]+)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
_PLAIN_TOKEN = re.compile(_TOKEN.pattern.replace(r"[^\"\\]|\\.", r"[^\"]").replace(r"[^'\\]|\\.", "[^']"), re.DOTALL)
"""With NO_BACKSLASH_ESCAPES."""
_FIRST: Final = frozenset({"CREATE", "ALTER", "DROP", "RENAME"})
_TABLES: Final = frozenset({"TABLE", "TABLES"})
_KINDS: Final = _TABLES | {
    "INDEX",
    "VIEW",
    "PROCEDURE",
    "FUNCTION",
    "TRIGGER",
    "EVENT",
    "SEQUENCE",
    "PACKAGE",
    "DATABASE",
    "SCHEMA",
}
_OF_SERVER: Final = frozenset({"USER", "ROLE", "SERVER", "TABLESPACE", "LOGFILE", "INSTANCE", "RESOURCE", "UNDO"})
"""Objects of a whole server: their statements are not replicated."""
_DATABASE_OPTIONS: Final = frozenset({"CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "COMMENT", "READ"})
"""Words after ALTER DATABASE without a name, which means the database of the session."""
_TO: Final = frozenset({"TO", "AS", "="})
_RENAMED_PARTS: Final = frozenset({"COLUMN", "INDEX", "KEY"})
_OF_PARTITIONS: Final = frozenset({"WITH", "TO", "CONVERT"})
"""Words before TABLE and the name of a table that exchanges its rows with a partition, becomes one, or was one."""
_PARTITION_WORDS: Final = frozenset({"TRUNCATE", "DROP", "EXCHANGE", "CONVERT", "DISCARD", "IMPORT"})
_WHOLE_WORDS: Final = frozenset({("CONVERT", "TABLE"), ("DISCARD", "TABLESPACE"), ("IMPORT", "TABLESPACE")})
"""What removes, replaces or adds rows of a table: such a word before PARTITION, or two words."""
_LISTS: Final = frozenset({"TABLE", "VIEW", "SEQUENCE"})
"""Kinds of which one DROP can name several."""


class _Kind(Enum):
    WORD = auto()
    NAME = auto()
    TEXT = auto()
    SIGN = auto()


class _Token(NamedTuple):
    """``word``: in upper case, empty for what is quoted; ``name``: as an identifier; ``start``, ``end``: its place."""

    kind: _Kind
    word: str
    name: str
    start: int
    end: int


class NamedObject(NamedTuple):
    """An object that a statement names, and where: ``text[start:end]``, with its database if it is there."""

    name: TableName
    start: int
    end: int


class DdlText(NamedTuple):
    """A statement: its command (``CREATE TABLE``), its objects, and all places with the names of tables or such objects."""

    tag: str
    objects: tuple[DdlObject, ...]
    places: tuple[NamedObject, ...]


def ddl_text(text: str, database: str, sql_mode: int = 0) -> DdlText | None:
    """Read a statement that was executed in a database; None if it is not DDL of an object of a database."""
    found = list(_tokens(text, sql_mode))
    if not found or found[0].word not in _FIRST:
        return None
    at = next((place for place, token in enumerate(found) if token.word in _KINDS | _OF_SERVER), 0)
    kind = found[at].word
    if not at or kind in _OF_SERVER or any(token.word == "TEMPORARY" for token in found[1:at]):
        return None
    kind = {"TABLES": "TABLE", "SCHEMA": "DATABASE"}.get(kind, kind)
    if kind == "DATABASE" and (at + 1 == len(found) or found[at + 1].word in _DATABASE_OPTIONS):
        return DdlText("ALTER DATABASE", (DdlObject(kind, TableName("", database)),), ())
    places = list(_named(found, at + 1, kind, database))
    if not places:
        return None
    first = found[0].word
    others = list(_others(found, at, kind, database, places[0].end))
    tag = f"{'ALTER' if first == 'RENAME' else first} {kind}"
    objects = _objects(found, kind, places, others)
    return DdlText(tag, objects, (*(() if kind == "INDEX" else places), *others))


def executed_text(text: str, sql_mode: int = 0) -> str:
    """The statement that a text executes: what follows ``SET STATEMENT … FOR``, or all of it."""
    tokens, depth = _tokens(text, sql_mode), 0
    if [token.word for token in islice(tokens, 2)] != ["SET", "STATEMENT"]:
        return text
    for token in tokens:
        if token.kind is _Kind.SIGN:
            depth += (token.name == "(") - (token.name == ")")
        elif token.word == "FOR" and not depth:
            return text[token.end :].lstrip()
    return text


def folded(text: str, database: str, sql_mode: int = 0) -> str:
    """The text with its names of tables in lower case, as a server with ``lower_case_table_names = 1`` has them."""
    found = ddl_text(text, database, sql_mode)
    if found is None or found.objects[0].kind not in _LISTS | {"INDEX", "TRIGGER", "DATABASE"}:
        return text
    parts, place = list[str](), 0
    for _, start, end in sorted(found.places, key=lambda each: each.start):
        parts += [text[place:start], text[start:end].lower()]
        place = end
    return "".join([*parts, text[place:]])


def fills_table(text: str, sql_mode: int = 0) -> bool:
    """Whether a statement creates a table with the rows of a query, so that it changes rows like an INSERT."""
    words = [token.word for token in _tokens(text, sql_mode)]
    kind = next((word for word in words if word in _KINDS | {"TEMPORARY"}), "")
    return words[:1] == ["CREATE"] and kind == "TABLE" and "SELECT" in words


def makes_versions(text: str, found: DdlText, sql_mode: int = 0) -> bool:
    """Whether a statement makes a table system-versioned."""
    words = [token.word for token in _tokens(text, sql_mode)]
    versioning = any(pair == ("SYSTEM", "VERSIONING") for pair in pairwise(words))
    return found.tag in ("CREATE TABLE", "ALTER TABLE") and versioning and ("DROP", "SYSTEM") not in pairwise(words)


def removes_rows(text: str, found: DdlText, sql_mode: int = 0) -> str:
    """The words by which an ALTER TABLE removes, replaces or adds rows that the log does not have; empty for others."""
    if found.tag != "ALTER TABLE":
        return ""
    words = [token.word for token in _tokens(text, sql_mode)]
    for first, second in pairwise(words):
        if (first in _PARTITION_WORDS and second == "PARTITION") or (first, second) in _WHOLE_WORDS:
            return f"{first} {second}"
    return ""


def target_tables(found: DdlText, names: TargetNames) -> list[TableName]:
    """The names that the tables of a statement have in the target, each once."""
    kind = found.objects[0].kind
    tables = [_target(each.name, kind, names) for each in found.places] if kind in ("TABLE", "INDEX") else []
    return list(dict.fromkeys(tables))


def renamed(text: str, found: DdlText, names: TargetNames, sql_mode: int = 0) -> str:
    """The text with the names that its objects have in the target, and with the target names of databases."""
    spans = {}
    for name, start, end in found.places:
        target = _target(name, found.objects[0].kind, names)
        if target != name:
            spans[start] = end, ".".join(quote_name(part) for part in target if part)
    taken = {start for _, start, _ in found.places}
    for before, dot, _ in _triples(list(_tokens(text, sql_mode))):
        schema = names.schema(before.name)
        if dot.name == "." and before.start not in taken and schema != before.name:
            spans[before.start] = before.end, quote_name(schema)
    parts, place = list[str](), 0
    for start, (end, new) in sorted(spans.items()):
        parts += [text[place:start], new]
        place = end
    return "".join([*parts, text[place:]])


def without(text: str, found: DdlText, taken: Sequence[bool]) -> str:
    """The text of a statement with several objects (DROP a, b; RENAME TABLE a TO b, c TO d) for those that are taken."""
    step = len(found.places) // len(taken)
    parts = [found.places[place * step : (place + 1) * step] for place, each in enumerate(taken) if each]
    listed = ", ".join(text[part[0].start : part[-1].end] for part in parts)
    return f"{text[: found.places[0].start]}{listed}{text[found.places[-1].end :]}"


def _target(name: TableName, kind: str, names: TargetNames) -> TableName:
    if kind == "DATABASE":
        return TableName("", names.schema(name.name))
    return names.table(name) if kind in ("TABLE", "INDEX") else names.other(name)


def _tokens(text: str, sql_mode: int) -> Iterator[_Token]:
    pattern = _PLAIN_TOKEN if sql_mode & NO_BACKSLASH_ESCAPES else _TOKEN
    for match in pattern.finditer(text):
        whole, kind = match[0], match.lastgroup
        if kind == "space":
            continue
        if kind == "name" or (kind == "double" and sql_mode & ANSI_QUOTES):
            quote = whole[0]
            yield _Token(_Kind.NAME, "", whole[1:-1].replace(quote * 2, quote), *match.span())
        elif kind == "word":
            yield _Token(_Kind.WORD, whole.upper(), whole, *match.span())
        else:
            yield _Token(_Kind.SIGN if kind == "sign" else _Kind.TEXT, "", whole, *match.span())


def _triples(found: Sequence[_Token]) -> Iterator[tuple[_Token, _Token, _Token]]:
    return zip(found, found[1:], found[2:], strict=False)


def _named(found: Sequence[_Token], at: int, kind: str, database: str) -> Iterator[NamedObject]:
    """The objects of the statement; of RENAME TABLE each old and new name."""
    if kind == "PACKAGE" and at < len(found) and found[at].word == "BODY":
        at += 1
    while True:
        while at < len(found) and found[at].word in ("IF", "NOT", "EXISTS"):
            at += 1
        name = _name(found, at, "" if kind == "DATABASE" else database)
        if name is None:
            return
        yield name
        at = next(place for place, token in enumerate(found) if token.end == name.end) + 1
        if kind == "INDEX":
            return
        if found[0].word == "RENAME":
            at = 1 + next(
                (n for n in range(at, len(found)) if found[n].word == "TO" or found[n].name == ","), len(found)
            )
        elif found[0].word == "DROP" and kind in _LISTS and at < len(found) and found[at].name == ",":
            at += 1
        else:
            return


def _name(found: Sequence[_Token], at: int, database: str) -> NamedObject | None:
    """The name at a place, with or without its database."""
    if at >= len(found) or found[at].kind not in (_Kind.WORD, _Kind.NAME):
        return None
    first = found[at]
    if at + 2 < len(found) and found[at + 1].name == "." and found[at + 2].kind in (_Kind.WORD, _Kind.NAME):
        return NamedObject(TableName(first.name, found[at + 2].name), first.start, found[at + 2].end)
    return NamedObject(TableName(database, first.name), first.start, first.end)


def _objects(
    found: Sequence[_Token], kind: str, places: Sequence[NamedObject], others: Sequence[NamedObject]
) -> tuple[DdlObject, ...]:
    """The objects of a statement. A table that is renamed is found under its new name, as in other databases."""
    if kind in ("INDEX", "TRIGGER"):
        return (DdlObject(kind, places[0].name, others[0].name if others else None),)
    if kind != "TABLE":
        return tuple(DdlObject(kind, each.name) for each in places)
    renames = {found[place].start for place in _new_names(found)}
    new = [each for each in others if each.start in renames]
    chosen = places[1::2] if found[0].word == "RENAME" else new or places
    return tuple(DdlObject(kind, each.name, each.name) for each in chosen)


def _new_names(found: Sequence[_Token]) -> Iterator[int]:
    """The places of the new name of a table in ALTER TABLE: after RENAME, with TO, AS, = or nothing between."""
    for place, token in enumerate(found[1:-1], 1):
        after = found[place + 1]
        if token.word != "RENAME" or after.word in _RENAMED_PARTS:
            continue
        new = place + 2 if (after.word or after.name) in _TO else place + 1
        if new < len(found):
            yield new


def _others(found: Sequence[_Token], at: int, kind: str, database: str, end: int) -> Iterator[NamedObject]:
    """The tables that a statement names besides its objects: of an index or a trigger, of a foreign key, of LIKE, RENAME and
    EXCHANGE PARTITION.

    ``end``: of the name of the object.
    """
    renames = set(_new_names(found))
    for place in range(at + 1, len(found) - 1):
        word, before = found[place].word, found[place - 1]
        if kind in ("INDEX", "TRIGGER"):
            counts = word == "ON"
        elif word == "LIKE":
            counts = end in (before.end, found[place - 2].end if before.name == "(" else -1)
        else:
            exchanges = word == "TABLE" and before.word in _OF_PARTITIONS
            counts = kind == "TABLE" and (word == "REFERENCES" or place + 1 in renames or exchanges)
        name = _name(found, place + 1, database) if counts else None
        if name is not None:
            yield name
            if kind in ("INDEX", "TRIGGER"):
                return
