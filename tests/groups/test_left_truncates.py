"""A TRUNCATE that Replicat does not apply is reported in its report and in ggserr.log, once for each table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from batches import Row, Tx, make_batch
from pipelines import Pipeline
from processes import until

from ggshell.groups.row_stage import LeftTruncates
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import TableName

IGNORED = "TRUNCATE of s.ev is not applied: IGNORETRUNCATES is in effect. To apply it, use GETTRUNCATES."
UNMAPPED = "TRUNCATE of s.ev_2027_02 is not applied: no MAP includes the table."


def _messages(
    name: str, source: str, *, applies: bool, excludes: tuple[str, ...] = (), ignored: frozenset[int] = frozenset()
) -> list[str]:
    messages: list[str] = []
    table = TableDefinition(TableName.parse(name), (Column("id", "integer"),), (0,))
    mapper = Mapper([MapRule(source, source, ignored=ignored)], lambda _: None, excludes)
    batch = make_batch([Tx(1, [Row(table, IoType.INSERT, b"x"), Row(table, IoType.PURGE_DATA, b"")])])
    check = LeftTruncates(mapper, messages.append, applies=applies).check
    check(batch)
    check(batch)
    return messages


@pytest.mark.parametrize("source", ["s.ev", "s.*", "*.*"])
def test_a_truncate_that_ignoretruncates_skips_is_reported_once(source: str) -> None:
    assert _messages("s.ev", source, applies=False) == [IGNORED]
    assert _messages("s.ev", source, applies=True, ignored=frozenset({IoType.PURGE_DATA})) == [IGNORED]
    assert _messages("s.ev", source, applies=True) == []


def test_a_truncated_partition_that_no_map_includes_is_reported_once() -> None:
    (text,) = _messages("s.ev_2027_02", "s.ev", applies=True)
    assert text.startswith(UNMAPPED)


def test_tables_that_are_not_replicated_are_not_reported() -> None:
    assert _messages("s.other", "t.*", applies=True) == []
    assert _messages("s.other", "s.ev", applies=False) == []
    assert _messages("s.other", "s.ev", applies=True, excludes=("s.o*",)) == []


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    """A pipeline with a partitioned table that TABLE and MAP name without its partitions."""
    pipeline = Pipeline(tmp_path / "home", north, south)
    for run, schema in ((pipeline.in_north, "a"), (pipeline.in_south, "b")):
        run(
            f"CREATE TABLE {schema}.ev (id int PRIMARY KEY) PARTITION BY RANGE (id)",
            f"CREATE TABLE {schema}.ev_low PARTITION OF {schema}.ev FOR VALUES FROM (0) TO (10)",
        )
    yield pipeline
    pipeline.close()


def _detail(pipeline: Pipeline) -> str:
    return pipeline.run("INFO EXTRACT ext1, DETAIL")


def test_truncates_that_are_not_applied_are_in_the_report_and_the_log(pipeline: Pipeline) -> None:
    tables = "TABLE a.ev;\nTABLE a.items;\n"
    maps = "MAP a.ev, TARGET b.ev;\nMAP a.items, TARGET b.items;\n"
    pipeline.write(
        "ext1", f"EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nGETTRUNCATES\n{tables}TABLE a.ev_low;\n"
    )
    pipeline.write("rep1", f"REPLICAT rep1\nUSERIDALIAS south\nGETTRUNCATES\n{maps}")
    pipeline.add()
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.ev")
    pipeline.start()
    pipeline.in_north("TRUNCATE a.ev_low", "INSERT INTO a.items VALUES (1, '', 0)")
    pipeline.wait_for_rows(1)
    lost = "TRUNCATE of a.ev_low is not applied: no MAP includes the table."
    until("the report has the message", lambda: lost in pipeline.home.report("REP1").read_text())
    assert lost in pipeline.home.event_log.read_text()
    pipeline.run("STOP rep1", "STOP ext1")
    pipeline.write("rep1", f"REPLICAT rep1\nUSERIDALIAS south\n{maps}")
    pipeline.write("ext1", f"EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nGETTRUNCATES\n{tables}")
    pipeline.start()
    lost = "TRUNCATE of a single partition of a.ev is not captured for a.ev_low: requires a TABLE parameter"
    until("Extract reports the partition", lambda: lost in pipeline.home.report("EXT1").read_text())
    until("DETAIL reports it", lambda: "a.ev: TRUNCATE of a single partition, a.ev_low: requires" in _detail(pipeline))
    pipeline.in_south("CREATE TABLE b.ev_high PARTITION OF b.ev FOR VALUES FROM (10) TO (20)")
    pipeline.in_north(
        "CREATE TABLE a.ev_high PARTITION OF a.ev FOR VALUES FROM (10) TO (20)",
        "BEGIN; TRUNCATE a.ev_low; ROLLBACK",
        "INSERT INTO a.ev VALUES (11)",
        "TRUNCATE a.ev_high; DROP TABLE a.ev_high",
    )
    lost = "GGS-00547  TRUNCATE of a.ev_high, a partition of a.ev, is not in the trail"
    until("a partition that has been dropped is reported", lambda: lost in pipeline.home.report("EXT1").read_text())
    assert "TRUNCATE of a.ev_low, a partition" not in pipeline.home.report("EXT1").read_text(), "it was rolled back"
    pipeline.in_north("TRUNCATE a.ev", "INSERT INTO a.items VALUES (2, '', 0)")
    pipeline.wait_for_rows(2)
    ignored = "TRUNCATE of a.ev is not applied: IGNORETRUNCATES is in effect."
    until("the report has the message", lambda: ignored in pipeline.home.report("REP1").read_text())
    assert ignored in pipeline.home.event_log.read_text()
