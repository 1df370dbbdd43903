"""Clients that send a receiver something else than a trail: it refuses each with a code, and the other paths go on."""

from __future__ import annotations

import contextlib
import fcntl
import json
import re
import struct
import termios
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from processes import until
from raw_sender import BINARY, PING, TEXT, RawSender
from trail_kit import PRODUCER, small
from two_homes import TwoHomes, service_pid

from ggshell.clock import SystemClock
from ggshell.home.home import Home
from ggshell.network.frames import Frame, FrameKind, encode_frame
from ggshell.trail.durable import DurableMark
from ggshell.trail.name import TrailName
from ggshell.trail.writer import TrailWriter
from ggshell.types import Csn, TrailPosition

MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoHomes]:
    """A path works all the time; the tests of this file share it."""
    found = TwoHomes(tmp_path_factory.mktemp("bad"))
    found.write(20)
    found.start_path()
    found.until_equal()
    yield found
    found.close()


@pytest.fixture(autouse=True)
def goes_on(homes: TwoHomes, request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test the service is the same process, has not grown, and the path works without having reconnected."""
    process, memory = service_pid(homes), memory_of(homes)
    yield
    homes.write(3)
    homes.until_equal()
    assert service_pid(homes) == process
    assert memory_of(homes) < memory + MEGABYTE * (400 if "thousand" in request.node.name else 40)
    assert "GGS-00950" not in homes.report()
    errors = homes.target.home / "dirrpt" / "SERVICE.out"
    assert not errors.exists() or "Traceback" not in errors.read_text()


def memory_of(homes: TwoHomes) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{service_pid(homes)}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def events(homes: TwoHomes) -> str:
    return (homes.target.home / "ggserr.log").read_text()


@pytest.fixture
def sender(homes: TwoHomes) -> Iterator[RawSender]:
    found = RawSender(homes.target.port)
    yield found
    found.close()


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        (
            {"protocol": "ggshell-trail-1"},
            426,
            "trails with ggshell-trail-3, the other one offers ggshell-trail-1: use the",
        ),
        ({"headers": "Origin: https://example.com\r\n"}, 403, "browser"),
        ({"path": "/services/v2/extracts"}, 404, "GGS-00902"),
        ({"path": "/services/v2/targets/%0a2026-01-01%20ERROR"}, 404, "GGS-00902"),
        ({"path": "/"}, 404, "GGS-00902"),
        ({"headers": "Authorization: Basic dW1hOmNvcnJlY3QtaG9yc2UtNw==\r\n"}, 403, "does not send trails"),
        ({"headers": "Authorization: Basic !!\r\n"}, 401, "GGS-00902"),
    ],
    ids=["protocol", "origin", "resource", "forged", "root", "role", "credentials"],
)
def test_what_the_request_shows_is_refused_by_http(
    homes: TwoHomes, change: dict[str, str], status: int, code: str
) -> None:
    refused = RawSender(homes.target.port, **change)  # type: ignore[arg-type]
    assert (refused.status, code in refused.refusal) == (status, True), refused.refusal
    assert "A trail from 127.0.0.1 is refused" in events(homes)


@pytest.mark.parametrize(
    ("trail", "code"),
    [
        ("../../tmp/da", "GGS-00902"),
        ("/etc/da", "GGS-00902"),
        ("..", "GGS-00002"),
        ("./dirdat/..", "GGS-00002"),
        (".x", "GGS-00002"),
        ("./dirprm/da", "GGS-00002"),
        ("./dirtmp/RP1/da", "GGS-00002"),
        ("./dirtmp/task-REP1/da", "GGS-00002"),
        ("dirwlt/../dircrd/da", "GGS-00002"),
        ("link/da", "GGS-00902"),
        ("loop/da", "GGS-00002"),
        ("", "GGS-00002"),
        ("d\0", "GGS-00955"),
        ("a\nb/da", "GGS-00955"),
        ("x" * 300 + "/da", "GGS-00955"),
    ],
)
def test_a_trail_outside_the_folders_for_trails_is_refused(
    homes: TwoHomes, sender: RawSender, tmp_path: Path, trail: str, code: str
) -> None:
    if "link" in trail:
        (homes.target.home / "link").symlink_to(tmp_path)
    if "loop" in trail:
        (homes.target.home / "loop").symlink_to("loop")
    answer = sender.open(homes.source, trail)
    assert (answer["type"], answer["code"]) == ("refusal", code)
    assert list(tmp_path.iterdir()) == []
    assert f"{code}  " in events(homes)


def test_a_trail_that_a_group_of_the_receiving_home_is_to_write_is_refused(homes: TwoHomes, sender: RawSender) -> None:
    homes.target.run("ADD DISTPATH own, SOURCE ./dirdat/da, TARGET ./dirdat/ow")
    answer = sender.open(homes.source, "./dirdat/ow")
    assert (answer["type"], answer["code"]) == ("refusal", "GGS-00954")
    assert "DISTPATH OWN of this home writes it" in answer["message"]


@pytest.mark.parametrize(
    "changes",
    [
        {"group": "DP1\n2026-11-23 00:00:00  ERROR   GGS-00001  forged:  text"},
        {"host": "h\r\n2026-11-23 00:00:00  ERROR   GGS-00001  forged:  text"},
        {"home": "\u2028"},
        {"release": "x" * 300},
        {"reached": [-1, 0]},
        {"reached": [0, 1 << 70]},
        {"reached": [1 << 40, 5]},
        {"reached": "x"},
        {"type": "opened"},
        {"home": "0123456789abcdef"},
        {"host": None},
        {"host": "\ud800"},
        {"certificate": "AAAA"},
        {"signature": "AAAA"},
        {"certificate": "", "signature": ""},
        {"group": "DP2"},
        {"receiver": ":".join(["0F"] * 32)},
        {"receiver": ""},
        {"reads": True},
        {"unchecked": True},
    ],
    ids=repr,
)
def test_an_opening_that_is_not_valid_is_refused(
    homes: TwoHomes, sender: RawSender, changes: dict[str, object]
) -> None:
    answer = sender.open(homes.source, **changes)  # type: ignore[arg-type]
    assert answer["type"] == "refusal"
    assert answer["code"] in ("GGS-00951", "GGS-00955")
    assert sender.end() is not None
    assert not [line for line in events(homes).splitlines() if line.startswith("2026-11-23 00:00:00")]


def test_the_statement_that_adds_an_unknown_sender_contains_only_a_name(homes: TwoHomes, tmp_path: Path) -> None:
    Home(tmp_path).ensure()
    sender = RawSender(homes.target.port)
    answer = sender.open(tmp_path, host="a, FINGERPRINT 00; DELETE ER *")
    assert answer["code"] == "GGS-00951"
    assert re.search(r"ADD PEER aFINGERPRINT00DELETEER, FINGERPRINT [0-9A-F:]{95}$", answer["hint"])


@pytest.mark.parametrize("what", ["binary", "no json", "huge", "deep", "announced", "many parts", "not utf-8"])
def test_a_first_message_that_is_no_opening_ends_the_connection(sender: RawSender, what: str) -> None:
    sender.message()
    if what == "announced":
        sender.send(BINARY, b"x", announce=10 << 30)
    elif what == "huge":
        sender.send(TEXT, b"{" * 40_000)
    elif what == "many parts":
        sender.send(TEXT, b"", fin=False)
        with contextlib.suppress(OSError):
            for _ in range(3000):
                sender.send(0, b"", fin=False)
    else:
        text = {"no json": b"opening", "deep": b"[" * 30_000, "binary": b"x", "not utf-8": b"\xff\xfe"}[what]
        sender.send(BINARY if what == "binary" else TEXT, text)
    goodbye = sender.end()
    assert goodbye is not None
    assert goodbye[0] == {"announced": 1009, "huge": 1009, "many parts": 1009, "not utf-8": 1007}.get(what, 1000)


def opened(homes: TwoHomes, sender: RawSender, trail: str) -> bytes:
    """Open a new trail; returns the header of a trail file."""
    answer = sender.open(homes.source, trail)
    assert answer["type"] == "opened", answer
    file = homes.read.file(0).read_bytes()
    return file[: int.from_bytes(file[2:4], "little")]


def resealed(frame: bytes, place: int, value: bytes) -> bytes:
    """A frame with other bytes at a place of its head, and a right checksum."""
    changed = frame[:place] + value + frame[place + len(value) :]
    checksum = zlib.crc32(changed[:18] + bytes(4) + changed[22:])
    return changed[:18] + struct.pack(">I", checksum) + changed[22:]


def bad_messages(header: bytes) -> dict[str, list[bytes]]:
    """Messages after which a receiver must end the connection."""
    create = encode_frame(Frame(FrameKind.CREATE, TrailPosition(0, 0), header))
    append = encode_frame(Frame(FrameKind.APPEND, TrailPosition(0, len(header)), b"x" * 100))
    end = DurableMark(TrailPosition(0, len(header) + 50), Csn(1))
    return {
        "truncated": [create[:-1]],
        "head only": [create[:10]],
        "empty": [b""],
        "checksum": [create[:-1] + bytes([create[-1] ^ 1])],
        "replayed": [create, create],
        "replayed append": [create, append, append],
        "reordered": [append, create],
        "kind": [resealed(create, 0, b"\x07")],
        "announced in the frame": [resealed(create, 14, b"\xff\xff\xff\xff")],
        "not compressed": [resealed(create, 1, b"\x01")],
        "header": [encode_frame(Frame(FrameKind.CREATE, TrailPosition(0, 0), b"no header of a trail"))],
        "file number": [encode_frame(Frame(FrameKind.CREATE, TrailPosition(4_000_000_000, 0), header))],
        "end after data": [create, encode_frame(Frame(FrameKind.APPEND, TrailPosition(0, len(header)), b"x", end))],
        "continue": [create, encode_frame(Frame(FrameKind.CONTINUE, end.position, b"", end))],
        "gap": [create, encode_frame(Frame(FrameKind.CREATE, TrailPosition(2, 0), header))],
    }


@pytest.mark.parametrize("what", bad_messages(b""))
def test_a_message_that_is_no_frame_at_its_place_is_refused(homes: TwoHomes, sender: RawSender, what: str) -> None:
    trail = f"x{list(bad_messages(b'')).index(what):x}"
    for message in bad_messages(opened(homes, sender, trail))[what]:
        sender.send(BINARY, message)
    found = sender.receive()
    while found is not None and found[0] == BINARY:
        found = sender.receive()
    assert found is not None
    refusal = json.loads(found[1])
    assert (refusal["code"], refusal["again"]) == ("GGS-00955", True)
    assert "GGS-00955  " in events(homes)


def test_text_in_the_place_of_a_frame_is_refused(homes: TwoHomes, sender: RawSender) -> None:
    opened(homes, sender, "y1")
    sender.send(TEXT, b"not binary")
    assert sender.message()["code"] == "GGS-00955"


def test_a_frame_longer_than_any_frame_is_refused_before_it_arrives(homes: TwoHomes, sender: RawSender) -> None:
    opened(homes, sender, "y2")
    sender.send(BINARY, bytes(1000), announce=10 << 30)
    goodbye = sender.end()
    assert goodbye is not None
    assert goodbye[0] == 1009
    until("the trail is released", lambda: "y2 from" in events(homes))


def test_a_client_that_never_reads_ends(homes: TwoHomes, sender: RawSender) -> None:
    """It sends pings, whose answers would fill the memory of the service."""
    sender.message()
    sender.stream.settimeout(30)
    with pytest.raises(OSError):
        for _ in range(200_000):
            sender.send(PING, bytes(125))


def test_readers_that_never_read_wait_in_the_network(homes: TwoHomes) -> None:
    """More than the window of 16 MB is sent to none of them; what they do not read is not kept in memory either."""
    readers = []
    for number in range(4):
        name = TrailName(homes.target.home / "dirdat", f"r{number}")
        with closing(TrailWriter.open(name, clock=SystemClock(), producer=PRODUCER, max_bytes=1 << 30)) as writer:
            for csn in range(1, 31):
                writer.write(small(csn, 100, 10_000))
            writer.flush()
        reader = RawSender(homes.target.port, path=f"/services/v2/sources?trail=r{number}")
        assert reader.open(homes.source, f"r{number}", reads=True)["type"] == "opened"
        readers.append(reader)
    seen: list[list[int]] = []

    def stands_still() -> bool:
        seen.append([waiting(each) for each in readers])
        return len(seen) > 20 and all(seen[-1]) and seen[-1] == seen[-20]

    until("nothing more arrives", stands_still)
    for each in readers:
        each.close()


def waiting(reader: RawSender) -> int:
    """How many bytes have arrived and wait to be read."""
    return int(struct.unpack("i", fcntl.ioctl(reader.stream.fileno(), termios.FIONREAD, bytes(4)))[0])


def test_a_thousand_connections_that_only_open_leave_the_paths_alone(homes: TwoHomes) -> None:
    """The buffers of their TLS are kept for later connections: a second thousand needs no more memory."""
    memory = 0
    for _ in range(2):
        senders = [RawSender(homes.target.port, upgrade=number % 4 == 0) for number in range(1000)]
        homes.write(10)
        homes.until_equal()
        assert not memory or memory_of(homes) < memory + 80 * MEGABYTE
        memory = memory_of(homes)
        for each in senders:
            each.close()
