"""A peer that passes a proof on to a third home: the proof is not made, or of no use there."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from processes import until_state
from reading_homes import ReadingHomes
from two_homes import TwoHomes, fingerprint

from ggshell.clock import SystemClock
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.peers import Peers
from ggshell.home.process_file import ProcessState
from ggshell.network.proof import HomeKey, home_key

pytestmark = pytest.mark.slow


class Relay:
    """A service with its own certificate that passes every connection on to the service at ``to``, decrypted in between.

    ``instead``: bytes of the third home's messages that are replaced by others of the same length."""

    def __init__(self, key: HomeKey, to: int) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(key.certificate, key.key)
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.instead: tuple[bytes, bytes] = b"", b""
        self.relayed = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                plain, _ = self._listener.accept()
                threading.Thread(target=self._pass, args=(plain,), daemon=True).start()

    def _pass(self, plain: socket.socket) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with (
            suppress(OSError),
            self._context.wrap_socket(plain, server_side=True) as near,
            context.wrap_socket(socket.create_connection(("127.0.0.1", self._to))) as far,
        ):
            threading.Thread(target=self._copy, args=(far, near, self.instead), daemon=True).start()
            self._copy(near, far, (b"", b""))

    def _copy(self, one: ssl.SSLSocket, other: ssl.SSLSocket, instead: tuple[bytes, bytes]) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                self.relayed += len(data)
                other.sendall(data.replace(*instead) if instead[0] else data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def relaying(tmp_path: Path) -> HomeKey:
    """The key of a home that is a peer of the one that dials."""
    home = Home(tmp_path / "relaying")
    home.ensure()
    return home_key(home, SystemClock())


@pytest.fixture
def relay(homes: TwoHomes, relaying: HomeKey, tmp_path: Path) -> Iterator[Relay]:
    """A peer of the source home, which passes what it hears on to the target home."""
    found = Relay(relaying, homes.target.port)
    Peers(Home(homes.source)).add("relaying", f"127.0.0.1:{found.port}", fingerprint(tmp_path / "relaying"))
    yield found
    found.close()


def until_refused(homes: TwoHomes, code: str) -> str:
    until_state(Home(homes.source), "DP1", GroupKind.PATH, ProcessState.ABENDED)
    text = " ".join(homes.report().split())
    assert code in text
    assert homes.rows() == []
    return text


def test_a_peer_cannot_send_a_trail_in_the_name_of_a_home_that_sends_to_it(homes: TwoHomes, relay: Relay) -> None:
    homes.write(5)
    homes.start_path(relay.port)
    text = until_refused(homes, "GGS-00963")
    assert relay.relayed
    assert f"belongs to the home with the fingerprint {fingerprint(homes.target.home)}, but peer relaying has" in text


def test_a_peer_that_announces_itself_has_a_proof_for_itself_only(
    homes: TwoHomes, relay: Relay, tmp_path: Path
) -> None:
    relay.instead = fingerprint(homes.target.home).encode(), fingerprint(tmp_path / "relaying").encode()
    homes.write(5)
    homes.start_path(relay.port)
    assert "could not prove that its certificate is its own" in until_refused(homes, "GGS-00951")


def test_a_host_with_an_authoritys_certificate_cannot_relay_either(
    homes: TwoHomes, relaying: HomeKey, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OGG_CLIENT_TLS_CAPATH", str(relaying.certificate))
    Peers(Home(homes.source)).delete("relaying")
    homes.write(5)
    homes.start_path(relay.port)
    place = f"127.0.0.1:{relay.port}"
    statement = f"ADD PEER 127.0.0.1, ADDRESS {place}, FINGERPRINT {fingerprint(homes.target.home)}, PROXY AUTHORITY"
    assert statement in until_refused(homes, "GGS-00963")


def test_a_peer_cannot_read_a_trail_in_the_name_of_a_home_that_reads_one_there(
    tmp_path: Path, relaying: HomeKey
) -> None:
    reading = ReadingHomes(tmp_path)
    relay = Relay(relaying, reading.source.port)
    Peers(Home(reading.target)).add("relaying", f"127.0.0.1:{relay.port}", fingerprint(tmp_path / "relaying"))
    reading.write(5)
    reading.start_path(relay.port)
    until_state(Home(reading.target), "RP1", GroupKind.RECVPATH, ProcessState.ABENDED)
    assert "GGS-00963" in reading.report()
    assert reading.rows() == []
    relay.close()
    reading.close()
