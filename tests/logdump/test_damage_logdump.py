"""Logdump on every damaged record: it reports where and what, and finds the next good record."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from logdump.dumps import Dump
from trail.damage_kit import KINDS, SampleRecord, cuts, flips, rounds_of, sample_record, splices
from trail_kit import cut_records

EVERYTHING = (
    "ghdr on",
    "detail data",
    "ggstoken detail",
    "usertoken detail",
    "headertoken detail",
    "fileheader detail",
)
NAVIGATION = (
    "pos first",
    "n 60",
    "count detail",
    "pos last rev",
    "n 60",
    "pos first",
    "sfet",
    "sfmd",
    "sft delete",
    "transhist",
)
_MOST_STEPS = 60


def objects(dump: Dump, *statements: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in dump.say(*statements).splitlines()]


def all_records(dump: Dump) -> Iterator[dict[str, Any]]:
    """Every record from the first position on, across all damage, as a user reads: NEXT, and SCANFORHEADER at damage."""
    dump.say("pos 0")
    for _ in range(_MOST_STEPS):
        (found,) = objects(dump, "n")
        if found.get("rba") is not None and not found.get("length"):
            yield found
            (found,) = objects(dump, "sfh")
        if "rba" not in found:
            return
        yield found
    raise AssertionError("the file comes to no end")


def opened(capsys: pytest.CaptureFixture[str], sample: SampleRecord, *, as_json: bool) -> Dump:
    dump = Dump(capsys, as_json=as_json)
    assert str(sample.path) in dump.say(f"open {sample.path}", "timeoffset gmt")
    return dump


def close(dump: Dump) -> None:
    dump.talk.session.close()


def good_records(capsys: pytest.CaptureFixture[str], sample: SampleRecord) -> dict[int, dict[str, Any]]:
    dump = opened(capsys, sample, as_json=True)
    found = {each["rba"]: each for each in all_records(dump)}
    close(dump)
    assert list(found) == [0, *(rba for rba, _ in cut_records(sample.content))]
    assert {each["fault"] for each in found.values()} == {""}
    return found


def check(dump: Dump, sample: SampleRecord, good: dict[int, dict[str, Any]]) -> None:
    """No damaged record passes for good, the damage is reported, and every good record is found."""
    seen = list(all_records(dump))
    for each in seen:
        if not each["fault"]:
            # The definition itself may be damaged: then only the names and columns of its rows are unknown.
            wanted = good[each["rba"]]
            known = {name for name in wanted if name not in ("table", "columns", "before")}
            assert {name: each[name] for name in known} == {name: wanted[name] for name in known}
            assert each.get("table") in (wanted.get("table"), "")
            for side in ("columns", "before"):
                names = [*each.get(side, {})]
                assert names == [*wanted.get(side, {})] or all(name.isdigit() for name in names)
                assert [*each.get(side, {}).values()] == [*wanted.get(side, {}).values()]
    assert {each["file"] for each in seen} == {str(sample.path)}
    assert any(each["fault"] for each in seen)


@pytest.mark.parametrize("name", KINDS)
def test_a_flipped_bit_is_reported_and_the_next_good_record_is_found(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    share = 0.2 * rounds_of(request)
    sample, rng = sample_record(tmp_path, KINDS[name]), random.Random(41)
    good = good_records(capsys, sample)
    for content in flips(sample, rng, share):
        sample.put(content)
        dump = opened(capsys, sample, as_json=True)
        check(dump, sample, good)
        (record,) = objects(dump, f"pos {sample.rba}", "n")[1:]
        assert (record["rba"], bool(record["fault"])) == (sample.rba, True)
        (found,) = objects(dump, f"pos {sample.rba}", "sfh")[1:]
        assert (found["rba"], found["fault"]) == (sample.following, "")
        damaged = objects(dump, "count")[0]["damaged"]
        assert [each["rba"] for each in damaged] == [sample.rba]
        refused = objects(dump, f"pos {sample.rba}", f"save {tmp_path}/sv000000000 ! 9 records")[-1]
        assert f"the record at RBA {sample.rba} is damaged: expected " in refused["message"]
        assert not (tmp_path / "sv000000000").exists()
        close(dump)


@pytest.mark.parametrize("name", KINDS)
def test_a_cut_or_a_splice_is_reported_and_never_shown_as_good(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    rounds = rounds_of(request)
    sample, rng = sample_record(tmp_path, KINDS[name]), random.Random(42)
    good = good_records(capsys, sample)
    cut_files = cuts(sample, rng, min(1.0, 0.8 * rounds))
    for content in (*cut_files, *splices(sample, rng, int(60 * rounds))):
        sample.put(content)
        dump = opened(capsys, sample, as_json=True)
        if len(content) > sample.rba:  # A file cut at the end of a record is not damaged.
            check(dump, sample, good)
            assert objects(dump, "count")[0]["damaged"]
        close(dump)


@pytest.mark.parametrize("name", KINDS)
def test_every_damage_report_in_text_names_file_rba_and_what_was_expected(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    rounds = rounds_of(request)
    sample, rng = sample_record(tmp_path, KINDS[name]), random.Random(43)
    file_and_expectation = rf"of {re.escape(str(sample.path))}: expected \S"
    flipped = list(flips(sample, rng, 0.2 * rounds))
    for number, content in enumerate((*flipped, *splices(sample, rng, int(50 * rounds)))):
        sample.put(content)
        dump = opened(capsys, sample, as_json=False)
        text = dump.say(*EVERYTHING, f"pos {sample.rba}", "n", *NAVIGATION)
        assert "internal error" not in text
        place = sample.rba if number < len(flipped) else r"\d+"
        assert re.search(rf"(Bad record found|\*\*\* Damaged record) at RBA {place} {file_and_expectation}", text)
        close(dump)


@pytest.mark.parametrize("name", ["insert, sole", "metadata", "fragment, middle"])
def test_scanning_backwards_finds_the_good_record_before_the_damage(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sample, rng = sample_record(tmp_path, KINDS[name]), random.Random(44)
    places = [rba for rba, _ in cut_records(sample.content)]
    earlier = [rba for rba in places if rba < sample.rba]
    for content in flips(sample, rng, 0.1):
        sample.put(content)
        dump = opened(capsys, sample, as_json=True)
        (found,) = objects(dump, f"pos {sample.following}", "sfh prev")[1:]
        assert found["rba"] == earlier[-1] if earlier else "no undamaged record" in json.dumps(found)
        close(dump)
