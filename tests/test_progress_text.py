"""Progress has the same format for any work."""

from __future__ import annotations

import pytest

from ggshell.progress_text import progress_text


@pytest.mark.parametrize(
    ("done", "whole", "seconds", "text"),
    [
        (12_000, 50_000, 2.5, "12,000 of 50,000 rows, 24 %, 8 s left"),
        (12_000, 50_000, 0.5, "12,000 of 50,000 rows, 24 %"),
        (0, 50_000, 9.0, "0 of 50,000 rows, 0 %"),
        (50_000, 50_000, 9.0, "50,000 of 50,000 rows, 100 %"),
        (1, 1_000, 1.0, "1 of 1,000 rows, 0 %, 17 min left"),
        (1, 100_000, 1.0, "1 of 100,000 rows, 0 %, 28 h left"),
        (999, 1_000, 100.0, "999 of 1,000 rows, 99 %, 1 s left"),
        (12_000, 0, 2.5, "12,000 rows"),
    ],
)
def test_progress_shows_the_amount_done_and_the_time_left(done: int, whole: int, seconds: float, text: str) -> None:
    assert progress_text(done, whole, "rows", seconds) == text


def test_an_estimated_total_is_marked_and_omitted_when_exceeded() -> None:
    assert progress_text(5, 10, "rows", estimated=True) == "5 of about 10 rows, 50 %"
    assert progress_text(11, 10, "rows", estimated=True) == "11 rows"
