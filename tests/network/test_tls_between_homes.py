"""TLS between two homes: its versions, somebody in the middle, a reverse proxy, and users instead of peers."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from nginx_tools import find_nginx, reverse_proxy
from processes import until_state
from service_client import PASSWORD
from two_homes import TwoHomes, fingerprint

from ggshell.clock import SystemClock
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.peers import Peers
from ggshell.home.process_file import ProcessState
from ggshell.network.proof import HomeKey, home_key

pytestmark = pytest.mark.slow
OPENSSL = shutil.which("openssl") or ""


@pytest.fixture
def other(tmp_path: Path) -> HomeKey:
    """The certificate of a third machine."""
    home = Home(tmp_path / "other")
    home.ensure()
    return home_key(home, SystemClock())


class Middle:
    """Somebody between the homes, who shows a certificate of his own; ``heard`` is what the sender told him."""

    def __init__(self, key: HomeKey) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(key.certificate, key.key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.heard = b""
        self.thread = threading.Thread(target=self._listen)
        self.thread.start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                plain, _ = self._listener.accept()
                with suppress(OSError), self._context.wrap_socket(plain, server_side=True) as stream:
                    self.heard += stream.recv(65536)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.thread.join()


@pytest.fixture
def middle(other: HomeKey) -> Iterator[Middle]:
    found = Middle(other)
    yield found
    found.close()


def test_somebody_in_the_middle_hears_nothing(homes: TwoHomes, middle: Middle) -> None:
    homes.trust(middle.port)
    homes.write(5)
    homes.start_path(middle.port)
    until_state(Home(homes.source), "DP1", GroupKind.PATH, ProcessState.ABENDED)
    assert "GGS-00924" in homes.report()
    assert middle.heard == b""
    Peers(Home(homes.source)).delete(f"target{middle.port}")
    homes.run("START DISTPATH dp1")
    until_state(Home(homes.source), "DP1", GroupKind.PATH, ProcessState.ABENDED)
    assert "GGS-00922" in homes.report()
    assert middle.heard == b""


def offered(port: int, version: str) -> str:
    """What ``openssl s_client`` says of a port if it offers one version of TLS, with the weakest methods."""
    command = [OPENSSL, "s_client", "-connect", f"127.0.0.1:{port}", f"-{version}", "-cipher", "ALL:@SECLEVEL=0"]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False, timeout=60)
    return done.stdout + done.stderr


@pytest.mark.skipif(not OPENSSL, reason="this machine has no openssl")
def test_openssl_sees_only_versions_of_tls_that_are_safe_on_both_ports(tmp_path: Path) -> None:
    homes = TwoHomes(tmp_path, manager_port=True)
    try:
        for port in (homes.target.port, homes.manager_port):
            for version in ("tls1", "tls1_1"):
                said = offered(port, version)
                assert "alert protocol version" in said
                assert "Cipher is (NONE)" in said
            assert "Protocol  : TLSv1.2" in offered(port, "tls1_2")
            assert "New, TLSv1.3, Cipher is" in offered(port, "tls1_3")
    finally:
        homes.close()


@pytest.mark.parametrize("by", ["peer", "authority"])
def test_a_path_goes_through_a_reverse_proxy(
    homes: TwoHomes, other: HomeKey, tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = find_nginx()
    if program is None:
        pytest.skip("this machine has no nginx, and Debian's package cannot be downloaded")
    if by == "authority":
        monkeypatch.setenv("OGG_CLIENT_TLS_CAPATH", str(other.certificate))
    own, address = fingerprint(homes.target.home), f"127.0.0.1:{homes.target.port}"
    with reverse_proxy(program, tmp_path / "nginx", homes.target.port, other.certificate, other.key) as port:
        proxy = "AUTHORITY" if by == "authority" else fingerprint(tmp_path / "other")
        homes.run(f"DELETE PEER target{homes.target.port}")
        homes.run(f"ADD PEER target, ADDRESS {address}, 127.0.0.1:{port}, FINGERPRINT {own}, PROXY {proxy}")
        homes.write(200)
        homes.start_path(port)
        homes.until_equal()
        homes.write(20)
        homes.until_equal()


def test_a_user_who_may_send_trails_replaces_the_peer_and_another_user_does_not(homes: TwoHomes) -> None:
    Peers(Home(homes.target.home)).delete("source")
    homes.write(5)
    homes.run("ADD CREDENTIALSTORE")
    for user in ("uma", "dora"):
        homes.run(f"ALTER CREDENTIALSTORE ADD USER {user} PASSWORD {PASSWORD} ALIAS {user}")
        homes.run(
            f"ADD DISTPATH d{user}, SOURCE ./dirdat/ea, TARGET {homes.url()}, AUTHENTICATION USERIDALIAS {user};"
            f" START DISTPATH d{user}"
        )
        if user == "uma":
            until_state(Home(homes.source), "DUMA", GroupKind.PATH, ProcessState.ABENDED)
            report = (homes.source / "dirrpt" / "DUMA.rpt").read_text()
            refusal = next(line for line in report.splitlines() if "does not send trails" in line)
            assert refusal.count(" - ") == 1  # one hint
            assert "ALTER USER uma, ROLE DISTRIBUTION" in refusal
            assert homes.rows() == []
    homes.until_equal()
