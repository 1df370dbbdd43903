"""BR, WARNLONGTRANS and TRANLOGOPTIONS as typed parameters of an Extract."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ggshell.durations import read_interval
from ggshell.errors import ParameterError
from ggshell.language.values import INTERVAL
from ggshell.parameters.loading import load_extract
from ggshell.parameters.process_parameters import ExtractParameters
from ggshell.parameters.transaction_rules import capture_fingerprint, nearest_multiple


def load(tmp_path: Path, *lines: str) -> ExtractParameters:
    path = tmp_path / "ext1.prm"
    path.write_text("\n".join(("EXTRACT ext1", "USERIDALIAS north", *lines, "TABLE shop.*;")))
    return load_extract(path)


def test_bounded_recovery_is_on_by_default(tmp_path: Path) -> None:
    found = load(tmp_path).bounded
    assert (found.line, found.on, found.interval, found.durable) == (0, True, 14_400, True)


def test_all_options_of_br_are_read(tmp_path: Path) -> None:
    line = "BR BRDIR /u/x, BRINTERVAL 24H, BRKEEPSTALEFILES, BROFFONFAILURE, BRRESET, BRFSOPTION MS_ASYNC"
    found = load(tmp_path, line).bounded
    assert (found.line, found.directory, found.interval, found.durable) == (3, "/u/x", 86_400, False)
    assert (found.keep_stale, found.off_on_failure, found.reset) == (True, True, True)
    assert load(tmp_path, "br brfsoption ms_sync").bounded.durable
    assert not load(tmp_path, "br broff").bounded.on


@pytest.mark.parametrize(
    ("given", "of", "kept"), [(1200, 10, 1200), (1200, 7, 1197), (14_400, 3600, 14_400), (1200, 5000, 5000)]
)
def test_the_interval_is_a_multiple_of_checkpointsecs(given: int, of: int, kept: int) -> None:
    assert nearest_multiple(given, of) == kept


def test_the_interval_is_adjusted_to_checkpointsecs_in_any_order(tmp_path: Path) -> None:
    assert load(tmp_path, "BR BRINTERVAL 20M", "CHECKPOINTSECS 7").bounded.interval == 1197


@pytest.mark.parametrize(
    "line", ["BR BRINTERVAL 19M", "BR BRINTERVAL 97H", "BR BRDIR /x/Temporary", "BR BRDIR c:/myTMP/br"]
)
def test_invalid_values_of_br_are_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ParameterError):
        load(tmp_path, line)


@pytest.mark.parametrize("unit", ["", "s", "SECS", "m", "MINUTES", "MIN", "HR", "hours", "D", "DAYS", "WEEK", "weeks"])
def test_every_interval_unit_of_the_language_is_read(unit: str) -> None:
    assert re.fullmatch(INTERVAL.pattern, f"1.5{unit}", re.IGNORECASE)
    assert read_interval(f"10 {unit}") == 10 * read_interval(f"1{unit}")
    assert read_interval(f"2.5{unit}") * 2 >= read_interval(f"5{unit}") - 1


def test_brinterval_accepts_fractions_of_hours(tmp_path: Path) -> None:
    assert load(tmp_path, "BR BRINTERVAL 1.5H").bounded.interval == 5400


def test_a_bare_brinterval_is_in_hours(tmp_path: Path) -> None:
    assert load(tmp_path, "BR BRINTERVAL 4, BRDIR BR").bounded.interval == 4 * 3600
    assert load(tmp_path, "BR BRINTERVAL 30MIN").bounded.interval == 1800
    with pytest.raises(ParameterError, match="BRINTERVAL"):
        load(tmp_path, "BR BRINTERVAL 97")


def test_warnlongtrans_and_orphaned_transactions_are_read(tmp_path: Path) -> None:
    assert load(tmp_path).long == (3600, 300, False, 0)
    assert load(tmp_path, "WARNLONGTRANS 2H CHECKINTERVAL 30m").long[:2] == (7200, 1800)
    assert load(tmp_path, "warnlongtrans 600sec, checkinterval 1MIN").long[:2] == (600, 300)
    purged = load(tmp_path, "TRANLOGOPTIONS PURGEORPHANEDTRANSACTIONS", "TRANLOGOPTIONS TRANSCLEANUPFREQUENCY 20").long
    assert purged.purge_orphans == 1200


def test_the_capture_fingerprint_changes_only_with_what_is_captured(tmp_path: Path) -> None:
    path = tmp_path / "e.prm"

    def of(*lines: str) -> str:
        path.write_text("\n".join(lines))
        return capture_fingerprint(path)

    first = of("EXTRACT e", "TABLE shop.*;")
    assert of("EXTRACT e", "-- a comment", "REPORTCOUNT EVERY 100 RECORDS", "BR BRINTERVAL 1H", "table   shop.*;") != ""
    assert of("EXTRACT e", "BR BRINTERVAL 1H", "REPORTCOUNT EVERY 100 RECORDS", "TABLE   shop.*;") == first
    assert of("EXTRACT e", "TABLE shop.*;", "TABLE shop2.*;") != first
    assert of("EXTRACT e", "IGNOREDELETES", "TABLE shop.*;") != first
