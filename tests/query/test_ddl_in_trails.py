"""DDL statements in trails: counted and found, and never read as rows of their table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from batches import Row, ddl_row, ddl_statement
from both_engines import local_engine, spark_engine
from trail_samples import EMPLOYEES, insert, trail_in, update, write_trail

from ggshell.errors import TrailError
from ggshell.query.queries import counts, finding
from ggshell.query.queries.trails import QueriedTrails, trails
from ggshell.query.session import WarmSession
from ggshell.query.splits import find_definitions
from ggshell.query.trail_read import plan, trail_read_of
from ggshell.record.ddl import DdlObject, DdlStatement, ddl_pairs, encode_ddl
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType
from ggshell.trail.columnar import read_columnar
from ggshell.types import TableName

CREATE = ddl_statement("CREATE TABLE", "create table hr.employees (id int, \"n,o'te\" text default ',X=''y'',')")
INDEX = DdlStatement(
    "CREATE INDEX",
    "create index i on hr.employees (id)",
    (DdlObject("INDEX", TableName("hr", "i"), TableName("hr", "employees")),),
)
GRANT = DdlStatement("GRANT", "grant usage on schema hr to app")
TRANSACTIONS: list[list[Row]] = [
    [ddl_row(CREATE), insert(EMPLOYEES, id="1", name="Ada"), ddl_row(INDEX)],
    [ddl_row(GRANT)],
    [update(EMPLOYEES, id="1", name="Ada L.")],
]


@pytest.fixture
def queried(tmp_path: Path) -> QueriedTrails:
    name = trail_in(tmp_path)
    write_trail(name, TRANSACTIONS)
    return trails([str(name)], tmp_path, local_engine())


def test_statements_are_rows_whose_columns_are_the_pairs_of_the_record(queried: QueriedTrails) -> None:
    (batch,) = read_columnar(Path(queried.files[0]))
    rows = batch.to_pylist()
    assert [row["op"] for row in rows] == ["DDLOP", "Insert", "DDLOP", "DDLOP", "FieldComp"]
    assert [(row["owner"], row["table"]) for row in rows] == [
        ("hr", "employees"),
        ("hr", "employees"),
        ("hr", "i"),
        ("", ""),
        ("hr", "employees"),
    ]
    found = [dict(row["columns"]) for row in rows]
    assert found[0] == ddl_pairs(encode_ddl(CREATE))
    assert found[1] == {"id": "1", "name": "Ada"}
    assert found[3] == ddl_pairs(encode_ddl(GRANT))
    assert [row["before"] for row in rows] == [[]] * 5


def test_a_damaged_statement_is_reported_with_its_place(tmp_path: Path) -> None:
    name = trail_in(tmp_path)
    write_trail(name, [[Row(TableDefinition(TableName("hr", "x"), (), ()), IoType.DDL, b",TAG='open")]])
    with pytest.raises(TrailError, match="damaged at RBA"):
        list(read_columnar(name.file(0)))


def test_the_rows_of_a_table_do_not_include_its_statements(queried: QueriedTrails) -> None:
    assert find_definitions([Path(queried.files[0])], "hr.employees") == [EMPLOYEES]
    read = trail_read_of({"path": queried.files[0], "table": "hr.employees"})
    table = pa.Table.from_batches([batch for split in plan(queried.files) for batch in read.batches(split)])
    assert table.column("name").to_pylist() == ["Ada", "Ada L."]


def test_statements_are_counted_as_ddl(queried: QueriedTrails) -> None:
    answer = counts.count(queried)
    found = {row[:3]: row[3] for row in answer.rows}
    assert found == {
        ("", "", "DDLOP"): 1,
        ("hr", "employees", "DDLOP"): 1,
        ("hr", "employees", "FieldComp"): 1,
        ("hr", "employees", "Insert"): 1,
        ("hr", "i", "DDLOP"): 1,
    }
    top = counts.busiest_tables(queried, 1)
    row = dict(zip(top.columns, top.rows[0], strict=True))
    assert (row["table"], row["inserts"], row["updates"], row["ddl"]) == ("employees", 1, 1, 1)


@pytest.mark.parametrize(
    ("pattern", "statements"),
    [
        ("hr.employees", [CREATE, INDEX]),
        ("HR.I", [INDEX]),
        ("*.*", [CREATE, INDEX]),
        ("hr.x*", []),
    ],
)
def test_statements_are_found_by_the_name_of_their_object(
    queried: QueriedTrails, pattern: str, statements: list[DdlStatement]
) -> None:
    answer = finding.find_ddl(queried, pattern)
    assert [row[-1] for row in answer.rows] == [each.text for each in statements]
    assert "objects" not in answer.columns


def test_the_history_of_a_row_does_not_include_statements(queried: QueriedTrails) -> None:
    answer = finding.find_row(queried, EMPLOYEES.name, ("id",), ("1",))
    assert [row[answer.columns.index("op")] for row in answer.rows] == ["Insert", "FieldComp"]


@pytest.mark.slow
def test_both_engines_find_the_same_statements(queried: QueriedTrails, warm: WarmSession) -> None:
    on_spark = QueriedTrails(queried.files, spark_engine(warm))
    assert finding.find_ddl(on_spark, "hr.*").rows == finding.find_ddl(queried, "hr.*").rows
    assert counts.count(on_spark).rows == counts.count(queried).rows
