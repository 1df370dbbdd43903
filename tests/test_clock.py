"""Trail timestamps, compared with a header that a public listing shows with its meaning."""

from __future__ import annotations

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS, to_datetime


def test_the_io_time_of_the_listing_is_read_as_printed() -> None:
    io_time = int.from_bytes(bytes.fromhex("352bdeff5315f302"), "little")
    moment = to_datetime(io_time - JULIAN_EPOCH_MICROSECONDS)
    assert moment.isoformat() == "2022-12-06T03:38:55.764277+00:00"
