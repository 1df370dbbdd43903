"""The peers of a home: names, addresses and fingerprints, and a file that cannot be read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ggshell.clock import SystemClock
from ggshell.errors import ConflictError, NotFoundError, StoreError, UsageError
from ggshell.home.certificate import ensure_certificate, read_certificate
from ggshell.home.home import Home
from ggshell.home.peers import Peer, Peers

ONE = ":".join(["0F"] * 32)
TWO = ":".join(["1E"] * 32)


@pytest.mark.parametrize("text", [ONE, ONE.lower(), ONE.replace(":", ""), f"SHA256:{ONE}", f"sha256:{'0f' * 32}"])
def test_a_fingerprint_is_accepted_in_every_form(home: Home, text: str) -> None:
    added = Peers(home).add("south", "South.Example.com:7810", text)
    assert added == Peer("south", "south.example.com:7810", ONE)
    assert Peers(home).by_fingerprint(text) == added
    assert Peers(home).by_address("SOUTH.example.com", 7810) == added
    assert Peers(home).by_fingerprint(TWO) is None
    assert Peers(home).by_address("south.example.com", 7809) is None


def test_the_form_is_that_of_the_homes_own_certificate(home: Home) -> None:
    own = read_certificate(ensure_certificate(home, SystemClock())[0]).fingerprint
    assert Peers(home).add("own", "", own.replace(":", "")).fingerprint == own


@pytest.mark.parametrize(
    ("name", "address", "fingerprint"),
    [
        ("", "", ONE),
        ("a b", "", ONE),
        ("../x", "", ONE),
        ("x" * 65, "", ONE),
        ("south", "south", ONE),
        ("south", "south:0", ONE),
        ("south", "south:65536", ONE),
        ("south", "wss://south:7810", ONE),
        ("south", "::1:7810", ONE),
        ("south", "", ONE[:-3]),
        ("south", "", f"{ONE}:0F"),
        ("south", "", "SHA256:uNiVztksCsDhcc0u9e8BrNXLVMbe9cU8rEIi9nzeyuo"),
    ],
)
def test_a_value_that_is_not_valid_is_refused(home: Home, name: str, address: str, fingerprint: str) -> None:
    with pytest.raises(UsageError, match="is not a valid"):
        Peers(home).add(name, address, fingerprint)
    assert Peers(home).all() == []


def test_an_address_belongs_to_one_peer_and_a_fingerprint_may_have_several_addresses(home: Home) -> None:
    peers = Peers(home)
    peers.add("south", "[::1]:7810", ONE)
    assert peers.by_address("::1", 7810) == peers.by_address("[::1]", 7810) == Peer("south", "[::1]:7810", ONE)
    with pytest.raises(ConflictError, match="peer south already has the address"):
        peers.add("other", "[::1]:7810", TWO)
    peers.add("other", "[::1]:7809", ONE)
    with pytest.raises(ConflictError, match="peer south already has the address"):
        peers.alter("other", address="[::1]:7810")
    with pytest.raises(ConflictError, match="peer south already exists"):
        peers.add("south", "", TWO)
    assert peers.by_address("", 7810) is None
    peers.add("third", "a:1, B:2,a:1", TWO, "authority")
    assert peers.by_address("b", 2) == Peer("third", "a:1, b:2", TWO, "AUTHORITY")
    with pytest.raises(ConflictError, match="peer third already has the address b:2"):
        peers.alter("other", address="c:3, b:2")
    assert peers.alter("third", address="", proxy="") == Peer("third", "", TWO)
    peers.delete("third")
    assert [peer.name for peer in peers.all()] == ["other", "south"]


def test_peers_are_found_by_their_host(home: Home) -> None:
    peers = Peers(home)
    peers.add("south", "south:7810, [::1]:7810", ONE)
    peers.add("other", "south2:7810", TWO)
    assert [each.name for each in peers.on_host("SOUTH")] == [each.name for each in peers.on_host("::1")] == ["south"]
    assert peers.on_host("sout") == []


def test_a_peer_is_altered_and_deleted(home: Home) -> None:
    peers = Peers(home)
    peers.add("south", "south:7810", ONE)
    assert peers.alter("south", fingerprint=TWO) == Peer("south", "south:7810", TWO)
    assert peers.by_fingerprint(ONE) is None
    assert peers.alter("south", address="") == Peer("south", "", TWO)
    peers.delete("south")
    assert peers.all() == []
    for change in (lambda: peers.alter("south", address=""), lambda: peers.delete("south")):
        with pytest.raises(NotFoundError, match="peer south does not exist"):
            change()


def test_a_damaged_file_is_named_and_not_replaced(home: Home) -> None:
    Peers(home).add("south", "south:7810", ONE)
    file = home.root / "dirwlt" / "peers.ggs"
    assert file.stat().st_mode & 0o777 == 0o600
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole[:20] + b"\0" + whole[21:]):
        file.write_bytes(damaged)
        for use in (Peers(home).all, lambda: Peers(home).add("east", "", TWO), lambda: Peers(home).by_fingerprint(ONE)):
            with pytest.raises(StoreError, match=r"the file of peers .*peers\.ggs cannot be read"):
                use()
        assert file.read_bytes() == damaged


def test_peers_that_are_added_at_the_same_time_are_all_kept(home: Home) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: Peers(home).add(f"p{number}", f"h:{7000 + number}", ONE), range(16)))
    assert len(Peers(home).all()) == 16


def test_processes_that_need_the_certificate_at_the_same_time_agree(home: Home) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: ensure_certificate(home, SystemClock())[2], range(8)))
    assert sorted(made) == [False] * 7 + [True]
