"""The offline check: errors within a file, and inconsistencies between files."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from amounts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ggshell.check.cli import check_sources
from ggshell.check.findings import FindingSeverity
from ggshell.check.formats import as_json, as_junit, as_sarif, as_text
from ggshell.check.parameter_files import kind_of
from ggshell.cli.main import main

SETUP = """-- the shop
DBLOGIN USERIDALIAS north
ADD EXTRACT ext1, TRANLOG, BEGIN NOW
ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 50
ADD EXTRACT pmp1, EXTTRAILSOURCE dirdat/ea
ADD RMTTRAIL ./dirdat/ra, EXTRACT pmp1
ADD REPLICAT rep1, EXTTRAIL ./dirdat/ra, CHECKPOINTTABLE ggadmin.checks
START EXTRACT *
START rep1
"""
EXT1 = "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nTABLE shop.*;\n"
PMP1 = "EXTRACT pmp1\nRMTTRAIL ./dirdat/ra\nTABLE shop.*;\n"
REP1 = "REPLICAT rep1\nUSERIDALIAS south\nMAP shop.*, TARGET shop.*;\n"
COMPLETE = {"setup.oby": SETUP, "dirprm/ext1.prm": EXT1, "dirprm/pmp1.prm": PMP1, "dirprm/rep1.prm": REP1}


def positions_of(files: dict[str, str]) -> list[tuple[str, int, int, str]]:
    """(file, line, column, code) of every error and warning."""
    report = check_sources(files.items())
    return [
        (each.place.file, each.place.line, each.place.column, each.code)
        for each in report.findings
        if each.severity is not FindingSeverity.NOTE
    ]


def with_change(file: str, old: str, new: str) -> dict[str, str]:
    assert old in COMPLETE[file]
    return {**COMPLETE, file: COMPLETE[file].replace(old, new)}


def test_a_consistent_set_of_files_has_no_findings() -> None:
    assert positions_of(COMPLETE) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "line", "column", "code"),
    [
        ("setup.oby", "MEGABYTES 50", "MEGABITES 50", 4, 41, "GGS-00101"),
        (
            "setup.oby",
            "EXTRACT pmp1, EXTTRAILSOURCE dirdat/ea",
            "EXTRACT pmp1, EXTTRAILSOURCE dirdat/eb",
            5,
            1,
            "GGS-01203",
        ),
        ("setup.oby", "START rep1", "START rep9", 9, 1, "GGS-01202"),
        ("setup.oby", "rep1, EXTTRAIL ./dirdat/ra", "rep1, EXTTRAIL ./dirdat/rb", 7, 1, "GGS-01203"),
        ("dirprm/ext1.prm", "TABLE shop.*;", "TABEL shop.*;", 4, 1, "GGS-00101"),
        ("dirprm/ext1.prm", "EXTRACT ext1", "EXTRACT ext2", 1, 9, "OGG-02288"),
        ("dirprm/ext1.prm", "TABLE shop.*;", "TABLE shop.*;\nMAP a.*, TARGET b.*;", 5, 1, "GGS-00105"),
        ("dirprm/rep1.prm", "MAP shop.*", "REPORTCOUNT EVERY 0 RECORDS\nMAP shop.*", 3, 19, "GGS-00104"),
        (
            "dirprm/rep1.prm",
            "TARGET shop.*;",
            "TARGET shop.*, COMPARECOLS (ON UPDATE ALL), RESOLVECONFLICT (UPDATEROWEXISTS, (DEFAULT, USEMAX (changed)));",
            3,
            1,
            "GGS-01211",
        ),
        ("dirprm/rep1.prm", "TARGET shop.*;", "TARGET shop.*;\nMAP shop.*, TARGET shop.*;", 4, 1, "GGS-01210"),
    ],
)
def test_each_fault_is_found_at_its_position(file: str, old: str, new: str, line: int, column: int, code: str) -> None:
    assert (file, line, column, code) in positions_of(with_change(file, old, new))


def test_a_target_may_collect_rows_of_several_tables() -> None:
    maps = "".join(f"MAP shop.{name}, TARGET shop.log, {{}};\n" for name in ("a", "b"))
    for option, found in (("EXCEPTIONSONLY", 0), ("INSERTALLRECORDS", 0), ("KEYCOLS (id)", 1)):
        text = f"REPLICAT rep1\nUSERIDALIAS south\n{maps.format(option, option)}"
        codes = [code for *_, code in positions_of({"rep1.prm": text})]
        assert codes.count("GGS-01210") == found, option


def test_a_trail_has_one_writer_and_a_group_is_added_once() -> None:
    codes = [code for *_, code in positions_of({"a.oby": SETUP, "b.oby": "ADD EXTRACT ext1, TRANLOG, BEGIN NOW\n"})]
    assert "GGS-01201" in codes
    twice = SETUP + "ADD EXTRACT ext2, TRANLOG, BEGIN NOW\nADD EXTTRAIL ./dirdat/ea, EXTRACT ext2\n"
    assert ("setup.oby", 11, 1, "GGS-01207") in positions_of({"setup.oby": twice})


def test_trails_of_one_name_in_two_homes_have_a_writer_each() -> None:
    more = "ADD EXTRACT pmp2, EXTTRAILSOURCE dirdat/ea\nADD RMTTRAIL ./dirdat/ra, EXTRACT pmp2\n"
    second = PMP1.replace("pmp1", "pmp2").replace("RMTTRAIL", "RMTHOST {host}, MGRPORT 7809\nRMTTRAIL")
    files = {**COMPLETE, "setup.oby": SETUP + more, "dirprm/pmp2.prm": second.format(host="10.0.0.2")}
    assert positions_of(files) == []
    here = {**files, "dirprm/pmp2.prm": second.format(host="localhost")}
    assert "GGS-01207" in [code for *_, code in positions_of(here)]


def test_parameter_file_and_script_must_name_the_same_trail() -> None:
    files = with_change("dirprm/ext1.prm", "EXTTRAIL ./dirdat/ea", "EXTTRAIL ./dirdat/ex")
    assert ("setup.oby", 4, 1, "GGS-01208") in positions_of(files)
    assert ("dirprm/ext1.prm", 3, 1, "GGS-01208") in positions_of(files)


def test_the_file_of_an_initial_load_is_a_trail_with_a_writer() -> None:
    script = (
        "ADD EXTRACT load1, SOURCEISTABLE\nADD REPLICAT rep1, EXTTRAIL ./dirdat/la, CHECKPOINTTABLE g.c\nSTART rep1\n"
    )
    load = "EXTRACT load1\nUSERIDALIAS north\nEXTFILE ./dirdat/{}, PURGE\nTABLE shop.*;\n"
    files = {"setup.oby": script, "dirprm/rep1.prm": REP1}
    assert positions_of({**files, "dirprm/load1.prm": load.format("la")}) == []
    assert positions_of({**files, "dirprm/load1.prm": load.format("lb")}) == [("setup.oby", 2, 1, "GGS-01203")]


def test_encrypttrail_after_the_trail_is_a_warning() -> None:
    """The trail would silently be written unencrypted."""
    head, tail = "EXTRACT ext1\nUSERIDALIAS north\n", "TABLE shop.*;\n"

    def findings_of(*lines: str) -> list[tuple[int, str]]:
        return [(line, code) for _, line, _, code in positions_of({"ext1.prm": head + "\n".join([*lines, tail])})]

    trail, other = "EXTTRAIL ./dirdat/ea", "EXTTRAIL ./dirdat/eb"
    assert findings_of(trail, "ENCRYPTTRAIL AES256") == [(4, "GGS-00575")]
    assert findings_of("ENCRYPTTRAIL", "NOENCRYPTTRAIL", trail) == [(3, "GGS-00575")]
    assert findings_of("ENCRYPTTRAIL", trail) == findings_of(trail, "ENCRYPTTRAIL", other) == []
    assert findings_of("ENCRYPTTRAIL", "ENCRYPTTRAIL AES192", trail, "NOENCRYPTTRAIL", other) == []


def test_every_group_must_have_a_file_and_every_file_a_group() -> None:
    alone = {name: text for name, text in COMPLETE.items() if name != "dirprm/rep1.prm"}
    assert ("setup.oby", 7, 1, "GGS-01209") in positions_of(alone)
    assert ("x/ext9.prm", 1, 1, "GGS-01209") in positions_of({**COMPLETE, "x/ext9.prm": EXT1.replace("ext1", "ext9")})


def test_a_deleted_group_can_be_added_again() -> None:
    again = (
        SETUP
        + "STOP EXTRACT ext1\nDELETE EXTRACT ext*\nDELETE EXTTRAIL dirdat/ea\n"
        + "\n".join(SETUP.splitlines()[2:4])
    )
    assert [code for *_, code in positions_of({"setup.oby": again})] == []


def test_findings_have_their_own_line_in_a_long_statement() -> None:
    assert positions_of({"x.oby": "ADD EXTTRAIL ./ea, &\n   EXTRACT e1, &\n  MEGABITES 5\nINFO ALL\n"}) == [
        ("x.oby", 3, 3, "GGS-00101")
    ]
    assert positions_of({"r.prm": "REPLICAT r\nMAP a.b, TARGET c.d,\n COLMAP (x = @STRUPP (y));\nWONDER\n"}) == [
        ("r.prm", 3, 14, "GGS-00106"),
        ("r.prm", 4, 1, "GGS-00101"),
    ]


@pytest.mark.parametrize("form", ["START EXTRACT e{n}", "DELETE EXTRACT e{n}", "ADD EXTTRAIL ./d/x{n}, EXTRACT e{n}"])
@pytest.mark.slow
def test_many_groups_take_linear_time(form: str) -> None:
    def seconds(count: int) -> float:
        adds = "".join(f"ADD EXTRACT e{n}, TRANLOG, BEGIN NOW\n" for n in range(count))
        text = adds + "".join(form.format(n=n) + "\n" for n in range(count))
        taken = []
        gc.disable()  # the time of a collection depends on objects of other tests
        for _ in range(2):
            began = time.process_time()
            check_sources([("x.oby", text)])
            taken.append(time.process_time() - began)
        gc.enable()
        return min(taken)

    seconds(100)
    # Eight times as many groups: 8 times the time if linear, 64 times if each group checks all others.
    assert seconds(4000) < 25 * max(seconds(500), 0.01)


def test_an_alias_is_checked_if_the_scripts_add_any() -> None:
    added = "ALTER CREDENTIALSTORE ADD USER u@h:1/d, PASSWORD p, ALIAS north\n"
    places = positions_of({"cred.oby": added, **COMPLETE})
    assert ("dirprm/rep1.prm", 2, 1, "GGS-01204") in places
    assert not any(file == "dirprm/ext1.prm" and code == "GGS-01204" for file, *_, code in places)


def test_an_invalid_statement_does_not_hide_the_next_one() -> None:
    text = "ADD EXTRAKT a\nADD EXTRACT ext1, TRANLOG, BEGIN NOW\nSTRAT ext1\n"
    assert [(line, code) for _, line, _, code in positions_of({"x.oby": text})] == [(1, "GGS-00101"), (3, "GGS-00101")]


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.prm", EXT1, "Extract"),
        ("a.prm", "-- comment\n" + REP1, "Replicat"),
        ("mgr.prm", "PORT 7809\n", "Manager"),
        ("any.prm", "PORT 7809\n", "Manager"),
        ("GLOBALS", "GGSCHEMA ggadmin\n", "GLOBALS"),
        ("setup.oby", SETUP, ""),
        ("pieces.prm", "MAP a.*, TARGET b.*;\n", "Replicat"),
        ("tables.inc", "TABLE a.*;\nGETTRUNCATES\n", "Extract"),
        ("setup.txt", "ADD EXTTRAIL ./ea, &\n EXTRACT e1\nINFO ALL\n", ""),
    ],
)
def test_the_kind_of_a_file_is_recognized_by_its_content(name: str, text: str, kind: str) -> None:
    assert kind_of(text, name) == kind


def test_the_text_underlines_the_position_and_names_the_page() -> None:
    text = as_text(check_sources([("x.oby", "ADD EXTTRAIL ./ea, EXTRACT e, MEGABITES 50\n")]))
    assert text.splitlines()[:3] == [
        "x.oby:1:31: error GGS-00101: unexpected MEGABITES; expected MEGABYTES, SEQNO, FORMAT",
        "    ADD EXTTRAIL ./ea, EXTRACT e, MEGABITES 50",
        "                                  ^",
    ]
    assert "  see: HELP ADD EXTTRAIL" in text
    assert text.endswith("1 statement checked: 1 error, 0 warnings, 0 notes\n")


def test_json_has_an_object_for_every_statement() -> None:
    lines = [
        json.loads(line)
        for line in as_json(check_sources([("x.oby", "INFO ALL\nINFO EVERYTHING PLEASE\n")])).splitlines()
    ]
    assert [(each["line"], each["status"]) for each in lines] == [(1, "ok"), (2, "error")]
    assert set(lines[0]) == {"file", "line", "column", "status", "code", "message", "statement"}


def test_junit_and_sarif_are_well_formed() -> None:
    report = check_sources([("x.oby", "INFO ALL\nINFO <EVERYTHING> & PLEASE &\n"), *COMPLETE.items()])
    root = ET.fromstring(as_junit(report))
    assert [suite.get("failures") for suite in root] == ["1", "0", "0", "0", "0"]
    run = json.loads(as_sarif(report))["runs"][0]
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 2


def test_passwords_are_not_shown() -> None:
    text = "DBLOGIN USERID u, PASSWORD open-sesame WRONG\nUSERID x, PASSWORD 'open-sesame'\n"
    report = check_sources([("x.oby", text)])
    for form in (as_text, as_json, as_junit, as_sarif):
        assert "open-sesame" not in form(report)


@pytest.mark.parametrize(("strict", "code"), [(False, 0), (True, 3)])
def test_strict_turns_warnings_into_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], strict: bool, code: int
) -> None:
    path = tmp_path / "x.oby"
    path.write_text("ADD EXTRACT ext1, TRANLOG, BEGIN NOW\nSTART EXTRACT ext2\n")
    assert main(["check", str(path), *(["--strict"] if strict else [])]) == code
    assert "GGS-01202" in capsys.readouterr().out


@pytest.mark.slow
def test_the_command_line_needs_no_home_and_creates_no_files(tmp_path: Path) -> None:
    (tmp_path / "x.oby").write_text("INFO EVERYTHING PLEASE\n")
    command = [sys.executable, "-m", "ggshell.cli.main", "check", "x.oby", "--format", "json"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 3
    assert json.loads(result.stdout)["status"] == "error"
    assert [path.name for path in tmp_path.iterdir()] == ["x.oby"]


def test_a_missing_or_binary_file_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.oby").write_bytes(b"INFO ALL\n\xff\xfe\n")
    assert main(["check", str(tmp_path / "a.oby")]) == 2
    assert main(["check", str(tmp_path / "b.oby")]) == 2
    said = capsys.readouterr().err
    assert "cannot read" in said
    assert "line 2 is not valid UTF-8" in said


@settings(max_examples=examples(150))
@given(st.text(max_size=80), st.sampled_from(["x.oby", "x.prm", "GLOBALS"]))
@pytest.mark.slow
def test_any_content_of_a_file_is_checked(text: str, name: str) -> None:
    report = check_sources([(name, text)])
    for form in (as_text, as_json, as_junit, as_sarif):
        form(report)


@pytest.mark.slow
def test_ten_thousand_lines_take_about_ten_times_as_long_as_a_thousand() -> None:
    """The limit is generous; the bench measures exactly."""
    block = "".join(f"ADD EXTRACT e{n}, TRANLOG, BEGIN NOW\nINFO EXTRACT e{n}, DETAIL\n" for n in range(500))

    def seconds(text: str) -> float:
        began = time.perf_counter()
        check_sources([("x.oby", text)])
        return time.perf_counter() - began

    seconds(block)
    assert seconds(block * 8) < 40 * max(seconds(block), 0.01)


def test_the_files_that_a_script_obeys_are_checked_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outer, inner = tmp_path / "outer.oby", tmp_path / "more" / "inner.oby"
    inner.parent.mkdir()
    outer.write_text("ADD EXTRACT ext1, TRANLOG, BEGIN NOW\nOBEY more/inner.oby\nSTART EXTRACT pmp1\nOBEY absent.oby\n")
    inner.write_text("ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea\nOBEY ../outer.oby\nINFO EXTRAKT x\n")
    assert main(["check", str(outer)]) == 3
    out = capsys.readouterr().out
    assert f"{inner}:3:6: error GGS-00101" in out
    assert "GGS-01202" not in out
    assert main(["check", str(outer), str(inner)]) == 3
    assert capsys.readouterr().out.count("GGS-00101") == 1
