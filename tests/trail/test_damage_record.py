"""decode_record on every damaged record: refused with what was expected, never taken for a record."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from trail.damage_kit import KINDS, cuts, exhibit, flips, rounds_of, splices

from ggshell.errors import TrailError
from ggshell.trail.record import decode_record

RECORDS = {name: kind for name, kind in KINDS.items() if kind.pick is not None}


@pytest.mark.parametrize("name", RECORDS)
def test_a_damaged_record_is_refused(tmp_path: Path, name: str) -> None:
    shown, chance = exhibit(tmp_path, RECORDS[name]), random.Random(11)
    good = decode_record(shown.record, rba=shown.rba)
    assert (good.checksum is not None, good.place) == (True, shown.rba)
    tried = 0
    for content in (*cuts(shown, chance), *flips(shown, chance)):
        damaged = content[shown.rba : shown.rba + shown.size]
        with pytest.raises(TrailError, match=r"expected .+") as caught:
            decode_record(damaged, rba=shown.rba, file=shown.path)
        assert caught.value.where == f"{shown.path}, RBA {shown.rba}"
        tried += 1
    assert tried == shown.size * 9 or shown.size > 400


@pytest.mark.parametrize("name", RECORDS)
def test_a_spliced_record_is_refused_or_is_another_programs(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    """Bytes whose checksum token is gone altogether may pass for a record of a program that writes none."""
    rounds = rounds_of(request)
    shown, chance = exhibit(tmp_path, RECORDS[name]), random.Random(12)
    refused = 0
    for content in splices(shown, chance, int(200 * rounds)):
        damaged = content[shown.rba : len(content) - (len(shown.content) - shown.rba - shown.size)]
        try:
            found = decode_record(damaged, rba=shown.rba)
        except TrailError as error:
            assert "expected " in str(error)
            refused += 1
        else:
            assert found.checksum is None or damaged == shown.record
    assert refused > 100 * rounds


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_at_another_place_is_refused(tmp_path: Path, name: str) -> None:
    shown = exhibit(tmp_path, RECORDS[name])
    with pytest.raises(TrailError, match=f"a record written for this position, not for RBA {shown.rba}"):
        decode_record(shown.record, rba=shown.rba + shown.size)


@pytest.mark.parametrize("name", RECORDS)
def test_without_a_check_nothing_but_a_trail_error_comes(tmp_path: Path, name: str) -> None:
    """As Logdump takes damaged records apart, and other programs'."""
    shown, chance = exhibit(tmp_path, RECORDS[name]), random.Random(13)
    taken = 0
    for content in (*flips(shown, chance), *splices(shown, chance, 150)):
        try:
            found = decode_record(content[shown.rba : shown.rba + shown.size], checked=False)
            taken += 1
            found.columns()
            found.before_columns()
            found.named_user_tokens()
        except TrailError as error:
            assert str(error)
    assert taken > 100
