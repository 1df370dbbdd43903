"""Log retention: captured log is released when it has the requested age, and not before."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.clock import FakeClock
from ggshell.errors import ParameterError
from ggshell.groups.held_log import HeldLog
from ggshell.language.grammar import PARAMETERS, parse
from ggshell.parameters.loading import load_extract


def test_without_retention_every_position_is_released_at_once() -> None:
    held = HeldLog(0, FakeClock())
    assert [held.released(position) for position in (5, 9)] == [5, 9]


def test_a_position_is_released_when_it_is_as_old_as_the_retention() -> None:
    clock = FakeClock()
    held = HeldLog(100, clock)
    released = []
    for second in range(250):
        released.append(held.released(1000 + second))
        clock.advance(1)
    assert released[:100] == [None] * 100
    assert released[100:] == [1000 + second for second in range(150)]


def test_long_retention_keeps_few_positions_in_memory() -> None:
    clock = FakeClock()
    held = HeldLog(86_400, clock)
    released = set()
    for second in range(0, 2 * 86_400, 2):
        released.add(held.released(second))
        clock.advance(2)
    assert None in released
    assert all(position is None or position <= 86_400 for position in released)
    assert max(position for position in released if position is not None) >= 86_400 - 86_400 // 100


@pytest.mark.parametrize(("days", "seconds"), [("1", 86_400), ("0.25", 21_600), ("0", 0)])
def test_days_and_fractions_of_a_day_are_accepted(tmp_path: Path, days: str, seconds: float) -> None:
    assert load_extract(_file(tmp_path, days)).log_retention == seconds


@pytest.mark.parametrize("days", ["many", "-1", "366", "nan"])
def test_an_invalid_number_of_days_is_refused(tmp_path: Path, days: str) -> None:
    with pytest.raises(ParameterError, match=r"CHECKPOINTRETENTIONTIME|TRANLOGOPTIONS|unexpected"):
        load_extract(_file(tmp_path, days))


def _file(folder: Path, days: str) -> Path:
    path = folder / "ext1.prm"
    path.write_text(
        f"EXTRACT ext1\nUSERIDALIAS n\nTRANLOGOPTIONS CHECKPOINTRETENTIONTIME {days}\nEXTTRAIL ./dirdat/ea\nTABLE a.*;\n"
    )
    return path


@pytest.mark.parametrize(
    ("line", "noted"),
    [
        ("TRANLOGOPTIONS CHECKPOINTRETENTIONTIME 1", False),
        ("TRANLOGOPTIONS CHECKPOINTRETENTIONTIME 1, LOGRETENTION DISABLED", True),
        ("TRANLOGOPTIONS LOGRETENTION DISABLED", True),
    ],
)
def test_other_options_of_its_page_are_reported_as_not_supported(line: str, noted: bool) -> None:
    assert bool(parse(line, PARAMETERS).notes) is noted
