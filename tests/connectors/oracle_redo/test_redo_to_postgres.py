"""Oracle redo to PostgreSQL rows through Extract, trail and Replicat, including names, keys, NULLs and types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from processes import until
from redo_home import RedoHome

from ggshell.demo.redo_workload import Workload, WorkloadShape, write_definitions
from ggshell.home.credential import CredentialStore

TARGET = """CREATE TABLE shop.orders (order_id int PRIMARY KEY, customer_id int, status text, amount numeric,
    created timestamp, note text)"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[RedoHome]:
    found = RedoHome(tmp_path)
    yield found
    found.close()


def fetch(dsn: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def test_a_workload_arrives_in_postgresql(home: RedoHome, south: str) -> None:
    fetch(south, "CREATE SCHEMA shop")
    fetch(south, TARGET)
    CredentialStore(home.home).add("south", south, "")
    definitions = write_definitions(home.folder)
    home.home.parameters("ext1").write_text(
        f"EXTRACT ext1\nSOURCEDB redo://{home.folder}\nSOURCEDEFS {definitions}\nEXTTRAIL ./dirdat/ea\nTABLE shop.*;\n"
    )
    home.home.parameters("rep1").write_text("REPLICAT rep1\nUSERIDALIAS south\nMAP shop.*, TARGET shop.*;\n")
    model: dict[int, dict[str, str | None]] = {}

    def committed(_: int, rows: dict[int, dict[str, str | None] | None]) -> None:
        for order, row in rows.items():
            model.pop(order, None)
            if row is not None:
                model[order] = row

    shape = WorkloadShape(span=15, rate=40, rollbacks=0.1, statement_rollbacks=0.2, seed=7)
    Workload(shape, [home.writer], committed).run()
    home.add("SCN 1")
    home.run(
        "DBLOGIN USERIDALIAS south",
        "ADD CHECKPOINTTABLE shop.checks",
        "ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE shop.checks",
        "START ER *",
    )
    until("all orders arrive", lambda: fetch(south, "SELECT count(*) FROM shop.orders") == [(len(model),)], 40)
    expected = sorted(
        (order, int(row["CUSTOMER_ID"] or 0), row["STATUS"], row["AMOUNT"], "2026-11-20 08:00:00", row["NOTE"])
        for order, row in model.items()
    )
    rows = "SELECT order_id, customer_id, status, amount::text, created::text, note FROM shop.orders ORDER BY 1"
    until("the last changes arrive", lambda: fetch(south, rows) == expected, 40)
