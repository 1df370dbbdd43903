"""ADD, ALTER, DELETE and INFO PEER in the shell."""

from __future__ import annotations

import os
import re

from cli.shell import Shell

from ggshell.home.certificate import read_certificate
from ggshell.home.peers import Peer, Peers

ONE = ":".join(["0F"] * 32)
TWO = ":".join(["1E"] * 32)


def test_peers_are_added_altered_shown_and_deleted(shell: Shell) -> None:
    added = shell.batch(
        f"ADD PEER south, ADDRESS south:7810, FINGERPRINT SHA256:{ONE.lower()}",
        f"ADD PEER east, FINGERPRINT {ONE.replace(':', '')}",
        f"ALTER PEER east, FINGERPRINT {TWO}, ADDRESS east:7810",
        'ALTER PEER south, ADDRESS ""',
    )
    assert (added.code, added.err) == (0, "")
    assert Peers(shell.home).all() == [Peer("east", "east:7810", TWO), Peer("south", "", ONE)]
    shown = shell.batch("INFO PEER *").out
    assert re.search(rf"east +east:7810 +{TWO}\nsouth +{ONE}\n", shown)
    assert "south" not in shell.batch("INFO PEER e*").out
    assert "peer west does not exist" in shell.batch("INFO PEER west").err
    assert "Peer east deleted." in shell.batch("DELETE PEER east").out
    (answer,) = shell.run("--format", "json", "-c", "INFO PEERS").objects
    assert [row[0] for row in answer["rows"][1:]] == ["south"]


def test_a_peer_has_several_addresses_and_a_reverse_proxy(shell: Shell) -> None:
    added = shell.batch(
        f"ADD PEER south, ADDRESS south:7810, 10.0.0.1:443, FINGERPRINT {ONE}, PROXY {TWO.lower()}",
        f"ADD PEER east, FINGERPRINT {ONE}, PROXY authority, ADDRESS east:443",
    )
    assert (added.code, added.err) == (0, "")
    both = Peer("south", "south:7810, 10.0.0.1:443", ONE, TWO)
    assert Peers(shell.home).all() == [Peer("east", "east:443", ONE, "AUTHORITY"), both]
    assert re.search(rf"south +south:7810, 10.0.0.1:443 +{ONE}\n +proxy {TWO}\n", shell.batch("INFO PEER").out)
    assert shell.batch('ALTER PEER south, PROXY ""').code == 0
    assert Peers(shell.home).by_address("10.0.0.1", 443) == both._replace(proxy="")


def test_the_printed_statement_adds_this_home_to_another_one(shell: Shell) -> None:
    shell.home.ensure()
    shell.home.parameters("service").write_text("PORT 7819\nADDRESS ::\n")
    shown = shell.batch("INFO PEER").out
    own = read_certificate(shell.home.root / "dirwlt" / "service.crt").fingerprint
    assert f"The fingerprint of this home is {own}." in shown
    assert "listens on this machine only" not in shown
    statement = re.search(r"^ +(ADD PEER .*)$", shown, re.MULTILINE)
    assert statement is not None
    assert shell.batch(statement[1]).code == 0
    (peer,) = Peers(shell.home).all()
    assert (peer.fingerprint, peer.address) == (own, f"{os.uname().nodename.lower()}:7819")
    assert f"https://{os.uname().nodename}:7819\n" in shell.batch("INFO SERVICE").out


def test_the_configured_certificate_is_shown(shell: Shell) -> None:
    shell.home.ensure()
    first = shell.batch("INFO PEER").out
    assert "listens on this machine only" in first
    for suffix in ("crt", "key"):
        (shell.home.root / "dirwlt" / f"service.{suffix}").rename(shell.home.root / f"mine.{suffix}")
    shell.home.parameters("service").write_text("CERTIFICATE mine.crt, KEY mine.key\n")
    assert shell.batch("INFO PEER").out == first
    assert not (shell.home.root / "dirwlt" / "service.crt").exists()


def test_a_home_that_does_not_exist_is_not_created(shell: Shell) -> None:
    assert "does not exist" in shell.batch("INFO PEER").err
    assert not shell.home.root.exists()


def test_a_fingerprint_that_is_not_valid_is_refused(shell: Shell) -> None:
    for wrong in ("12:34", "MD5:12:34", ONE + ":0F"):
        assert f"{wrong} is not a valid fingerprint" in shell.batch(f"ADD PEER south, FINGERPRINT {wrong}").err
    assert "FINGERPRINT" in shell.batch("ADD PEER south, ADDRESS south:7810").err
