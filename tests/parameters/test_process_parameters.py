"""Parameter files become typed parameters; all errors are reported at once, each with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.errors import ParameterError, StoreError
from ggshell.parameters.loading import load_extract, load_globals, load_manager, load_replicat, load_service
from ggshell.parameters.process_parameters import ExtractParameters, LoginParameters, TableStatement
from ggshell.parameters.table_patterns import TableFilter
from ggshell.parameters.trail_statements import TrailStatement
from ggshell.record.operation import IoType
from ggshell.types import TableName


def write(folder: Path, text: str) -> Path:
    path = folder / "x.prm"
    path.write_text(text)
    return path


def test_an_extract_file_in_odd_but_legal_form(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "extract ext1\n-- a comment\nuseridalias north\nexttrail ./dirdat/ea -- here\nCACHEMGR CACHESIZE 256MB\n"
        'gettruncates\nTABLE shop.*;\ntable shop."Audit Trail"\n  , keycols (a, "B c");\nTABLEEXCLUDE shop.tmp*\n',
    )
    assert load_extract(path) == ExtractParameters(
        group="EXT1",
        login=LoginParameters(alias="north"),
        tables=(TableStatement("shop.*", line=7), TableStatement('shop."Audit Trail"', ("a", "B c"), line=8)),
        excludes=("shop.tmp*",),
        trails=(TrailStatement("./dirdat/ea"),),
        truncates=True,
        cache_size=256 << 20,
    )


@pytest.mark.parametrize(
    ("lines", "takes"),
    [
        ("{}GETTRUNCATES\n{}IGNORETRUNCATES\n{}", [False, True, False]),
        ("GETTRUNCATES\n{}{}{}IGNORETRUNCATES\n", [True, True, True]),
        ("{}{}{}GETTRUNCATES\n", [False, False, False]),
    ],
)
def test_truncates_are_taken_of_the_statements_below_gettruncates(
    tmp_path: Path, lines: str, takes: list[bool]
) -> None:
    maps = [f"MAP s.t{number}, TARGET s.t{number};\n" for number in range(3)]
    replicat = load_replicat(write(tmp_path, "REPLICAT rep1\n" + lines.format(*maps)))
    tables = [f"TABLE s.t{number};\n" for number in range(3)]
    extract = load_extract(write(tmp_path, "EXTRACT ext1\nEXTTRAIL ./dirdat/ea\n" + lines.format(*tables)))
    for truncates, statements in ((replicat.truncates, replicat.maps), (extract.truncates, extract.tables)):
        assert [truncates and IoType.PURGE_DATA not in each.ignored for each in statements] == takes


def test_a_second_map_that_would_not_be_used_is_refused_with_allowduptargetmap(tmp_path: Path) -> None:
    twice = "MAP s.t, TARGET s.t, FILTER (ON INSERT, id > 1);\nMAP s.t, TARGET s.t, FILTER (ON INSERT, id < 2);\n"
    with pytest.raises(ParameterError, match="ALLOWDUPTARGETMAP is not supported") as caught:
        load_replicat(write(tmp_path, f"REPLICAT rep1\nALLOWDUPTARGETMAP\n{twice}"))
    assert (caught.value.code, caught.value.line) == ("GGS-00103", 4)
    for line in ("", "ALLOWDUPTARGETMAP\nNOALLOWDUPTARGETMAP\n"):
        assert len(load_replicat(write(tmp_path, f"REPLICAT rep1\n{line}{twice}")).maps) == 2
    other = "ALLOWDUPTARGETMAP\nMAP s.t, TARGET s.t;\nMAP s.u, TARGET s.t;\n"
    assert len(load_replicat(write(tmp_path, f"REPLICAT rep1\n{other}")).maps) == 2


def test_trails_with_different_tables_are_refused(tmp_path: Path) -> None:
    """GoldenGate writes the tables of a TABLE line only to the trail above it."""
    text = "EXTRACT ext1\nEXTTRAIL ./dirdat/ea\nTABLE hr.*;\nEXTTRAIL ./dirdat/eb\nTABLE {};\n"
    with pytest.raises(ParameterError, match="every trail receives all tables") as caught:
        load_extract(write(tmp_path, text.format("shop.*")))
    assert (caught.value.code, caught.value.line) == ("GGS-00103", 4)
    assert len(load_extract(write(tmp_path, text.format("hr.*"))).trails) == 2
    together = "EXTRACT ext1\nEXTTRAIL ./dirdat/ea\nEXTTRAIL ./dirdat/eb\nTABLE hr.*;\nTABLE shop.*;\n"
    assert len(load_extract(write(tmp_path, together)).tables) == 2


def test_a_pump_leaves_out_truncates_only_where_ignoretruncates_says_so(tmp_path: Path) -> None:
    found = load_extract(
        write(tmp_path, "EXTRACT pmp1\nEXTTRAIL ./dirdat/ra\nTABLE a.*;\nIGNORETRUNCATES\nTABLE b.*;\n")
    )
    assert [IoType.PURGE_DATA in each.ignored for each in found.tables] == [False, True]


def test_a_replicat_file_becomes_typed_parameters(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "REPLICAT rep1\nTARGETDB x, USERIDALIAS south\nGROUPTRANSOPS 500\n"
        "DISCARDFILE ./dirrpt/r.dsc, PURGE\nMAP shop.*, TARGET &\n  shop2.*;\n",
    )
    found = load_replicat(path)
    assert (found.group_operations, found.discard.append, found.maps[0].target) == (500, False, "shop2.*")
    assert found.login == LoginParameters(alias="south", source="x")


@pytest.mark.parametrize(
    ("line", "seconds"),
    [("", 0), ("DEFERAPPLYINTERVAL 10 HOURS\n", 36_000), ("deferapplyinterval 7 days\n", 604_800)],
)
def test_deferapplyinterval_is_read_in_seconds(tmp_path: Path, line: str, seconds: float) -> None:
    assert load_replicat(write(tmp_path, f"REPLICAT rep1\n{line}MAP a.*, TARGET a.*;\n")).defer_seconds == seconds


@pytest.mark.parametrize("interval", ["8 DAYS", "604801 SEC"])
def test_deferapplyinterval_is_at_most_seven_days(tmp_path: Path, interval: str) -> None:
    with pytest.raises(ParameterError, match="longer than seven days"):
        load_replicat(write(tmp_path, f"REPLICAT rep1\nDEFERAPPLYINTERVAL {interval}\nMAP a.*, TARGET a.*;\n"))


def test_schemaexclude_excludes_the_tables_of_schemas(tmp_path: Path) -> None:
    excludes = "SCHEMAEXCLUDE sys*\nSCHEMAEXCLUDE pdb2.Fin;\n"
    extract = load_extract(
        write(tmp_path, f"EXTRACT ext1\nEXTTRAIL ./dirdat/ea\nTABLEEXCLUDE hr.tmp\n{excludes}TABLE *.*;\n")
    )
    wanted = TableFilter([each.pattern for each in extract.tables], extract.excludes)
    assert wanted(TableName("hr", "people"))
    assert not any(map(wanted, (TableName("hr", "tmp"), TableName("system", "a"), TableName("fin", "a"))))
    replicat = load_replicat(write(tmp_path, f"REPLICAT rep1\nMAPEXCLUDE hr.tmp\n{excludes}MAP *.*, TARGET *.*;\n"))
    assert replicat.excludes == extract.excludes
    with pytest.raises(ParameterError, match=r"unexpected \.c"):
        load_replicat(write(tmp_path, "REPLICAT rep1\nSCHEMAEXCLUDE a.b.c\nMAP *.*, TARGET *.*;\n"))


def test_only_manager_purges_trails_by_rules_and_a_group_purges_its_own(tmp_path: Path) -> None:
    """Regression: a Replicat's file with PURGEOLDEXTRACTS was refused."""
    replicat = "REPLICAT rep1\nTARGETDB x\nPURGEOLDEXTRACTS{}\nMAP shop.*, TARGET shop.*;\n"
    assert load_replicat(write(tmp_path, replicat.format(""))).maps
    with pytest.raises(ParameterError, match="has no options"):
        load_replicat(write(tmp_path, replicat.format(" ./dirdat/*, USECHECKPOINTS")))
    with pytest.raises(ParameterError, match="requires a trail"):
        load_manager(write(tmp_path, "PURGEOLDEXTRACTS\n"))


def test_manager_and_globals_files_become_typed_parameters(tmp_path: Path) -> None:
    manager = load_manager(
        write(tmp_path, "PORT 7810\nAUTOSTART ER *\nAUTORESTART EXTRACT e*, RETRIES 5, WAITSECONDS 1, RESETMINUTES 60\n"
              "PURGEOLDEXTRACTS ./dirdat/*, USECHECKPOINTS, MINKEEPDAYS 2\n")
    )  # fmt: skip
    assert (manager.port, manager.autostart, manager.starts_service) == (7810, (("ER", "*"),), False)
    write(tmp_path, "AUTOSTART SERVICE\n")
    assert load_manager(tmp_path / "x.prm").starts_service
    assert manager.autorestart[0][:4] == ("EXTRACT", "E*", 5, 1)
    assert manager.purge[0].keep_hours == 48
    assert (
        load_globals(write(tmp_path, "GGSCHEMA ggadmin\nCHECKPOINTTABLE ggadmin.c\n")).checkpoint_table == "ggadmin.c"
    )
    assert load_manager(tmp_path / "none.prm").port == 7809


def test_every_error_of_a_file_is_reported_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, "EXTRACT ext1\nUSERIDALIS north\nMAP a.b, TARGET c.d;\nTABLE shop.* KEYCOL (a);\n")
    with pytest.raises(ParameterError) as raised:
        load_extract(path)
    text = str(raised.value)
    assert f"{path}:2:1" in text
    assert "did you mean USERIDALIAS?" in text
    assert "line 3: MAP is not a parameter of" in text
    assert "line 4" in text


def test_a_missing_file_is_reported_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="EDIT PARAMS"):
        load_extract(tmp_path / "none.prm")


def test_a_file_of_a_group_names_this_group(tmp_path: Path) -> None:
    folder = tmp_path / "dirprm"
    folder.mkdir()
    files = {"EXT1.prm": "EXTRACT ext2\nTABLE s.*;\n", "rep1.prm": "REPLICAT rep2\nMAP s.*, TARGET s.*;\n"}
    for name, text in files.items():
        (folder / name).write_text(text)
    for load, name in ((load_extract, "EXT1.prm"), (load_replicat, "rep1.prm")):
        with pytest.raises(ParameterError, match=r"Group name \[...2\] .* PROCESSID \[...1\]") as raised:
            load(folder / name)
        assert (raised.value.code, raised.value.line) == ("OGG-02288", 1)
    assert load_extract(folder / "EXT1.prm", "EXT2").group == "EXT2"
    assert load_replicat(folder / "rep1.prm", "").group == "REP2"  # given to ggshell replicat paramfile
    assert load_extract(write(tmp_path, files["EXT1.prm"])).group == "EXT2"
    (folder / "ext2.prm").write_text(files["EXT1.prm"])
    assert load_extract(folder / "ext2.prm").group == "EXT2"


def test_a_file_that_is_no_text_is_named_with_the_reason(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    path.write_bytes(b"PORT 7810\nADDRESS \xff\n")
    with pytest.raises(StoreError, match="is not UTF-8 text: line 2 has the byte 0xff"):
        load_service(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match=r"x\.prm: Is a directory$"):
        load_service(path)


def test_a_token_for_metrics_has_a_minimum_length(tmp_path: Path) -> None:
    for token, fits in (("x", False), ("secret-15-chars", False), ("secret-16-charss", True)):
        path = write(tmp_path, f"METRICS TOKEN {token}\n")
        if fits:
            assert load_service(path).metrics_token == token
            continue
        with pytest.raises(ParameterError, match="16 to 1024 are allowed") as raised:
            load_service(path)
        assert "secret" not in str(raised.value)


def test_a_remote_trail_before_every_rmthost_belongs_to_the_first_one(tmp_path: Path) -> None:
    """Without a host it would be written here, where nobody reads it."""
    hosts = "RMTTRAIL ./dirdat/ra\nRMTHOST a.example.com, MGRPORT 7809\nRMTTRAIL ./dirdat/rb\nRMTHOST b.example.com, PORT 1\n"
    path = write(tmp_path, f"EXTRACT p1\nEXTTRAIL ./dirdat/ea\n{hosts}RMTTRAIL ./dirdat/rc\nTABLE *.*;\n")
    found = {each.trail[-2:]: each.host.host if each.host else "" for each in load_extract(path).trails}
    assert found == {"ea": "", "ra": "a.example.com", "rb": "a.example.com", "rc": "b.example.com"}
