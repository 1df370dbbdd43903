"""LAG REPORT: source names, text, data, and a self-contained page."""

from __future__ import annotations

import random
import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.shell import Shell
from pipeline.heartbeat.deployment import Deployment
from processes import until

from ggshell.cli.lag_page.charts import SHADES, shade, ticks, time_marks
from ggshell.errors import DiskError
from ggshell.monitoring import lag_archive
from ggshell.monitoring.lag_archive import ArchiveRow
from ggshell.pipeline.heartbeat.row import Beat

pytestmark = pytest.mark.slow

SECOND = 1_000_000
NOON = 1_700_049_600 * SECOND


def heartbeat(sent: int, seconds: float, remote: str = "north") -> ArchiveRow:
    lag = round(seconds * SECOND)
    row = Beat("south", sent, remote, "EXT1", "DP<1>", "REP1", sent, sent + lag // 2, sent + lag // 2, sent + lag)
    return ArchiveRow(row, sent + lag)


@pytest.fixture
def archive(shell: Shell) -> Path:
    """Six hours with a heartbeat every minute; the third hour has none."""
    folder = shell.home.root / "dirlag"
    shell.home.ensure()
    rows = [heartbeat(NOON + n * 60 * SECOND, 0.2 + (n > 300) * 5) for n in range(360) if not 120 <= n < 180]
    lag_archive.write(folder, "REP1", rows)
    return folder


@pytest.fixture
def damages(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[Path, Path, random.Random], None]]:
    """The ways to damage a file, from the table of ``scripts/faults files``."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "scripts"))
    from faultruns.home_files import DAMAGES

    found: dict[str, Callable[[Path, Path, random.Random], None]] = DAMAGES
    return found


def test_a_damaged_archive_file_is_reported_and_stops_no_replicat(
    shell: Shell, archive: Path, damages: dict[str, Callable[[Path, Path, random.Random], None]]
) -> None:
    """Regression: queries failed with DuckDB's own error and, on the next day, the Replicat that merges the files."""
    (file,) = archive.glob("day=*/*.parquet")
    lag_archive.write(archive, "REP1", [heartbeat(NOON + 60 * SECOND + 7, 0.2)])
    (other,) = set(archive.glob("day=*/*.parquet")) - {file}
    good = file.read_bytes()
    for name in ("deleted", "truncated", "zeroed", "unreadable"):
        damages[name](file, other, random.Random(1))
        if name == "deleted":
            assert shell.batch("LAG REPORT TO ./lag.html").code == 0
        else:
            answer = shell.batch("LAG REPORT TO ./lag.html")
            assert answer.code == 1, name
            assert str(file) in answer.err + answer.out, name
            assert "restore it" in answer.err + answer.out, name
            with pytest.raises(DiskError, match="cannot be read"):
                lag_archive.gather(archive, "REP1", "9999-01-01")
            assert other.exists()
        if file.is_dir():
            file.rmdir()
        file.write_bytes(good)
    assert shell.batch("LAG REPORT TO ./lag.html").code == 0


def page_from(shell: Shell, statement: str) -> tuple[ET.Element, str]:
    assert shell.batch(statement).code == 0
    text = (shell.home.root / "lag.html").read_text()
    return ET.fromstring(text.removeprefix("<!DOCTYPE html>")), text  # well-formed, so it can be parsed


def test_the_page_has_a_cell_for_each_hour_and_is_self_contained(shell: Shell, archive: Path) -> None:
    root, text = page_from(shell, "LAG REPORT TO ./lag.html")
    heat = next(svg for svg in root.iter("svg") if svg.get("class") == "heat")
    cells = list(heat.iter("rect"))
    assert [cell.get("fill") or cell.get("class") for cell in cells] == [
        *[shade(0.2)] * 2,
        "none",
        *[shade(0.2)] * 2,
        shade(5.2),
    ]
    assert "p95 5.2 s, 60 heartbeats" in (cells[-1].findtext("title") or "")
    assert "no heartbeat" in (cells[2].findtext("title") or "")
    drawn = next(svg for svg in root.iter("svg") if svg.get("class") == "areas")
    assert len(list(drawn.iter("polygon"))) == 8  # four hops, before and after the empty hour
    assert not re.search(r"""(?:src|href)\s*=|url\(|@import|<script""", text)
    assert "300 heartbeats" in text


def test_a_page_with_too_many_periods_uses_a_coarser_one_and_reports_it(shell: Shell, archive: Path) -> None:
    lag_archive.write(archive, "REP1", [heartbeat(NOON + day * 86_400 * SECOND, 0.3) for day in range(1, 29)])
    out = shell.batch("LAG REPORT TO ./lag.html BY MINUTE").out
    assert "by hour, because it would be too detailed by minute" in out
    root, text = page_from(shell, "LAG REPORT TO ./lag.html BY MINUTE")
    heat = next(svg for svg in root.iter("svg") if svg.get("class") == "heat")
    assert len(list(heat.iter("rect"))) == 28 * 24 + 1
    assert "By hour: by minute the charts would be too fine to read." in text
    assert len(text) < 400_000
    found = shell.run("--format", "json", "-c", "LAG REPORT BY MINUTE").objects[0]
    assert len(found["rows"]) == 5 * (300 + 28), "data keeps the minutes"
    assert "too detailed" not in shell.batch("LAG REPORT TO ./lag.html BY HOUR").out


def test_names_are_escaped_in_the_page(shell: Shell, archive: Path) -> None:
    _, text = page_from(shell, "LAG REPORT TO ./lag.html BY DAY")
    assert "DP<1>" not in text
    assert "DP&lt;1&gt;" in text


def test_the_text_shows_the_worst_hours_the_gap_and_the_trend(shell: Shell, archive: Path) -> None:
    out = shell.batch("LAG REPORT TOP 1").out
    assert "north to south: EXT1 ==> DP<1> ==> REP1" in out
    assert len(re.findall(r"^11-15 \d\d:00", out, re.MULTILINE)) == 1
    assert "no heartbeat for 61 min from 2023-11-15 13:59:00 (usual: 60 s)" in out
    assert "5.12 s in the last hour, rises by 4.92 s an hour" in out


def test_the_report_and_the_page_show_an_outage_that_has_not_ended(shell: Shell, archive: Path) -> None:
    out = shell.batch("LAG REPORT UNTIL 2023-11-16 12:00:00").out
    assert re.search(r"no heartbeat for [\d.]+ h from 2023-11-15 17:59:05, not ended \(usual: 60 s\)", out)
    _, text = page_from(shell, "LAG REPORT TO ./lag.html")
    assert '<td class="t">not ended</td>' in text


def test_data_has_a_row_for_each_hop(shell: Shell, archive: Path) -> None:
    found = shell.run("--format", "json", "-c", "LAG REPORT BY DAY").objects[0]
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
    assert [row["hop"] for row in rows] == ["extract", "routing", "read", "apply", "total"]
    assert rows[-1]["count"] == 300
    assert rows[-1]["p50"] == pytest.approx(0.2)


def test_deployments_are_listed_by_their_folders(shell: Shell, archive: Path, tmp_path: Path) -> None:
    lag_archive.write(tmp_path / "east" / "dirlag", "REP9", [heartbeat(NOON, 9.0, "east")])
    statement = f"LAG REPORT FROM ./dirlag, '{tmp_path / 'east'}' BY DAY"
    found = shell.run("--format", "json", "-c", statement).objects[0]
    assert {(row[1], row[2]) for row in found["rows"]} == {("./dirlag", "north"), (str(tmp_path / "east"), "east")}


@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("LAG REPORT", "no lag archive"),
        ("LAG REPORT FROM nowhere", "it is not an alias, archive, home or trail"),
    ],
)
def test_a_source_without_heartbeats_is_refused_with_the_reason(shell: Shell, statement: str, part: str) -> None:
    shell.home.ensure()
    answer = shell.batch(statement)
    assert answer.code == 1
    assert part in answer.err


def test_a_period_without_heartbeats_is_reported(shell: Shell, archive: Path) -> None:
    answer = shell.batch("LAG REPORT SINCE 2030-01-01")
    assert (answer.code, "no heartbeat was received in that period" in answer.err) == (1, True)


def test_a_path_is_named_by_its_databases_and_by_its_trail(tmp_path: Path, north: str, south: str) -> None:
    deployment = Deployment(tmp_path, north=north, south=south)
    try:
        deployment.heartbeat_tables()
        deployment.extract("EXT1", "north", "ea")
        deployment.replicat("REP1", "south", "ea")
        deployment.start("EXT1", "REP1")
        deployment.send_heartbeat("north")
        history = "SELECT count(*) FROM ggadmin.gg_heartbeat_history"
        until("a heartbeat arrives", lambda: deployment.sql("south", history)[0][0] > 0)
        out = deployment.run("LAG REPORT FROM south, ./dirdat/ea BY DAY")
        assert f"{deployment.database_name('north')} to {deployment.database_name('south')}: EXT1 ==> REP1" in out
        assert f"from {deployment.database_name('north')}: EXT1" in out
    finally:
        deployment.close()


def test_scales_have_round_values() -> None:
    assert ticks(10.0) == [0.0, 5.0, 10.0]
    assert ticks(0.0) == [0.0]
    assert ticks(600.0) == [0.0, 300.0, 600.0]
    assert (shade(0.0), shade(1e9)) == (SHADES[0], SHADES[-1])


def test_a_repeated_source_counts_once(shell: Shell, archive: Path) -> None:
    once, twice = (
        shell.run("--format", "csv", "-c", f"LAG REPORT FROM {sources} BY DAY")
        for sources in ("./dirlag", "./dirlag, ./dirlag")
    )
    assert once.code == 0
    assert (twice.code, twice.out) == (0, once.out)


def test_an_archive_and_its_copy_count_as_one_source(shell: Shell, archive: Path, tmp_path: Path) -> None:
    shutil.copytree(archive, tmp_path / "copy" / "dirlag")
    lag_archive.write(archive, "REP1", [heartbeat(NOON + 7 * 3600 * SECOND, 0.3)])
    alone = shell.run("--format", "json", "-c", "LAG REPORT BY DAY").objects[0]["rows"]
    both = shell.run("--format", "json", "-c", f"LAG REPORT FROM ./dirlag, '{tmp_path / 'copy'}' BY DAY").objects[0][
        "rows"
    ]
    assert [[*row[:1], *row[2:]] for row in both] == [[*row[:1], *row[2:]] for row in alone]
    assert {row[1] for row in both} == {f"./dirlag, {tmp_path / 'copy'}"}


def test_paths_with_the_same_names_from_two_deployments_are_distinguished(
    shell: Shell, archive: Path, tmp_path: Path
) -> None:
    lag_archive.write(tmp_path / "east" / "dirlag", "REP1", [heartbeat(NOON + 7, 9.0)])
    out = shell.batch(f"LAG REPORT FROM ./dirlag, '{tmp_path / 'east'}' BY DAY").out
    for name in ("./dirlag", tmp_path / "east"):
        assert f"north to south: EXT1 ==> DP<1> ==> REP1 ({name})" in out


def test_the_page_shows_the_trend_of_the_lag(shell: Shell, archive: Path) -> None:
    _, text = page_from(shell, "LAG REPORT TO ./lag.html")
    assert "\N{NORTH EAST ARROW} 4.92 s an hour" in text
    lag_archive.write(archive, "REP2", [heartbeat(NOON + 3_600_000_000 * n, 0.9 - 0.2 * n, "west") for n in range(4)])
    _, text = page_from(shell, "LAG REPORT TO ./lag.html")
    assert "\N{SOUTH EAST ARROW} 200 ms an hour" in text


def test_times_below_a_chart_do_not_overlap() -> None:
    assert time_marks(list(range(24)), 930) == [0, 3, 6, 9, 12, 15, 18, 21]
    assert time_marks([0, 1], 120) == [0]
