"""Logdump on every damaged record: it says where and what, shows nothing damaged as good, and finds the next good record."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from logdump.dumps import Dump
from trail.damage_kit import KINDS, Exhibit, cuts, exhibit, flips, rounds_of, splices
from trail.trail_kit import cut_records

EVERYTHING = (
    "ghdr on",
    "detail data",
    "ggstoken detail",
    "usertoken detail",
    "headertoken detail",
    "fileheader detail",
)
WALKS = (
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


def walked(dump: Dump) -> Iterator[dict[str, Any]]:
    """Every record from the first place on, over all damage, as a person goes: NEXT, and SCANFORHEADER where none stands."""
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


def opened(capsys: pytest.CaptureFixture[str], shown: Exhibit, *, as_json: bool) -> Dump:
    dump = Dump(capsys, as_json=as_json)
    assert str(shown.path) in dump.say(f"open {shown.path}", "timeoffset gmt")
    return dump


def close(dump: Dump) -> None:
    dump.talk.session.close()


def good_records(capsys: pytest.CaptureFixture[str], shown: Exhibit) -> dict[int, dict[str, Any]]:
    dump = opened(capsys, shown, as_json=True)
    found = {each["rba"]: each for each in walked(dump)}
    close(dump)
    assert list(found) == [0, *(rba for rba, _ in cut_records(shown.content))]
    assert {each["fault"] for each in found.values()} == {""}
    return found


def check(dump: Dump, shown: Exhibit, good: dict[int, dict[str, Any]]) -> None:
    """Nothing damaged passes for good, the damage is told, and all that is good is found."""
    seen = list(walked(dump))
    for each in seen:
        if not each["fault"]:
            # A definition may be what is damaged: then names and columns of its rows are not known, and nothing else differs.
            wanted = good[each["rba"]]
            known = {name for name in wanted if name not in ("table", "columns", "before")}
            assert {name: each[name] for name in known} == {name: wanted[name] for name in known}
            assert each.get("table") in (wanted.get("table"), "")
            for side in ("columns", "before"):
                names = [*each.get(side, {})]
                assert names == [*wanted.get(side, {})] or all(name.isdigit() for name in names)
                assert [*each.get(side, {}).values()] == [*wanted.get(side, {}).values()]
    assert {each["file"] for each in seen} == {str(shown.path)}
    assert any(each["fault"] for each in seen)


@pytest.mark.parametrize("name", KINDS)
def test_a_turned_bit_is_told_and_the_next_good_record_found(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    share = 0.2 * rounds_of(request)
    shown, chance = exhibit(tmp_path, KINDS[name]), random.Random(41)
    good = good_records(capsys, shown)
    for content in flips(shown, chance, share):
        shown.put(content)
        dump = opened(capsys, shown, as_json=True)
        check(dump, shown, good)
        (record,) = objects(dump, f"pos {shown.rba}", "n")[1:]
        assert (record["rba"], bool(record["fault"])) == (shown.rba, True)
        (found,) = objects(dump, f"pos {shown.rba}", "sfh")[1:]
        assert (found["rba"], found["fault"]) == (shown.following, "")
        damaged = objects(dump, "count")[0]["damaged"]
        assert [each["rba"] for each in damaged] == [shown.rba]
        refused = objects(dump, f"pos {shown.rba}", f"save {tmp_path}/sv000000000 ! 9 records")[-1]
        assert f"the record at RBA {shown.rba} is damaged: expected " in refused["message"]
        assert not (tmp_path / "sv000000000").exists()
        close(dump)


@pytest.mark.parametrize("name", KINDS)
def test_an_end_or_a_splice_is_told_and_never_shown_as_good(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    rounds = rounds_of(request)
    shown, chance = exhibit(tmp_path, KINDS[name]), random.Random(42)
    good = good_records(capsys, shown)
    cut = cuts(shown, chance, min(1.0, 0.8 * rounds))
    for content in (*cut, *splices(shown, chance, int(60 * rounds))):
        shown.put(content)
        dump = opened(capsys, shown, as_json=True)
        if len(content) > shown.rba:  # a file that ends where a record ends is no shorter than it should be
            check(dump, shown, good)
            assert objects(dump, "count")[0]["damaged"]
        close(dump)


@pytest.mark.parametrize("name", KINDS)
def test_in_text_every_damage_has_its_file_place_and_what_was_expected(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown, chance = exhibit(tmp_path, KINDS[name]), random.Random(43)
    somewhere = rf"of {re.escape(str(shown.path))}: expected \S"
    turned = list(flips(shown, chance, 0.02))
    for number, content in enumerate((*turned, *splices(shown, chance, 5))):
        shown.put(content)
        dump = opened(capsys, shown, as_json=False)
        text = dump.say(*EVERYTHING, f"pos {shown.rba}", "n", *WALKS)
        assert "internal error" not in text
        place = shown.rba if number < len(turned) else r"\d+"
        assert re.search(rf"(Bad record found|\*\*\* Damaged record) at RBA {place} {somewhere}", text)
        close(dump)


@pytest.mark.parametrize("name", ["insert, sole", "metadata", "fragment, middle"])
def test_backwards_the_good_record_before_the_damage_is_found(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown, chance = exhibit(tmp_path, KINDS[name]), random.Random(44)
    places = [rba for rba, _ in cut_records(shown.content)]
    earlier = [rba for rba in places if rba < shown.rba]
    for content in flips(shown, chance, 0.1):
        shown.put(content)
        dump = opened(capsys, shown, as_json=True)
        (found,) = objects(dump, f"pos {shown.following}", "sfh prev")[1:]
        assert found["rba"] == earlier[-1] if earlier else "no undamaged record" in json.dumps(found)
        close(dump)
