"""decode_record on every damaged record: it is refused with what was expected, never accepted as a record."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from trail.damage_kit import KINDS, cuts, flips, rounds_of, sample_record, splices

from ggshell.errors import TrailError
from ggshell.trail.record import decode_record

RECORDS = {name: kind for name, kind in KINDS.items() if kind.pick is not None}


@pytest.mark.parametrize("name", RECORDS)
def test_a_damaged_record_is_refused(tmp_path: Path, name: str) -> None:
    sample, rng = sample_record(tmp_path, RECORDS[name]), random.Random(11)
    good = decode_record(sample.record, rba=sample.rba)
    assert (good.checksum is not None, good.place) == (True, sample.rba)
    tried = 0
    for content in (*cuts(sample, rng), *flips(sample, rng)):
        damaged = content[sample.rba : sample.rba + sample.size]
        with pytest.raises(TrailError, match=r"expected .+") as caught:
            decode_record(damaged, rba=sample.rba, file=sample.path)
        assert caught.value.where == f"{sample.path}, RBA {sample.rba}"
        tried += 1
    assert tried == sample.size * 9 or sample.size > 400


@pytest.mark.parametrize("name", RECORDS)
def test_a_spliced_record_is_refused_or_has_no_checksum(
    tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    """Without its checksum token, a record may pass for one of a program that writes no checksums."""
    rounds = rounds_of(request)
    sample, rng = sample_record(tmp_path, RECORDS[name]), random.Random(12)
    refused = 0
    for content in splices(sample, rng, int(200 * rounds)):
        damaged = content[sample.rba : len(content) - (len(sample.content) - sample.rba - sample.size)]
        try:
            found = decode_record(damaged, rba=sample.rba)
        except TrailError as error:
            assert "expected " in str(error)
            refused += 1
        else:
            assert found.checksum is None or damaged == sample.record
    assert refused > 100 * rounds


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_at_a_wrong_rba_is_refused(tmp_path: Path, name: str) -> None:
    sample = sample_record(tmp_path, RECORDS[name])
    with pytest.raises(TrailError, match=f"a record written for this position, not for RBA {sample.rba}"):
        decode_record(sample.record, rba=sample.rba + sample.size)


@pytest.mark.parametrize("name", RECORDS)
def test_without_checksum_verification_only_trail_errors_occur(tmp_path: Path, name: str) -> None:
    """As Logdump decodes damaged records, and those of other programs."""
    sample, rng = sample_record(tmp_path, RECORDS[name]), random.Random(13)
    taken = 0
    for content in (*flips(sample, rng), *splices(sample, rng, 150)):
        try:
            found = decode_record(content[sample.rba : sample.rba + sample.size], checked=False)
            taken += 1
            found.columns()
            found.before_columns()
            found.named_user_tokens()
        except TrailError as error:
            assert str(error)
    assert taken > 100
