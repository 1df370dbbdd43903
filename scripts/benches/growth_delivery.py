"""The part of the bench ``growth`` that needs whole processes: Extract and Replicat by number of tables and of columns."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import NamedTuple

from benches.ground import Ground

_AT_ONCE = 500
"""Tables that one statement creates or empties: each needs a lock until its end."""
_NUMBERS = itertools.count()


class Shape(NamedTuple):
    """The size of a load: the number of tables, of columns besides the key, and of rows in each table."""

    tables: int
    columns: int
    rows: int


def tables(count: int) -> Shape:
    """Many tables with a few rows."""
    return Shape(count, 2, 2)


def columns(count: int) -> Shape:
    """A table with many columns."""
    return Shape(1, count - 1, 200)


def extract(place: Ground, shape: Shape, rounds: int) -> Callable[[], float]:
    """What measures the seconds from the start of an Extract until it has written the rows."""
    run = _Run(place, shape)
    groups = [run.add_extract() for _ in range(rounds)]
    run.fill()
    left = iter(groups)
    return lambda: run.capture(next(left))


def replicat(place: Ground, shape: Shape) -> Callable[[], float]:
    """What measures the seconds from the start of a Replicat until the rows are visible in the target."""
    run = _Run(place, shape)
    group = run.add_extract()
    run.fill()
    run.capture(group)
    return lambda: run.deliver(group)


class _Run:
    def __init__(self, place: Ground, shape: Shape) -> None:
        self._place = place
        self._shape = shape
        self._schema = f"g{next(_NUMBERS)}"
        self._end = ""
        for name in ("north", "south"):
            self._in_each_table(name, f"CREATE TABLE {self._schema}.t%s ({self._definition()})", create=True)
        place.obey("DBLOGIN USERIDALIAS north", f"ADD TRANDATA {self._schema}.*")

    def _definition(self) -> str:
        return ", ".join(["id int PRIMARY KEY", *(f"c{number} smallint" for number in range(self._shape.columns))])

    def _in_each_table(self, name: str, statement: str, *, create: bool = False) -> None:
        """Run a statement for each table; %s stands for its number."""
        quoted = statement.replace("'", "''")
        with self._place.connect(name) as connection:
            if create:
                connection.execute(f"CREATE SCHEMA {self._schema} AUTHORIZATION ggadmin".encode())
            connection.execute("SET ROLE ggadmin")
            for first in range(0, self._shape.tables, _AT_ONCE):
                last = min(self._shape.tables, first + _AT_ONCE) - 1
                connection.execute(
                    f"DO $$ BEGIN FOR n IN {first} .. {last} LOOP EXECUTE format('{quoted}', n); END LOOP; END $$".encode()
                )

    def add_extract(self) -> str:
        """Add an Extract that will read the rows; its name."""
        group = f"x{next(_NUMBERS)}"
        self._place.parameters(
            group, f"EXTRACT {group}", "USERIDALIAS north", f"EXTTRAIL ./dirdat/{group}/ea", f"TABLE {self._schema}.*;"
        )
        self._place.obey(
            "DBLOGIN USERIDALIAS north",
            f"REGISTER EXTRACT {group}",
            f"ADD EXTRACT {group}, TRANLOG, BEGIN NOW",
            f"ADD EXTTRAIL ./dirdat/{group}/ea, EXTRACT {group}",
        )
        return group

    def fill(self) -> None:
        values = ", ".join(["i", *(str(number % 100) for number in range(self._shape.columns))])
        rows = f"generate_series(1, {self._shape.rows}) i"
        self._in_each_table("north", f"INSERT INTO {self._schema}.t%s SELECT {values} FROM {rows}")
        self._end = self._place.end_of_log()

    def capture(self, group: str) -> float:
        began = time.perf_counter()
        self._place.obey(f"START EXTRACT {group}")
        self._place.wait_for_slot(f"ggs_{group}", self._end)
        taken = time.perf_counter() - began
        self._place.obey(f"STOP EXTRACT {group}")
        return taken

    def deliver(self, captured: str) -> float:
        group = f"r{next(_NUMBERS)}"
        mapping = f"MAP {self._schema}.*, TARGET {self._schema}.*;"
        self._place.replicat(group, f"./dirdat/{captured}/ea", mapping, option="NODBCHECKPOINT")
        began = time.perf_counter()
        self._place.obey(f"START REPLICAT {group}")
        self._place.wait_for_row(f"{self._schema}.t{self._shape.tables - 1}", self._shape.rows)
        taken = time.perf_counter() - began
        self._place.obey(f"STOP REPLICAT {group}")
        self._in_each_table("south", f"TRUNCATE {self._schema}.t%s")
        return taken
