"""Rows that a collation or a conversion of the server would confuse with others: the right one is changed, with its values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from batches import Row, Tx
from mysql_deliveries import MysqlDeliveries
from pipeline.apply.hand_made import image, trail

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.error_rules import Switches
from ggshell.pipeline.apply.responses import Responses
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import join_key_update
from ggshell.record.operation import IoType
from ggshell.types import TableName

ERROR_VALUES = "SELECT id, e, e + 0, CAST(at AS CHAR) FROM k ORDER BY id"


@pytest.fixture
def deliveries(mariadb: str) -> Iterator[MysqlDeliveries]:
    found = MysqlDeliveries(mariadb)
    yield found
    found.close()


def _source(*types: str, key: tuple[int, ...] = (0,)) -> TableDefinition:
    """A source table k with the columns id, e, at … of these types."""
    names = ("id", "e", "at")[: len(types)]
    return TableDefinition(TableName("hr", "k"), tuple(map(Column, names, types)), key)


def _apply(delivery: Delivery, *rows: Row) -> None:
    delivery.feed(
        trail(
            [Tx(int(delivery.applied.csn.value) + 1 if delivery.applied and delivery.applied.csn else 1, list(rows))]
        )[0]
    )
    delivery.flush()


@pytest.mark.parametrize("index", ["", ", INDEX (id)"])
def test_the_row_with_exactly_the_key_is_changed_if_no_unique_index_tells_rows_apart(
    deliveries: MysqlDeliveries, index: str
) -> None:
    """Regression: the first row whose key is equal under the collation was changed."""
    keys = ("R", "r", "r ", "é", "e")
    deliveries.execute(f"CREATE TABLE k (id varchar(9), e int{index}) COLLATE utf8mb4_general_ci")
    deliveries.execute(*(f"INSERT INTO k VALUES ('{key}', 0)" for key in keys))
    source, delivery = _source("text", "integer"), deliveries.start()
    _apply(delivery, *(Row(source, IoType.FIELD_COMP, image(key, str(n))) for n, key in enumerate(keys, 1)))
    assert deliveries.execute("SELECT id, e FROM k ORDER BY e") == [(key, n) for n, key in enumerate(keys, 1)]
    moved = join_key_update(image("r"), image("s", "2"))
    _apply(delivery, Row(source, IoType.DELETE, image("e")), Row(source, IoType.KEY_FIELD_COMP, moved))
    assert deliveries.execute("SELECT id, e FROM k ORDER BY e") == [("R", 1), ("s", 2), ("r ", 3), ("é", 4)]


def test_an_insert_onto_a_row_in_another_case_has_its_key_after_a_collision(deliveries: MysqlDeliveries) -> None:
    deliveries.execute(
        "CREATE TABLE k (id varchar(9) PRIMARY KEY, e int) COLLATE utf8mb4_general_ci", "INSERT INTO k VALUES ('R', 0)"
    )
    delivery = deliveries.start(responses=Responses(switches=Switches(collisions=True)))
    _apply(delivery, Row(_source("text", "integer"), IoType.INSERT, image("r", "1")))
    assert deliveries.execute("SELECT id, e FROM k") == [("r", 1)]


@pytest.mark.parametrize(
    ("column", "source", "value"),
    [
        ("enum('x','y','a')", "text", "2"),
        ("enum('x','y','a')", "text", "X"),
        ("enum('x','y','a')", "text", ""),
        ("enum('x','y','a /* c')", "enum", "a"),
        ("set('x','y')", "integer", "3"),
        ("set('x','y')", "set", "y,x"),
        ("year", "integer", "5"),
        ("year", "integer", "70"),
    ],
)
def test_a_value_that_the_server_reads_as_another_one_is_refused(
    deliveries: MysqlDeliveries, column: str, source: str, value: str
) -> None:
    deliveries.execute(f"CREATE TABLE k (id int PRIMARY KEY, e {column})")
    with pytest.raises(ApplyError, match=r"cannot be stored in column e, .*, without a change") as raised:
        _apply(deliveries.start(), Row(_source("integer", source), IoType.INSERT, image("1", value)))
    assert raised.value.code == "GGS-00482"


@pytest.mark.parametrize(
    ("column", "source", "value", "select", "stored"),
    [
        ("enum('x','2','a\\\\b /* c')", "text", "a\\b /* c", "e", "a\\b /* c"),
        ("enum('x','1')", "text", "1", "e + 0", 2),
        ("set('x','1')", "text", "x,1", "e", "x,1"),
        ("year", "integer", "0", "CAST(e AS CHAR)", "0000"),
        ("year", "year", "0000", "CAST(e AS CHAR)", "0000"),
        ("float", "float", "3.4028235e+38", "e + 0e0", 3.4028234663852886e38),
    ],
)
def test_a_value_at_the_edge_of_its_type_arrives(
    deliveries: MysqlDeliveries, column: str, source: str, value: str, select: str, stored: Any
) -> None:
    deliveries.execute(f"CREATE TABLE k (id int PRIMARY KEY, e {column})")
    definition, delivery = _source("integer", source), deliveries.start()
    _apply(delivery, Row(definition, IoType.INSERT, image("1", value)))
    assert deliveries.execute(f"SELECT {select} FROM k") == [(stored,)]


def test_the_error_value_of_an_enum_arrives(deliveries: MysqlDeliveries) -> None:
    """The number of the error value is 0. A strict session refuses to write it."""
    created = "timestamp NOT NULL DEFAULT '2020-01-01 00:00:00' ON UPDATE CURRENT_TIMESTAMP"
    deliveries.execute(f"CREATE TABLE k (id int PRIMARY KEY, e enum('x','y') NOT NULL, at {created})")
    source, delivery = _source("int", "enum", "timestamp"), deliveries.start()
    time = "2021-02-03 04:05:06"
    _apply(delivery, *(Row(source, IoType.INSERT, image(str(n), "" if n % 2 else "y", time)) for n in range(1, 7)))
    moved = join_key_update(image("2"), image("12", ""))
    _apply(
        delivery,
        Row(source, IoType.FIELD_COMP, image("1", "x")),
        Row(source, IoType.KEY_FIELD_COMP, moved),
        Row(source, IoType.FIELD_COMP, image("4", "")),
        Row(source, IoType.DELETE, image("6", "y", time)),
    )
    expected = [(1, "x", 1), (3, "", 0), (4, "", 0), (5, "", 0), (12, "", 0)]
    assert deliveries.execute(ERROR_VALUES) == [(*row, time) for row in expected]


def test_a_row_without_a_key_is_found_by_the_error_value_of_an_enum(deliveries: MysqlDeliveries) -> None:
    deliveries.execute("CREATE TABLE k (id int, e enum('x','y'), at int)")
    source, delivery = _source("int", "enum", "int", key=()), deliveries.start()
    rows = [image("1", "", "1"), image("1", "x", "1")]
    _apply(delivery, *(Row(source, IoType.INSERT, row) for row in rows))
    moved = join_key_update(rows[0], image("1", "y", "2"))
    _apply(delivery, Row(source, IoType.KEY_FIELD_COMP, moved))
    assert deliveries.execute("SELECT e, at FROM k ORDER BY at") == [("x", 1), ("y", 2)]
