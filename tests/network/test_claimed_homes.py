"""A peer that claims to be another home, whose id is no secret: it gets nothing of that home's trails."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from select import select

import pytest
from processes import until, until_state
from raw_sender import RawSender
from reading_homes import ReadingHomes
from two_homes import TwoHomes, fingerprint

from ggshell.clock import SystemClock
from ggshell.errors import ProcessError
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.identity import ensure_identity
from ggshell.home.peers import Peers
from ggshell.home.process_file import ProcessState
from ggshell.home.users import Role, Users
from ggshell.network.addresses import parse_receiver
from ggshell.network.dialing import dial
from ggshell.network.handshake import Sender
from ggshell.network.proof import home_key
from ggshell.network.proven import Proven
from ggshell.network.remote_task import ask_for_task
from ggshell.network.trail_owner import TrailOwner, claim, owner_of
from ggshell.network.trail_readers import readers_of
from ggshell.parameters.trail_statements import task_trail
from ggshell.trail.name import TrailName


def another_peer(folder: Path, of: Path) -> Path:
    """A third home, which is a peer too."""
    root = folder / "other"
    Home(root).ensure()
    Peers(Home(of)).add("other", "", fingerprint(root))
    return root


@pytest.mark.parametrize("purge", [None, 0])
def test_a_peer_cannot_continue_the_trail_of_another_home(homes: TwoHomes, tmp_path: Path, purge: int | None) -> None:
    homes.write(5)
    homes.start_path()
    homes.until_equal()
    sender = RawSender(homes.target.port)
    claimed = ensure_identity(homes.source).id, "DP1"
    answer = sender.open(another_peer(tmp_path, homes.target.home), "./dirdat/da", claimed=claimed, purge=purge)
    assert (answer["type"], answer["code"]) == ("refusal", "GGS-00954")
    assert "as peer source, not as peer other" in answer["message"]
    homes.write(5)
    homes.until_equal()
    assert "GGS-00950" not in homes.report(), "the connection of the right sender was ended"


def test_a_home_continues_its_trails_under_another_name_and_as_a_user(homes: TwoHomes) -> None:
    """The peer has another name, then another certificate; then the path signs in."""
    target = Home(homes.target.home)
    homes.write(5)
    homes.start_path()
    homes.until_equal()
    homes.run("STOP DISTPATH dp1")
    Peers(target).delete("source")
    Peers(target).add("north", "", fingerprint(homes.source))
    homes.write(5)
    homes.run("START DISTPATH dp1")
    homes.until_equal()
    homes.run("STOP DISTPATH dp1")
    for file in (homes.source / "dirwlt").glob("service.*"):
        file.unlink()
    Peers(target).alter("north", fingerprint=fingerprint(homes.source))
    homes.write(5)
    homes.run("START DISTPATH dp1")
    homes.until_equal()
    Users(target).add("oggnet", Role.DISTRIBUTION, "correct-horse-7")
    homes.run("STOP DISTPATH dp1; ALTER CREDENTIALSTORE ADD USER oggnet, PASSWORD correct-horse-7, ALIAS oggnet")
    homes.run("ALTER DISTPATH dp1 AUTHENTICATION USERIDALIAS oggnet; START DISTPATH dp1")
    homes.write(5)
    homes.until_equal()
    until("the user is recorded", lambda: "oggnet" in str(owner_of(homes.written)))
    Users(target).alter("oggnet", role=Role.USER)
    until_state(Home(homes.source), "DP1", GroupKind.PATH, ProcessState.ABENDED)
    assert "GGS-00957" in homes.report()


@pytest.mark.slow
def test_a_peer_cannot_forget_or_replace_the_reader_of_another_home(tmp_path: Path) -> None:
    homes = ReadingHomes(tmp_path)
    try:
        homes.write(5)
        homes.start_path()
        homes.until_equal()
        (note,) = readers_of(homes.read)
        other = another_peer(tmp_path, homes.source.home)
        for change in ({"forgets": True}, {"reached": [0, 0]}):
            reader = RawSender(homes.source.port, path="/services/v2/sources?trail=ea")
            answer = reader.open(other, "ea", reads=True, claimed=(note.home, note.group), **change)
            assert (answer["type"], answer["code"]) == ("refusal", "GGS-00951")
        assert readers_of(homes.read) == [note]
        homes.write(5)
        homes.until_equal()
    finally:
        homes.close()


def test_only_the_sender_of_a_load_starts_its_task(homes: TwoHomes, tmp_path: Path) -> None:
    """The load may not be complete, or another one may have removed it."""
    Home(homes.target.home).parameters("rload").write_text("REPLICAT rload\nSPECIALRUN\nMAP a.*, TARGET b.*;\n")
    homes.target.run("ADD REPLICAT rload, SPECIALRUN; START MANAGER")
    trail = TrailName.parse(task_trail("RLOAD"), homes.target.home)
    trail.folder.mkdir(parents=True)
    source = TrailOwner(ensure_identity(homes.source).id, "here", "LOAD1", proven=Proven("peer source"))
    claim(trail, source)
    other, clock = Home(another_peer(tmp_path, homes.target.home)), SystemClock()
    place = f"127.0.0.1:{homes.target.port}"
    Peers(other).add("target", place, fingerprint(homes.target.home))
    address = parse_receiver(homes.url(trail=task_trail("RLOAD")))
    with closing(dial(address, other, clock)) as link:
        asking = Sender(source.home, "LOAD1", home_key(other, clock))
        with pytest.raises(ProcessError, match=r"LOAD1 of home .* has sent no load to REPLICAT RLOAD"):
            ask_for_task(
                link, place, asking, address.trail, "rload", "forged", lambda fd: bool(select([fd], [], [], 60)[0])
            )
    assert owner_of(trail) == source
