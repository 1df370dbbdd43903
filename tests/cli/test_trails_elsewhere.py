"""A trail that a group writes in another home is not confused with a trail of the same name on this machine."""

from __future__ import annotations

from cli.shell import Shell
from trail_kit import small, write_trail

from ggshell.cli.complete import LiveNames
from ggshell.cli.options import Options
from ggshell.cli.session import Session
from ggshell.cli.trails import trail_places
from ggshell.clock import SystemClock
from ggshell.groups.purge import matching, purge
from ggshell.groups.trail_removal import remove_files
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind
from ggshell.network.trail_owner import TrailOwner, claim
from ggshell.parameters.process_parameters import PurgeRule
from ggshell.trail.name import TrailName
from ggshell.types import TrailPosition

URL = "wss://south:7810/services/v2/targets?trail=da"


def saved(shell: Shell, name: str, kind: GroupKind) -> Checkpoint:
    return checkpoints.load(shell.home.checkpoint(name, kind))


def with_path(shell: Shell) -> Checkpoint:
    """A path to trail da of another home, which it has written up to file 7."""
    assert shell.batch(f"ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET {URL}").code == 0
    found = saved(shell, "DP1", GroupKind.PATH)
    written = found._replace(write=(found.write[0]._replace(current=TrailPosition(7, 1000)),))
    shell.save(written)
    return written


def test_a_local_trail_can_have_the_name_of_a_trail_in_another_home(shell: Shell) -> None:
    with_path(shell)
    answer = shell.batch("ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea", "ADD EXTTRAIL ./dirdat/da, EXTRACT pmp1")
    assert answer.code == 0, answer.err
    assert "da" in shell.batch("INFO EXTTRAIL ./dirdat/da").out
    assert URL in shell.batch("INFO RMTTRAIL ./dirdat/da").out.replace("./dirdat/da", "da")
    refused = shell.batch("ADD DISTPATH dp2, SOURCE ./dirdat/ea, TARGET ./dirdat/da")
    assert refused.code == 1
    assert "already written by EXTRACT PMP1" in refused.err


def test_files_are_removed_by_the_local_groups_only(shell: Shell) -> None:
    found = with_path(shell)
    local = TrailName(shell.home.root / "dirdat", "da")
    write_trail(local, [small(csn) for csn in range(1, 12)], max_bytes=400)
    assert matching([found], shell.home, "./dirdat/d?") == matching([], shell.home, "./dirdat/d?")
    removed = remove_files(shell.home, local, 0, local.sequences()[-1])
    assert len(removed) > 1  # the position of the path is one of the other home
    assert list(trail_places(shell.home)) == []
    assert purge(shell.home, PurgeRule("./dirdat/d*", use_checkpoints=False), SystemClock().now()) == []


def test_a_pump_with_rmthost_can_have_the_name_of_a_local_trail(shell: Shell) -> None:
    shell.home.ensure()
    for name, host in (("pmp1", "south, MGRPORT 7809"), ("pmp2", "west, MGRPORT 7809"), ("pmp3", "localhost, PORT 1")):
        text = f"EXTRACT {name}\nRMTHOST {host}\nRMTTRAIL ./dirdat/da\nTABLE *.*;\n"
        shell.home.parameters(name.upper()).write_text(text)
        shell.batch(f"ADD EXTRACT {name}, EXTTRAILSOURCE ./dirdat/ea")
        assert shell.batch(f"ADD RMTTRAIL ./dirdat/da, EXTRACT {name}").code == 0
    assert saved(shell, "PMP1", GroupKind.EXTRACT).write[0].receiver_place == "south:7809"
    again = shell.batch("ADD RMTTRAIL ./dirdat/da, EXTRACT pmp1")
    assert "already written by EXTRACT PMP1" in again.err


def test_completion_offers_trails_of_other_homes_for_rmttrail_only(shell: Shell) -> None:
    with_path(shell)
    names = LiveNames(Session(Options(home=str(shell.home.root))))
    assert "./dirdat/da" not in names.of("trail", ["TRAIL", "COUNT", "FROM"])
    assert "./dirdat/da" in names.of("trail", ["INFO", "RMTTRAIL"])


def test_a_trail_that_arrives_from_another_home_has_no_other_writer(shell: Shell) -> None:
    shell.home.ensure()
    claim(TrailName(shell.home.root / "dirdat", "ra"), TrailOwner("0123", "north", "PMP9"))
    shell.batch("ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea")
    for statement in ("ADD EXTTRAIL ./dirdat/ra, EXTRACT pmp1", "ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET ra"):
        refused = shell.batch(statement)
        assert refused.code == 1
        assert "belongs to its sender" in refused.err
        assert "PMP9 of home 0123 on north writes it" in refused.err
