"""DDL statements as trail records: one statement, the objects that it concerns, and the session it ran in.

A DDL record is a row of a batch with the operation ``IoType.DDL``. It stands between the rows of its transaction, at the
place where the statement ran. Its table is the statement's object, with a definition without columns
(``object_definition``). Its data area is a sequence of ``,KEY='value',`` pairs, as in GoldenGate's DDL records; a quote
in a value is doubled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ggshell.files import read_json
from ggshell.record.definition import TableDefinition
from ggshell.types import TableName

NO_OBJECT: Final = TableName("", "")
_CREATIONS: Final = frozenset({"CREATE TABLE", "CREATE TABLE AS", "SELECT INTO"})
_PAIR = re.compile(rb",([A-Z]+)='((?:[^']|'')*)',")


class DdlObject(NamedTuple):
    """An object that a statement creates, changes or drops.

    ``kind``: its type in upper case (``TABLE``, ``INDEX``, ``TABLE COLUMN``); ``name``: schema and name, with an empty
    schema if it belongs to none, and both empty if it has no name of its own; ``table``: the table that it belongs to,
    such as an index's (its own name for a table, None if it belongs to no table).
    """

    kind: str
    name: TableName
    table: TableName | None = None


class DdlColumn(NamedTuple):
    """A column of a table after the statement.

    ``number`` never changes while the column exists, so it shows a rename. ``type_id``: as in ``Column``.
    """

    number: int
    name: str
    type_name: str
    type_id: int
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class DdlStatement:
    """One DDL statement.

    ``tag``: the statement's command (``CREATE TABLE``, ``ALTER INDEX``). ``text``: the single statement, without the
    others that were sent with it. ``objects``: what it concerns, the main object first. ``database``: the kind of
    database whose language the text is in (``postgres``). ``settings``: names and values of the session settings that
    the text depends on, such as ``search_path``. ``role``: the user who ran it. ``columns``: the columns of the main
    object after the statement, if that is a table that exists.
    """

    tag: str
    text: str
    objects: tuple[DdlObject, ...] = ()
    database: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    role: str = ""
    columns: tuple[DdlColumn, ...] = ()

    @property
    def operation(self) -> str:
        """The operation type, as in OPTYPE: the first word of the command."""
        return self.tag.partition(" ")[0]

    @property
    def main(self) -> DdlObject:
        """The main object; one without a name if the statement concerns none (GRANT on several kinds)."""
        return self.objects[0] if self.objects else DdlObject("", NO_OBJECT)

    @property
    def owner(self) -> str:
        return self.main.name.owner

    @property
    def name(self) -> str:
        return self.main.name.name

    @property
    def object_type(self) -> str:
        return self.main.kind


def creates_table(statement: DdlStatement) -> bool:
    """Whether a statement has created a table; CREATE TABLE IF NOT EXISTS is not logged if the table existed."""
    return statement.main.kind == "TABLE" and statement.tag in _CREATIONS


def object_definition(statement: DdlStatement) -> TableDefinition:
    """Return the definition under which a statement's record is stored: its object's name, without columns."""
    return TableDefinition(statement.main.name, (), ())


def encode_ddl(statement: DdlStatement) -> bytes:
    """Encode a statement as the data area of its record."""
    main = statement.main
    values = {
        "OWNER": main.name.owner,
        "NAME": main.name.name,
        "TYPE": main.kind,
        "OPTYPE": statement.operation,
        "TAG": statement.tag,
        "DATABASE": statement.database,
        "ROLE": statement.role,
        "SETTINGS": _json(dict(statement.settings)) if statement.settings else "",
        "OBJECTS": _json([[kind, *name, *(table or ())] for kind, name, table in statement.objects]),
        "COLUMNS": _json([list(column) for column in statement.columns]) if statement.columns else "",
        "TEXT": statement.text,
    }
    return join_pairs({key: value for key, value in values.items() if value})


def join_pairs(pairs: Mapping[str, str]) -> bytes:
    """The reverse of ``ddl_pairs``."""
    return "".join(f",{key}='{value.replace(chr(39), chr(39) * 2)}'," for key, value in pairs.items()).encode()


def decode_ddl(data: bytes | memoryview) -> DdlStatement:
    """Decode the data area of a DDL record. Raises ValueError if it is not in the form of ``encode_ddl``."""
    pairs = ddl_pairs(data)
    try:
        objects = ddl_objects(pairs.get("OBJECTS", ""))
        columns = tuple(DdlColumn(*fields) for fields in read_json(pairs.get("COLUMNS") or "[]"))
        settings = tuple(read_json(pairs.get("SETTINGS") or "{}").items())
        return DdlStatement(
            pairs["TAG"],
            pairs.get("TEXT", ""),
            objects,
            pairs.get("DATABASE", ""),
            settings,
            pairs.get("ROLE", ""),
            columns,
        )
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"the DDL record is not complete: {error}") from error


def ddl_pairs(data: bytes | bytearray | memoryview) -> dict[str, str]:
    """Split a data area into its pairs, in order. Raises ValueError if a part of it is not a pair."""
    raw, found, place = bytes(data), dict[str, str](), 0
    while place < len(raw):
        match = _PAIR.match(raw, place)
        if match is None:
            raise ValueError(f"the DDL record has no valid pair at byte {place}")
        found[match[1].decode()] = match[2].replace(b"''", b"'").decode()
        place = match.end()
    return found


def ddl_objects(text: str) -> tuple[DdlObject, ...]:
    """The objects in the pair OBJECTS. Raises ValueError, TypeError if the text is not valid."""
    return tuple(_object(fields) for fields in read_json(text or "[]"))


def _object(fields: list[Any]) -> DdlObject:
    kind, owner, name, *table = map(str, fields)
    return DdlObject(kind, TableName(owner, name), TableName(*table) if table else None)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
