"""Makes DDL records of a table and feeds them to a delivery."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from batches import Row
from pipeline.apply.hand_made import Replicats, image

from ggshell.connectors.postgres import session
from ggshell.pipeline.apply.ddl_parts import ddl_parts
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.record.change import ChangeBatch
from ggshell.record.ddl import DdlObject, DdlStatement, encode_ddl, object_definition
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import TableName

NAME = TableName("hr", "t")
WIDER = TableDefinition(
    NAME, (Column("id", "integer"), Column("a", "text"), Column("b", "numeric"), Column("c", "text")), (0,)
)
NEW = TableDefinition(TableName("hr", "made"), (Column("id", "integer"), Column("v", "text")), (0,))
PATH = (("search_path", '"$user", hr'),)


def ddl(text: str, tag: str, name: TableName = NAME, kind: str = "TABLE", **fields: object) -> Row:
    made = DdlStatement(tag, text, (DdlObject(kind, name, name),), "postgres", PATH)
    made = replace(made, **fields)  # type: ignore[arg-type]
    return Row(object_definition(made), IoType.DDL, encode_ddl(made))


def add_column(name: str = "c") -> Row:
    return ddl(f"ALTER TABLE t ADD COLUMN {name} text", "ALTER TABLE")


def create_made() -> Row:
    return ddl("CREATE TABLE hr.made (id integer PRIMARY KEY, v text)", "CREATE TABLE", NEW.name)


def wider(identity: int, c: str) -> Row:
    return Row(WIDER, IoType.INSERT, image(str(identity), "x", "1.5", c))


def made(identity: int, v: str = "v") -> Row:
    return Row(NEW, IoType.INSERT, image(str(identity), v))


def feed(replicat: Delivery, batches: Iterable[ChangeBatch]) -> None:
    for batch in batches:
        for part in ddl_parts(batch):
            replicat.feed(part)
    replicat.flush()


def query(replicats: Replicats, text: str) -> list[tuple[object, ...]]:
    with session.connect(replicats.dsn) as connection:
        return [(*row,) for row in connection.execute(text).fetchall()]


def run(replicats: Replicats, *texts: str) -> None:
    with session.connect(replicats.dsn) as connection:
        for text in texts:
            connection.execute(text)
