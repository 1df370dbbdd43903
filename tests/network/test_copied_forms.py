"""Byte-for-byte copies of trails of other forms: encrypted, compressed on the line, with heartbeats, in several targets."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing

import pytest
from batches import Row, Tx, make_batch
from processes import until, until_state
from slow_lines import SlowLine
from trail_kit import PRODUCER, read_all, small
from two_homes import Line, TwoHomes, digest

from ggshell.clock import SystemClock
from ggshell.groups.trail_forms import TrailForms
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, read_process_file
from ggshell.parameters.trail_statements import Encryption, TrailStatement
from ggshell.pipeline.heartbeat.names import HEARTBEAT_COLUMNS
from ggshell.pipeline.heartbeat.row import Beat, layout_of
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType
from ggshell.trail.fileheader import decode_header, header_size
from ggshell.trail.name import TrailName
from ggshell.trail.writer import TrailWriter
from ggshell.types import TableName

SEED = TableDefinition(
    TableName("s", "gg_heartbeat_seed"), tuple(Column(name, "text") for name in HEARTBEAT_COLUMNS), (0,)
)


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoHomes]:
    """The tests of this file share two homes; each has trails of its own."""
    found = TwoHomes(tmp_path_factory.mktemp("forms"))
    yield found
    found.close()


def add_pump(homes: TwoHomes, group: str, read: str, targets: dict[str, str]) -> None:
    """Add and start a pump. ``targets``: its trails in the target home, each with the port and options of its RMTHOST."""
    lines = "".join(f"RMTHOST 127.0.0.1, PORT {host}\nRMTTRAIL ./dirdat/{trail}\n" for trail, host in targets.items())
    Home(homes.source).parameters(group).write_text(f"EXTRACT {group}\nPASSTHRU\n{lines}TABLE *.*;\n")
    trails = "; ".join(f"ADD RMTTRAIL ./dirdat/{trail}, EXTRACT {group}" for trail in targets)
    homes.run(f"ADD EXTRACT {group}, EXTTRAILSOURCE ./dirdat/{read}; {trails}; START EXTRACT {group}")


def kill(homes: TwoHomes, group: str) -> None:
    home = Home(homes.source)
    found = read_process_file(home.process(group, GroupKind.EXTRACT))
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)
    until_state(home, group, GroupKind.EXTRACT, ProcessState.ABENDED)


def there(homes: TwoHomes, trail: str) -> TrailName:
    return TrailName(homes.target.home / "dirdat", trail)


def rows_of(name: TrailName) -> list[tuple[object, ...]]:
    return read_all(name) if name.sequences() else []


def same_files(homes: TwoHomes, read: TrailName, *trails: str) -> None:
    for trail in trails:
        until(f"{trail} has the same bytes", lambda trail=trail: digest(there(homes, trail)) == digest(read))  # type: ignore[misc]


def write_encrypted(homes: TwoHomes, name: TrailName, csns: range) -> None:
    trail = f"./dirdat/{name.prefix}"
    forms = TrailForms(Home(homes.source), [TrailStatement(trail, encryption=Encryption())])
    with closing(
        TrailWriter.open(name, clock=SystemClock(), producer=PRODUCER, max_bytes=6000, options=forms.options(trail))
    ) as writer:
        for csn in csns:
            writer.write(small(csn))
        writer.flush()


def test_the_files_of_an_encrypted_trail_are_copied_as_they_are(homes: TwoHomes) -> None:
    """The target home needs no key. COMPRESS changes the frames on the line only."""
    homes.run("CREATE WALLET; ADD MASTERKEY")
    name = TrailName(homes.source / "dirdat", "ec")
    write_encrypted(homes, name, range(1, 100))
    port = homes.target.port
    add_pump(homes, "penc", "ec", {"ta": f"{port}, COMPRESS, COMPRESSTHRESHOLD 0"})
    same_files(homes, name, "ta")
    kill(homes, "PENC")
    write_encrypted(homes, name, range(100, 200))
    homes.run("START EXTRACT penc")
    same_files(homes, name, "ta")
    assert len(name.sequences()) > 3
    assert b"AAAAAAAAA" not in name.file(0).read_bytes(), "the trail is not encrypted"
    homes.run("STOP EXTRACT penc")


def test_the_files_of_a_compressed_line_are_equal(homes: TwoHomes) -> None:
    homes.write(200, max_bytes=8000, size=200)
    add_pump(homes, "pcom", "ea", {"tb": f"{homes.target.port}, COMPRESS, COMPRESSTHRESHOLD 100"})
    same_files(homes, homes.read, "tb")
    homes.write(100, max_bytes=8000, size=200)
    same_files(homes, homes.read, "tb")
    assert "%)" in homes.run("INFO EXTRACT pcom")
    homes.run("STOP EXTRACT pcom")


def test_a_heartbeat_in_the_middle_of_a_copied_file_is_stamped_and_nothing_is_lost(homes: TwoHomes) -> None:
    name = TrailName(homes.source / "dirdat", "eh")
    layout = layout_of(SEED)
    assert layout is not None

    def write(csns: range, *, begins: bool = False) -> None:
        with closing(TrailWriter.open(name, clock=SystemClock(), producer=PRODUCER, max_bytes=1 << 30)) as writer:
            if begins:
                writer.rollover()
            for csn in csns:
                writer.write(small(csn))
                if csn % 40 == 20:
                    beat = layout.encode(Beat("north", csn, outgoing_extract="EXT1"))
                    writer.write(make_batch([Tx(csn + 1000, [Row(SEED, IoType.FIELD_COMP, beat)])]))
            writer.flush()

    def users(trail: TrailName) -> list[tuple[object, ...]]:
        return [row for row in rows_of(trail) if "gg_heartbeat_seed" not in str(row)]

    write(range(1, 20))
    add_pump(homes, "phb", "eh", {"th": str(homes.target.port)})
    same_files(homes, name, "th")
    write(range(20, 100))
    until("all rows arrived", lambda: len(rows_of(there(homes, "th"))) >= len(read_all(name)))
    assert users(there(homes, "th")) == users(name)
    beats = [row for row in rows_of(there(homes, "th")) if "gg_heartbeat_seed" in str(row)]
    assert len(beats) == 2
    assert all("PHB" in str(row) for row in beats)
    write(range(101, 120), begins=True)
    until("the next file arrived", lambda: len(rows_of(there(homes, "th"))) >= len(read_all(name)))
    assert users(there(homes, "th")) == users(name)
    source, copy = (trail.file(trail.sequences()[-1]).read_bytes() for trail in (name, there(homes, "th")))
    assert decode_header(copy).uri == decode_header(source).uri  # it is copied again, with its own number
    assert copy[header_size(copy) :] == source[header_size(source) :]
    homes.run("STOP EXTRACT phb")


def test_a_target_gets_its_rows_while_the_line_to_another_one_stalls(homes: TwoHomes) -> None:
    line = Line(homes.target.port)
    homes.trust(line.port)
    name = TrailName(homes.source / "dirdat", "e2")
    with closing(TrailWriter.open(name, clock=SystemClock(), producer=PRODUCER, max_bytes=1 << 30)) as writer:
        writer.write(small(1))
        writer.flush()
        add_pump(homes, "pst", "e2", {"t1": str(line.port), "t2": str(homes.target.port)})
        same_files(homes, name, "t1", "t2")
        until("both are acknowledged", lambda: "At EOF" in homes.run("SEND EXTRACT pst, STATUS"))
        line.stall()
        for csn in range(2, 6):
            writer.write(small(csn))
            writer.flush()
            same_files(homes, name, "t2")
    assert len(rows_of(there(homes, "t1"))) < len(read_all(name))
    assert "At EOF" not in homes.run("SEND EXTRACT pst, STATUS")
    line.resume()
    same_files(homes, name, "t1")
    until("both are acknowledged", lambda: "At EOF" in homes.run("SEND EXTRACT pst, STATUS"))
    homes.run("STOP EXTRACT pst")
    line.close()


def test_targets_whose_ends_differ_after_a_crash_get_what_each_lacks(homes: TwoHomes) -> None:
    name = TrailName(homes.source / "dirdat", "em")
    slow = SlowLine(homes.target.port)
    homes.trust(slow.port)
    # a writer that opens the trail again would write a record first, and the pump would wait with this record
    with closing(TrailWriter.open(name, clock=SystemClock(), producer=PRODUCER, max_bytes=20_000)) as writer:

        def write(csns: range) -> None:
            for csn in csns:
                writer.write(small(csn, 20, 100))
            writer.flush()

        write(range(1, 20))
        add_pump(homes, "pmany", "em", {"tm": str(homes.target.port), "tn": str(slow.port)})
        same_files(homes, name, "tm", "tn")
        until("both are acknowledged", lambda: "At EOF" in homes.run("SEND EXTRACT pmany, STATUS"))
        slow.stall()
        write(range(20, 60))
        until("one target is ahead", lambda: len(rows_of(there(homes, "tm"))) > len(rows_of(there(homes, "tn"))))
        kill(homes, "PMANY")
        assert len(rows_of(there(homes, "tm"))) > len(rows_of(there(homes, "tn")))
        slow.resume()
        write(range(60, 80))
        homes.run("START EXTRACT pmany")
        same_files(homes, name, "tm", "tn")
    homes.run("STOP EXTRACT pmany")
    slow.close()
