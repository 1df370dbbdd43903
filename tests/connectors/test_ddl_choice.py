"""The DDL statements that an Extract captures, by its parameter file."""

from __future__ import annotations

from pathlib import Path

import pytest
from batches import ddl_statement

from ggshell.clock import FakeClock
from ggshell.connectors.ddl_choice import DdlChoice
from ggshell.errors import CaptureError
from ggshell.groups.statistics import Statistics
from ggshell.home.events import Severity
from ggshell.parameters.loading import load_extract

CREATE = ddl_statement("CREATE TABLE", "create table hr.employees (id int) -- secret")
DROP = ddl_statement("DROP TABLE", "drop table hr.employees")


def choice(folder: Path, *lines: str) -> tuple[DdlChoice, Statistics, list[str]]:
    path = folder / "ext1.prm"
    path.write_text("\n".join(["EXTRACT ext1", *lines, "TABLE hr.*;", ""]))
    statistics, told = Statistics(FakeClock(1)), list[str]()

    def tell(severity: Severity, code: str, text: str) -> None:
        told.append(f"{code} {text}")

    return DdlChoice(load_extract(path), lambda _: True, statistics, tell), statistics, told


def test_statements_are_excluded_counted_and_reported(tmp_path: Path) -> None:
    lines = ("DDL INCLUDE ALL, EXCLUDE OPTYPE DROP", "DDLSUBST 'secret' WITH 'x'", "DDLOPTIONS REPORT")
    choose, statistics, told = choice(tmp_path, *lines)
    captured = choose(CREATE)
    assert captured is not None
    assert captured.text == "create table hr.employees (id int) -- x"
    assert choose(DROP) is None
    assert statistics.snapshot()["ddl"]["excluded"] == 1
    assert told == [
        "GGS-00585 CREATE TABLE, scope MAPPED, is captured: create table hr.employees (id int) -- x",
        "GGS-00585 DROP TABLE, scope MAPPED, is excluded: drop table hr.employees",
    ]


def test_statements_after_the_start_are_skipped_and_always_reported(tmp_path: Path) -> None:
    choose, statistics, told = choice(tmp_path, "DDL", "DDLERROR RESTARTSKIP 2")
    assert [choose(each) for each in (CREATE, DROP, CREATE)] == [None, None, CREATE]
    assert (statistics.snapshot()["ddl"]["excluded"], len(told)) == (2, 2)
    assert "RESTARTSKIP" in told[0]


def test_a_statement_without_a_text_stops_the_extract_only_with_ddlerror_abend(tmp_path: Path) -> None:
    unknown = ddl_statement("ALTER TABLE", "")
    choose, _, _ = choice(tmp_path, "DDL")
    assert choose(unknown) == unknown
    choose, _, _ = choice(tmp_path, "DDL", "DDLERROR DEFAULT IGNORE INCLUDE OPTYPE ALTER", "DDLERROR DEFAULT ABEND")
    assert choose(unknown) == unknown
    choose, _, _ = choice(tmp_path, "DDL", "DDLERROR DEFAULT ABEND")
    assert choose(CREATE) is not None
    with pytest.raises(
        CaptureError, match=r"the text of ALTER TABLE on TABLE hr\.employees cannot be determined"
    ) as stop:
        choose(unknown)
    assert stop.value.code == "GGS-00583"
