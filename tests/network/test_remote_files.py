"""A writer over the files of another home: what it may do to local files, it may do to remote ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from processes import until
from trail_kit import PRODUCER, read_all, small
from two_homes import TwoHomes

from ggshell.clock import FakeClock, SystemClock
from ggshell.errors import ConnectionLostError, ProcessError
from ggshell.home.home import Home
from ggshell.network.addresses import parse_receiver
from ggshell.network.dialing import dial
from ggshell.network.handshake import Sender
from ggshell.network.proof import home_key
from ggshell.network.remote_files import RemoteTrailFiles
from ggshell.trail.name import TrailName
from ggshell.trail.writer import TrailWriter


def remote_files(homes: TwoHomes, group: str = "DP1") -> RemoteTrailFiles:
    home, clock = Home(homes.source), SystemClock()
    link = dial(parse_receiver(homes.url()), home, clock)
    return RemoteTrailFiles(link, "the receiver", "da", Sender("home1", group, home_key(home, clock)), None)


@contextmanager
def remote_writer(homes: TwoHomes, max_bytes: int = 1 << 30) -> Iterator[TrailWriter]:
    files = remote_files(homes)
    with closing(TrailWriter.over(files, clock=FakeClock(), producer=PRODUCER, max_bytes=max_bytes)) as writer:
        yield writer


def test_a_flush_returns_after_the_rows_can_be_read_in_the_other_home(homes: TwoHomes) -> None:
    with remote_writer(homes, 900) as writer:
        for csn in range(1, 30):
            writer.write(small(csn))
            place = writer.flush()
            assert len(homes.rows()) == 2 * csn
    assert place.seqno == homes.written.sequences()[-1] > 3


def test_the_rows_of_an_unfinished_transaction_over_many_files_are_taken_back(homes: TwoHomes) -> None:
    with remote_writer(homes, 600) as writer:
        for csn in range(1, 8):
            writer.write(small(csn))
        kept = writer.flush()
        for part in range(12):
            writer.write(small(8, rows=8, begins=part == 0, ends=False))
        writer.flush()
        assert writer.remove_unfinished() == kept
        writer.write(small(8))
        writer.flush()
    local = TrailName(homes.source, "xx")
    with closing(TrailWriter.open(local, clock=FakeClock(), producer=PRODUCER, max_bytes=600)) as writer:
        for csn in range(1, 9):
            writer.write(small(csn))
        writer.flush()
    assert homes.rows() == read_all(local)


def test_rows_are_taken_back_over_a_connection_that_has_brought_no_whole_transaction(homes: TwoHomes) -> None:
    with remote_writer(homes) as writer:
        writer.write(small(1))
        kept = writer.flush()
    with remote_writer(homes) as writer:
        writer.write(small(2, ends=False))
        assert writer.remove_unfinished() == kept
        writer.write(small(2))
        writer.flush()
    assert [row[0] for row in homes.rows()] == [1, 1, 2, 2]


def test_a_writer_continues_where_the_last_one_ended(homes: TwoHomes) -> None:
    for first in (1, 11, 21):
        with remote_writer(homes, 1500) as writer:
            for csn in range(first, first + 10):
                writer.write(small(csn))
            writer.flush()
            writer.write(small(first + 10, ends=False))  # never finished: the next writer does not find it
    assert [row[0] for row in homes.rows()] == [csn for csn in range(1, 31) for _ in range(2)]


def test_a_sender_that_connects_again_replaces_its_earlier_connection(homes: TwoHomes) -> None:
    with closing(remote_files(homes)) as first:
        with closing(remote_files(homes)):
            pass
        until("the first connection has ended", lambda: is_lost(first))


def is_lost(files: RemoteTrailFiles) -> bool:
    try:
        files.check()
    except ConnectionLostError:
        return True
    return False


def test_a_trail_that_lost_what_its_sender_has_delivered_is_refused(homes: TwoHomes) -> None:
    with remote_writer(homes) as writer:
        writer.write(small(1))
        reached = writer.flush()
    homes.written.file(0).write_bytes(homes.written.file(0).read_bytes()[: reached.rba // 2])
    home, clock = Home(homes.source), SystemClock()
    link = dial(parse_receiver(homes.url()), home, clock)
    with pytest.raises(ProcessError) as error:
        RemoteTrailFiles(link, "the receiver", "da", Sender("home1", "DP1", home_key(home, clock)), reached)
    assert error.value.code == "OGG-01028"
