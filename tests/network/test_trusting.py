"""Which statement a path shows for a certificate that it does not trust."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.home.home import Home
from ggshell.home.peers import Peers
from ggshell.network.dialing import trusting
from ggshell.network.service_url import ServiceUrl

FINGERPRINT = ":".join(["AB"] * 32)


@pytest.mark.parametrize(
    ("address", "statement"),
    [
        ("127.0.0.1:7810", "ALTER PEER target, ADDRESS 127.0.0.1:7810, localhost:7810"),
        ("", "ALTER PEER target, ADDRESS localhost:7810"),
        (None, f"ADD PEER localhost, ADDRESS localhost:7810, FINGERPRINT {FINGERPRINT}"),
    ],
)
def test_a_peer_that_is_known_elsewhere_receives_the_address(
    tmp_path: Path, address: str | None, statement: str
) -> None:
    peers = Peers(Home(tmp_path))
    if address is not None:
        peers.add("target", address, FINGERPRINT)
    assert trusting(ServiceUrl("https", "localhost", 7810), peers, FINGERPRINT) == statement
