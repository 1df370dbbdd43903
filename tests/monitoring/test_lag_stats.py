"""LAGSTATS counts changes when they are committed in the target, by how long that took."""

from __future__ import annotations

from pathlib import Path

from batches import Row, Tx, make_batch

from ggshell.monitoring.lag_stats import LagStats, delivered_lines, lag_stats
from ggshell.parameters.lines import read_parameters
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.types import Csn, TableName

TABLE = TableDefinition(TableName("shop", "items"), (Column("id", "integer"),), (0,))
START = 1_700_000_000_000_000


def rows(count: int) -> list[Row]:
    return [Row(TABLE, IoType.INSERT, b"x")] * count


def test_a_change_counts_when_it_is_committed_in_the_target() -> None:
    stats = LagStats([500_000, 2_000_000])
    stats.fed(make_batch([Tx(1, rows(3)), Tx(2, rows(1))]))
    stats.applied(None, START)
    assert delivered_lines(stats.snapshot()) == []
    stats.applied(Csn(1), START + 400_000)
    stats.applied(Csn(2), START + 1_000_000)
    assert [tuple(each.values()) for each in stats.snapshot()] == [(500, 4, 3), (2000, 4, 4)]
    assert delivered_lines(stats.snapshot()) == [
        "Delivered within 500 ms: 75.00% of 4 changes",
        "Delivered within 2000 ms: 100.00% of 4 changes",
    ]


def test_a_limit_that_is_given_in_two_units_counts_once() -> None:
    """Regression: each change counted twice, so twice as many were delivered within the limit as there were."""
    stats = LagStats([1_000_000, 1_000_000])
    stats.fed(make_batch([Tx(1, rows(3))]))
    stats.applied(Csn(1), START)
    assert delivered_lines(stats.snapshot()) == ["Delivered within 1000 ms: 100.00% of 3 changes"]


def test_a_change_that_is_read_again_counts_once() -> None:
    stats = LagStats([1000])
    stats.fed(make_batch([Tx(1, rows(1)), Tx(2, rows(1))]))
    stats.applied(Csn(1), START)
    stats.forget()
    stats.fed(make_batch([Tx(2, rows(1))]))
    stats.applied(Csn(2), START)
    assert stats.snapshot()[0]["changes"] == 2


def test_the_limits_come_from_the_parameter_file(tmp_path: Path) -> None:
    path = tmp_path / "rep1.prm"
    path.write_text("REPLICAT rep1\nLAGSTATS THRESHOLDMSECS 500, THRESHOLDSECONDS 2\nMAP a.*, TARGET b.*;\n")
    found = lag_stats(read_parameters(path, "Replicat"))
    assert found is not None
    assert [each["limit_ms"] for each in found.snapshot()] == [500, 2000]
    path.write_text("REPLICAT rep1\nLAGSTATS INTERVALMINUTES 5, REPORT\nMAP a.*, TARGET b.*;\n")
    assert lag_stats(read_parameters(path, "Replicat")) is None
