"""The lag pipeline: the same figures as the heartbeat arithmetic, the same rows from both engines and from every source."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import local_engine, spark_engine

from ggshell.clock import to_datetime
from ggshell.monitoring import lag_archive
from ggshell.monitoring.lag_archive import ArchiveRow
from ggshell.monitoring.spreads import percentile, spreads
from ggshell.pipeline.heartbeat.names import HISTORY_COLUMNS
from ggshell.pipeline.heartbeat.row import Beat
from ggshell.query.local import LocalEngine
from ggshell.query.queries import lag
from ggshell.query.queries.heartbeats import ASKED, HOPS, Heartbeats, archive, history, merged
from ggshell.query.session import WarmSession
from ggshell.query.slices import answered, sliced
from ggshell.query.views import PARTS, FirstHalf, QueryAnswer, RowsView

pytestmark = pytest.mark.slow

SECOND = 1_000_000
NOON = 1_700_000_000 * SECOND // (86_400 * SECOND) * 86_400 * SECOND + 43_200 * SECOND


def heartbeat(
    sent: int, seconds: float, remote: str = "north", local: str = "south", path: str | None = "DP1"
) -> ArchiveRow:
    """A heartbeat with half of its lag before Extract and the rest divided evenly among the later hops."""
    half = sent + round(seconds * SECOND / 2)
    step = round(seconds * SECOND / 6)
    routed = half + step if path else None
    row = Beat(local, sent, remote, "EXT1", path, "REP1", sent, half, routed, half + 2 * step)
    return ArchiveRow(row, sent + round(seconds * SECOND))


def random_heartbeats(seed: int, count: int = 400) -> list[ArchiveRow]:
    rng = random.Random(seed)
    found = []
    for number in range(count):
        remote, local = rng.choice([("north", "south"), ("south", "north")])
        sent = NOON + number * 30 * SECOND + rng.randrange(SECOND)
        found.append(heartbeat(sent, rng.expovariate(1.0) + 0.01, remote, local, rng.choice([None, "DP1"])))
    return found


def copied(rows: Sequence[ArchiveRow]) -> list[bytes]:
    """Rows as the text of COPY, in pieces that end anywhere."""
    places = [HISTORY_COLUMNS.index(name) for name in ASKED]
    lines = (",".join(_field(row.values[place]) for place in places) for row in rows)
    text = "".join(f"{line}\n" for line in lines).encode()
    return [text[first : first + 37] for first in range(0, len(text), 37)]


def _field(value: object) -> str:
    if value is None:
        return ""
    return str(to_datetime(value).replace(tzinfo=None)) if isinstance(value, int) else f'"{value}"'


def archived(folder: Path, rows: list[ArchiveRow]) -> Heartbeats:
    lag_archive.write(folder, "REP1", rows)
    return Heartbeats((archive(1, "home", folder),), local_engine())


def test_percentiles_equal_those_of_the_heartbeat_arithmetic(tmp_path: Path) -> None:
    heartbeats = archived(tmp_path, random_heartbeats(1))
    wanted = {
        (each.begin, each.remote, each.path, each.hop): each
        for each in spreads(lag_archive.read_arrivals(tmp_path, 0), "HOUR")
    }
    found = lag.windows(heartbeats, "HOUR")
    assert sum(each.beats for each in found) == 400
    for window in found:
        for hop in HOPS:
            known = window.hops[hop]
            spread = wanted.pop((window.begin, window.way.remote, f"==> {window.way.path} ==>", hop), None)
            if spread is None:
                assert known.mean is None
                continue
            assert (known.p50, known.p95, known.p99, known.longest) == pytest.approx(spread[5:])
    assert wanted == {}


def test_the_hops_add_up_to_the_total(tmp_path: Path) -> None:
    for window in lag.windows(archived(tmp_path, random_heartbeats(2)), "MINUTE"):
        parts = [window.hops[hop].mean or 0.0 for hop in HOPS[:-1]]
        assert sum(parts) == pytest.approx(window.total.mean)


def test_both_engines_and_every_source_return_the_same_lines(tmp_path: Path, warm: WarmSession) -> None:
    rows = random_heartbeats(3)
    twice = [*rows, *rows[:50]]
    for engine in (local_engine(), spark_engine(warm)):
        lag_archive.write(tmp_path / "home", "REP1", twice)
        for source in (archive(1, "d", tmp_path / "home"), history(1, "d", copied(twice))):
            heartbeats = Heartbeats((source,), engine, since=NOON + 3600 * SECOND, until=NOON + 9000 * SECOND)
            got = (lag.windows(heartbeats, "HOUR"), lag.gaps(heartbeats))
            if engine.choose(0) == "local" and source.view.name and not tmp_path.joinpath("first").exists():
                tmp_path.joinpath("first").touch()
                wanted = got
            assert got[1] == wanted[1]
            for actual_line, expected_line in zip(got[0], wanted[0], strict=True):
                assert actual_line[:3] == expected_line[:3]
                for hop in HOPS:
                    assert list(actual_line.hops[hop]) == pytest.approx(list(expected_line.hops[hop]))
    assert len(wanted[0]) == 8
    assert sum(each.beats for each in wanted[0]) == sum(
        NOON + 3600 * SECOND <= row.received < NOON + 9000 * SECOND for row in rows
    )


class SmallSlices:
    """An engine that queries the first half of small slices, as Spark tasks do with large ones."""

    def __init__(self, rows: int) -> None:
        self._rows, self._whole = rows, local_engine()
        self.slices = 0

    def ask_in_parts(
        self, query: str, parts: list[FirstHalf], schema: pa.Schema, sql: str, told: object = None
    ) -> QueryAnswer:
        slices = [each for part in parts for each in sliced(part, self._rows)]
        self.slices = len(slices)
        table = pa.concat_tables(answered(LocalEngine(), each, schema) for each in slices)
        return self._whole.ask(query, sql, [RowsView(PARTS, table)])


def test_a_query_in_slices_returns_the_rows_of_the_whole_query(tmp_path: Path) -> None:
    rows = [
        row for row in random_heartbeats(5, 3000) if not NOON + 20_000 * SECOND < row.received < NOON + 30_000 * SECOND
    ]
    lag_archive.write(tmp_path, "REP1", [*rows, *rows[::7]])
    files = list(tmp_path.glob("day=*/*.parquet"))
    for file in files:
        pq.write_table(pq.read_table(file).sort_by("incoming_heartbeat_ts"), file, row_group_size=100)
    found = []
    for engine in (local_engine(), cut := SmallSlices(300)):
        heartbeats = Heartbeats((archive(1, "d", tmp_path),), engine)
        found.append((lag.windows(heartbeats, "HOUR"), lag.gaps(heartbeats)))
    assert cut.slices > 5
    assert found[0][1] == found[1][1] != []
    for actual_line, expected_line in zip(found[0][0], found[1][0], strict=True):
        assert actual_line[:3] == expected_line[:3]
        for hop in HOPS:
            assert list(actual_line.hops[hop]) == pytest.approx(list(expected_line.hops[hop]))
    assert sum(each.beats for each in found[1][0]) == len(rows)


def test_heartbeats_of_different_sources_with_one_name_are_not_compared(tmp_path: Path) -> None:
    sources = []
    for number, rows in enumerate([random_heartbeats(8, 1000), random_heartbeats(9, 300)], 1):
        lag_archive.write(tmp_path / str(number), "REP1", rows)
        for file in tmp_path.glob(f"{number}/day=*/*.parquet"):
            pq.write_table(pq.read_table(file, partitioning=None).sort_by("incoming_heartbeat_ts"), file, 50)
        sources.append(archive(number, "d", tmp_path / str(number)))
    whole, cut = (lag.gaps(Heartbeats(tuple(sources), engine)) for engine in (local_engine(), SmallSlices(100)))
    assert whole == cut != []


def test_a_column_that_no_file_has_is_empty(tmp_path: Path) -> None:
    heartbeats = archived(tmp_path, [heartbeat(NOON + n * SECOND, 0.6, path=None) for n in range(10)])
    wanted = lag.windows(heartbeats, "DAY")
    for file in tmp_path.glob("day=*/*.parquet"):
        pq.write_table(pq.read_table(file, partitioning=None).drop_columns(["incoming_routing_ts"]), file)
    assert lag.windows(heartbeats, "DAY") == wanted


def test_null_and_empty_database_names_are_one_database(tmp_path: Path) -> None:
    rows = [heartbeat(NOON + n * SECOND, 1.0, local="") for n in range(10)]
    rows[3:] = [row._replace(beat=row.beat._replace(local_database=None)) for row in rows[3:]]
    assert [each.beats for each in lag.windows(archived(tmp_path, rows), "DAY")] == [10]


def test_folder_names_above_an_archive_are_not_partition_columns(tmp_path: Path) -> None:
    (window,) = lag.windows(archived(tmp_path / "remote_database=other", [heartbeat(NOON, 1.0)]), "DAY")
    assert window.way.remote == "north"


def test_percentiles_of_many_heartbeats_exceed_the_exact_ones_by_less_than_one_percent(tmp_path: Path) -> None:
    rng = random.Random(6)
    rows = [heartbeat(NOON + number * SECOND, rng.lognormvariate(0, 2)) for number in range(5000)]
    (window,) = lag.windows(archived(tmp_path, rows), "DAY")
    lags = sorted((row.received - (row.beat.incoming_heartbeat_ts or 0)) / SECOND for row in rows)
    for share, known in ((0.5, window.total.p50), (0.95, window.total.p95), (0.99, window.total.p99)):
        exact = percentile(lags, share)
        assert known is not None
        assert exact <= known < exact * 1.01
    assert (window.total.longest, window.total.least) == pytest.approx((lags[-1], lags[0]))
    assert window.total.mean == pytest.approx(sum(lags) / len(lags))


def test_missing_heartbeats_are_reported_with_the_usual_interval(tmp_path: Path) -> None:
    rows = [heartbeat(NOON + n * 10 * SECOND, 0.5) for n in range(100) if not 40 <= n < 52]
    rows += [heartbeat(NOON + n * 60 * SECOND, 0.5, "south", "north") for n in range(20)]
    (gap,) = lag.gaps(archived(tmp_path, rows))
    assert (gap.way.remote, gap.begin, gap.seconds, gap.usual) == ("north", NOON + 390 * SECOND, 130.0, 10.0)
    assert lag.gaps(archived(tmp_path / "other", rows), least=200) == []


def test_an_outage_that_has_not_ended_is_a_gap(tmp_path: Path) -> None:
    """Regression: only the next heartbeat after an outage made it a gap, so a report during one had none."""
    rows = [heartbeat(NOON + n * 10 * SECOND, 0.5) for n in range(100)]
    last = NOON + 990 * SECOND + SECOND // 2
    lag_archive.write(tmp_path, "REP1", rows)
    source = archive(1, "home", tmp_path, now=last + 400 * SECOND)
    (gap,) = lag.gaps(Heartbeats((source,), local_engine()))
    assert (gap.begin, gap.seconds, gap.usual, gap.lasts) == (last, 340.0, 10.0, True)
    (gap,) = lag.gaps(Heartbeats((source,), local_engine(), until=last + 100 * SECOND))
    assert (gap.begin, gap.seconds, gap.lasts) == (last, 100.0, True)
    assert lag.gaps(Heartbeats((source,), local_engine()), least=500) == []
    assert lag.gaps(Heartbeats((source,), local_engine(), until=last + 20 * SECOND)) == []


def test_the_last_minute_that_an_archive_can_lack_is_not_a_gap(tmp_path: Path) -> None:
    rows = [heartbeat(NOON + n * SECOND, 0.5) for n in range(100)]
    lag_archive.write(tmp_path, "REP1", rows)
    now = NOON + 155 * SECOND
    assert lag.gaps(Heartbeats((archive(1, "home", tmp_path, now),), local_engine())) == []
    (gap,) = lag.gaps(Heartbeats((history(1, "south", copied(rows), now),), local_engine()))
    assert (gap.seconds, gap.lasts) == (55.5, True)
    (one,) = merged([archive(1, "home", tmp_path, now), history(2, "south", copied(rows), now)], tmp_path)
    (gap,) = lag.gaps(Heartbeats((one,), local_engine()))
    assert (gap.seconds, gap.lasts) == (55.5, True)


def test_an_outage_that_began_before_the_time_range_is_a_gap(tmp_path: Path) -> None:
    """Regression: the first heartbeat of a range had no predecessor, and a path without any was not in the report."""
    rows = [heartbeat(NOON + n * 10 * SECOND, 0.5) for n in range(100) if not 40 <= n < 60]
    rows += [heartbeat(NOON + n * 10 * SECOND, 0.5, "south", "north") for n in range(20)]
    lag_archive.write(tmp_path, "REP1", rows)
    source = archive(1, "home", tmp_path, now=NOON + 1055 * SECOND)
    ended, lasting = lag.gaps(Heartbeats((source,), local_engine(), since=NOON + 500 * SECOND))
    assert (ended.way.remote, ended.begin, ended.seconds, ended.lasts) == ("north", NOON + 390 * SECOND, 210.0, False)
    assert (lasting.way.remote, lasting.seconds, lasting.lasts) == ("south", 804.5, True)
    (lasting,) = lag.gaps(Heartbeats((source,), local_engine(), since=NOON + 700 * SECOND))
    assert lasting.way.remote == "south"


def test_the_worst_windows_and_the_forecast_of_catching_up(tmp_path: Path) -> None:
    rows = [heartbeat(NOON + n * 60 * SECOND, 60.0 - 3 * n) for n in range(10)]
    rows += [heartbeat(NOON + n * 60 * SECOND, 1.0 + n, "south", "north") for n in range(10)]
    found = lag.windows(archived(tmp_path, rows), "MINUTE")
    assert [each.total.p95 for each in lag.worst(found, 2)] == [60.0, 54.0]
    falling, rising = lag.trends(found, "MINUTE")
    assert falling.slope == pytest.approx(-3 / 57, rel=0.05)
    assert falling.caught_up == pytest.approx(falling.now / -falling.slope)
    assert (rising.caught_up, rising.slope > 0) == (None, True)


def test_the_forecast_uses_the_time_since_the_backlog_started_to_shrink(tmp_path: Path) -> None:
    lags = [0.1] * 8 + [24.0, 18.0, 12.0, 6.0]
    quiet = [0.1] * 4 + [30.0] + [0.1] * 6
    rows = [heartbeat(NOON + n * 60 * SECOND, each) for n, each in enumerate(lags)]
    rows += [heartbeat(NOON + n * 60 * SECOND, each, "south", "north") for n, each in enumerate(quiet)]
    falling, steady = lag.trends(lag.windows(archived(tmp_path, rows), "MINUTE"), "MINUTE")
    assert falling.slope == pytest.approx(-0.1)
    assert falling.caught_up == pytest.approx(60)
    assert (steady.slope, steady.caught_up) == (pytest.approx(0), None)


def test_clock_differences_are_estimated_from_the_fastest_heartbeats(tmp_path: Path) -> None:
    rows = [heartbeat(NOON + n * SECOND, 0.1 + 2.0 + n % 3) for n in range(10)]
    rows += [heartbeat(NOON + n * SECOND, 0.1 - 2.0 + n % 3, "south", "north") for n in range(10)]
    (lead,) = lag.clock_leads(lag.windows(archived(tmp_path, rows), "HOUR"))
    assert (lead.remote, lead.local) == ("north", "south")
    assert lead.offset.lead == pytest.approx(-2.0)
    assert lead.offset.error == pytest.approx(0.1)


def test_two_deployments_are_shown_side_by_side(tmp_path: Path) -> None:
    lag_archive.write(tmp_path / "a", "REP1", [heartbeat(NOON, 1.0)])
    lag_archive.write(tmp_path / "b", "REP1", [heartbeat(NOON, 2.0)])
    heartbeats = Heartbeats((archive(1, "a", tmp_path / "a"), archive(2, "it's b", tmp_path / "b")), local_engine())
    assert [(each.way.deployment, each.total.p50) for each in lag.windows(heartbeats, "DAY")] == [
        ("a", 1.0),
        ("it's b", 2.0),
    ]


def test_a_heartbeat_history_and_the_archive_of_its_home_are_one_source(tmp_path: Path, warm: WarmSession) -> None:
    """The archive has years but not the last minute; the history has the last days; the archive lacks one of their hours."""
    rows = [heartbeat(NOON + n * 60 * SECOND, 0.2 + n / 100) for n in range(300)]
    wanted = archived(tmp_path / "whole", rows)
    lag_archive.write(tmp_path / "part", "REP1", [*rows[:100], *rows[160:290]])
    for engine in (local_engine(), spark_engine(warm)):
        (one,) = merged([archive(1, "home", tmp_path / "part"), history(2, "south", copied(rows[90:]))], tmp_path)
        heartbeats = Heartbeats((one,), engine)
        assert one.deployment == "home, south"
        found = [each._replace(way=each.way._replace(deployment="home")) for each in lag.windows(heartbeats, "HOUR")]
        assert [each[:3] for each in found] == [each[:3] for each in lag.windows(wanted, "HOUR")]
        assert [each.total.p95 for each in found] == pytest.approx(
            [each.total.p95 for each in lag.windows(wanted, "HOUR")]
        )
        assert lag.gaps(heartbeats) == []


def test_sources_without_a_common_heartbeat_stay_separate(tmp_path: Path) -> None:
    """Two deployments may use the same names for their databases and groups."""
    lag_archive.write(tmp_path / "east", "REP1", [heartbeat(NOON + n * 60 * SECOND, 0.2) for n in range(9)])
    east = archive(1, "east", tmp_path / "east")
    west = history(2, "west", copied([heartbeat(NOON + n * 60 * SECOND + 1, 0.2) for n in range(9)]))
    third = history(3, "third", copied([heartbeat(NOON + 2 * 60 * SECOND, 0.2)]))
    assert [each.deployment for each in merged([east, west, third], tmp_path)] == ["west", "east, third"]
    assert merged([west, history(4, "empty", [])], tmp_path) == [west, *merged([history(4, "empty", [])], tmp_path)]


def test_a_history_without_rows_has_no_lines() -> None:
    heartbeats = Heartbeats((history(1, "d", []),), local_engine())
    assert (lag.windows(heartbeats, "HOUR"), lag.gaps(heartbeats)) == ([], [])
    assert copied([heartbeat(NOON, 1.0)])[0].startswith(b'"north"')
