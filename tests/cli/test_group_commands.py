"""ADD, DELETE and INFO for groups, trails, paths and credentials: what they write and what they refuse."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import duckdb
import pytest
from cli.shell import Shell, log_extract, pump, replicat
from home_content import home_content

from ggshell.cli import supervision
from ggshell.cli.commands.path import source_trail, target_trail
from ggshell.home import checkpoint as checkpoints
from ggshell.home.checkpoint import Checkpoint, GroupKind, GroupOptions, SourceType
from ggshell.home.slot_facts import SlotFacts
from ggshell.types import TrailPosition


def checkpoint_of(shell: Shell, name: str, kind: GroupKind = GroupKind.EXTRACT) -> Checkpoint:
    return checkpoints.load(shell.home.checkpoint(name, kind))


def test_a_pump_with_its_trail(shell: Shell) -> None:
    answer = shell.batch(
        "add extract pmp1, exttrailsource ./dirdat/ea, desc 'to the south'",
        "ADD RMTTRAIL ./dirdat/ra, EXTRACT pmp1, MEGABYTES 50",
    )
    assert answer.out == "EXTRACT added.\nRMTTRAIL added.\n"
    found = checkpoint_of(shell, "PMP1")
    assert (found.read.source, found.read.trail, found.description) == (SourceType.TRAIL, "./dirdat/ea", "to the south")
    (target,) = found.write
    assert (target.trail, target.remote, target.megabytes) == ("./dirdat/ra", True, 50)


def test_a_replicat_takes_the_checkpoint_table_of_globals(shell: Shell) -> None:
    shell.home.ensure()
    refused = shell.batch("ADD REPLICAT rep1, EXTTRAIL ./dirdat/ra")
    assert (refused.code, "Missing checkpoint table specification." in refused.err) == (1, True)
    shell.home.globals.write_text("CHECKPOINTTABLE gg.ckpt\n")
    assert shell.batch("ADD REPLICAT rep1, EXTTRAIL ./dirdat/ra").out == "REPLICAT added.\n"
    assert checkpoint_of(shell, "REP1", GroupKind.REPLICAT).options.checkpoint_table == "gg.ckpt"
    shell.batch("ADD REPLICAT rep2, EXTTRAIL ./dirdat/ra, CHECKPOINTTABLE own.table, EXTSEQNO 3, EXTRBA 77")
    found = checkpoint_of(shell, "REP2", GroupKind.REPLICAT)
    assert found.options.checkpoint_table in ('own."table"', "own.table")
    assert found.read.current == TrailPosition(3, 77)


def test_a_reader_begins_at_the_first_existing_file(shell: Shell) -> None:
    shell.home.ensure()
    (shell.home.root / "dirdat" / "ea000000005").write_bytes(b"")
    shell.batch("ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea")
    assert checkpoint_of(shell, "PMP1").read.current == TrailPosition(5, 0)


def test_a_path_is_created_from_its_urls(shell: Shell) -> None:
    url = "trail://localhost:9002/services/v2/sources?trail=./dirdat/ea"
    assert shell.batch(f"ADD DISTPATH dp1 SOURCE {url} TARGET file://./dirdat/da, MEGABYTES 50").code == 0
    found = checkpoint_of(shell, "DP1", GroupKind.PATH)
    assert (found.read.trail, found.write[0].trail, found.write[0].megabytes) == ("./dirdat/ea", "./dirdat/da", 50)
    assert found.options.source == url
    assert "DISTPATH   DP1" in shell.batch("INFO DISTPATH dp1, DETAIL").out


def test_a_path_with_a_damaged_checkpoint_is_added_again(shell: Shell) -> None:
    """Regression: START suggested ADD, and ADD DISTPATH reported that the path already exists."""
    add = "ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET ./dirdat/da"
    assert shell.batch(add).code == 0
    path = shell.home.checkpoint("DP1", GroupKind.PATH)
    path.write_bytes(path.read_bytes()[:-9])
    path.with_name(path.name + ".previous").unlink(missing_ok=True)
    again = shell.batch(add)
    assert again.code == 0, again.err
    assert "set aside" in again.out
    assert shell.batch("INFO DISTPATH dp1").code == 0


@pytest.mark.parametrize(
    ("url", "trail"),
    [
        ("trail://h:1/services/v2/sources?trail=ea", "./dirdat/ea"),
        ("trail://h:1/x?trail=./other/ea", "./other/ea"),
        ("./dirdat/ea", "./dirdat/ea"),
        ("ea", "./dirdat/ea"),
    ],
)
def test_sources_of_paths(url: str, trail: str) -> None:
    assert source_trail(url) == trail


def test_targets_of_paths() -> None:
    assert target_trail("file://./dirdat/da") == ("./dirdat/da", "")
    assert target_trail("da") == ("./dirdat/da", "")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ADD EXTRACT ext1, EXTTRAILSOURCE ./dirdat/ea", "already exists"),
        ("ADD EXTRACT 1abc, EXTTRAILSOURCE ./dirdat/ea", "is not a valid group name"),
        ("ADD EXTRACT e9", "ADD EXTRACT requires TRANLOG, EXTTRAILSOURCE or SOURCEISTABLE (1:13)"),
        ("ADD EXTRACT e9, TRANLOG, EXTTRAILSOURCE ./dirdat/ea", "TRANLOG: cannot be used with EXTTRAILSOURCE"),
        ("ADD EXTRACT e9, TRANLOG, BEGIN NOW", "use DBLOGIN"),
        ("ADD EXTRACT e9, TRANLOG, BEGIN 2026-13-45 00:00:00", "is not a valid time"),
        ("ADD EXTRACT e9, EXTTRAILSOURCE ./dirdat/toolong", "two characters"),
        ("ADD EXTRACT e9, SOURCEISTABLE, TRANLOG", "TRANLOG: cannot be used with SOURCEISTABLE"),
        ("START REPLICAT rep1, THREADS (1-2)", "THREADS of START REPLICAT is not supported: "),
        ("ADD EXTRACT rep1, EXTTRAILSOURCE ./dirdat/ea", "REPLICAT REP1 already exists"),
        ("ALTER EXTRACT ext1", "requires at least one option"),
        ("ALTER EXTRACT ext1, LSN 0/1", "cannot go back to LSN 0/1"),
        ("ALTER EXTRACT ext1, BEGIN NOW", "use DBLOGIN"),
        ("ALTER EXTRACT pmp1, LSN 0/50056B8", "reads a trail"),
        ("ALTER rep1, LSN 0/50056B8", "reads a trail"),
        ("ALTER EXTTRAIL ./dirdat/zz, EXTRACT ext1, MEGABYTES 5", "does not write EXTTRAIL"),
        ("PURGE EXTTRAIL ./dirdat/zz", "has no files"),
        ("REFRESH MGR", "Manager is not running"),
        ("SEND MANAGER CHILDSTATUS", "Manager is not running"),
        ("ADD EXTTRAIL ./dirdat/ea, EXTRACT nope", "does not exist"),
        ("ADD EXTTRAIL ./dirdat/zz, EXTRACT ext1; ADD RMTTRAIL ./dirdat/zz, EXTRACT pmp1", "written by EXTRACT EXT1"),
        ("ADD DISTPATH d SOURCE ea TARGET ea", "cannot write to the trail that it reads"),
        ("ADD DISTPATH d SOURCE ea TARGET file://dirprm/../dirdat/ea", "cannot write to the trail that it reads"),
        (r"ADD EXTTRAIL .\dirdat\ea, EXTRACT pmp1", "cannot write to the trail that it reads"),
        (r"ADD EXTTRAIL ./dirdat/zz, EXTRACT ext1; ADD RMTTRAIL .\dirdat\zz, EXTRACT pmp1", "written by EXTRACT EXT1"),
        ("ADD DISTPATH d SOURCE ea TARGET s3://h:1/x?trail=y", "not available"),
        ("DELETE EXTTRAIL ./dirdat/qq", "no Extract writes"),
        ("INFO EXTTRAIL *", "no EXTTRAIL"),
        ("INFO REPLICAT ext1", "REPLICAT EXT1 does not exist"),
        ("INFO EXTRACT z*", "no EXTRACT matches Z*"),
        ("STOP EXTRACT ext1", "EXTRACT EXT1 is not running"),
        ("KILL ext1", "is not running"),
        ("STATS ext1", "is not running"),
        ("SEND ext1, GETLAG", "is not running"),
        ("START EXTRACT ext1", "Manager is not running"),
        ("START ER *", "Manager is not running"),
        ("STOP MGR", "Manager is not running"),
        ("DELETE EXTRACT *", "!"),
        ("VIEW REPORT ext1", "START the group"),
        ("VIEW REPORT mgr", "START the group"),
        ("VIEW REPORT ext13", "use VIEW REPORT EXT1"),
        ("VIEW REPORT nope", "group NOPE does not exist"),
        ("VIEW REPORT exr1", "did you mean EXT1"),
        ("VIEW REPORT ./dirrpt/x.rpt", "relative to the home"),
        ("EDIT PARAMS ext1", "requires a terminal"),
        ("DBLOGIN USERIDALIAS nobody", "nobody"),
        ("INFO TRANDATA a.b", "use DBLOGIN"),
        ("ADD CHECKPOINTTABLE", "Missing checkpoint table specification."),
        ("HELP WONDERS", "the manual does not have a page"),
    ],
)
def test_a_refusal_is_one_error_with_a_hint(with_groups: Shell, statement: str, message: str) -> None:
    answer = with_groups.batch(statement)
    assert answer.code in (1, 3)  # 3: known from the statement itself
    assert message in answer.err
    assert answer.err.startswith("ERROR: ")
    assert "Traceback" not in answer.err


def test_deleting_groups(with_groups: Shell) -> None:
    assert with_groups.batch("DELETE EXTRACT ext1").out == "Deleted EXTRACT EXT1.\n"
    assert with_groups.batch("DELETE EXTRACT * !").out == "Deleted EXTRACT PMP1.\n"
    assert with_groups.batch("DELETE REPLICAT rep1").out == "Deleted REPLICAT REP1.\n"
    assert with_groups.home.groups() == []
    assert list((with_groups.home.root / "dirchk").iterdir()) == []


@pytest.mark.parametrize(("database", "place"), [("north", "north"), ("", "its source")])
def test_the_slot_of_a_deleted_extract_is_named_without_a_login_to_its_source(
    shell: Shell, database: str, place: str
) -> None:
    """Regression: a script that was logged in to the target deleted the group and left the slot, which retains log."""
    watch = SlotFacts("ggs_ext1", 0, database=database) if database else None
    shell.save(log_extract("EXT1", options=GroupOptions(slot="ggs_ext1", watch=watch)))
    out = shell.batch("DELETE EXTRACT ext1").out
    assert f"Log in to {place}: if EXT1 is still registered there, its replication slot still retains" in out
    assert "run UNREGISTER EXTRACT EXT1" in out


def test_a_replicat_that_has_run_is_deleted_without_its_row_only_with_force(with_groups: Shell) -> None:
    found = checkpoint_of(with_groups, "REP1", GroupKind.REPLICAT)
    with_groups.save(found._replace(started=1, options=GroupOptions(checkpoint_table="gg.ckpt")))
    refused = with_groups.batch("DELETE REPLICAT rep1")
    assert refused.code == 1
    assert "DELETE REPLICAT REP1 !" in refused.err
    assert with_groups.batch("DELETE REPLICAT rep1 !").code == 0


@pytest.mark.parametrize(
    ("statement", "deleted"), [("DELETE ER *", ["EXT1", "PMP1", "REP2"]), ("DELETE REPLICAT *", ["REP2"])]
)
def test_a_wildcard_delete_reports_each_group_although_one_cannot_be_deleted(
    with_groups: Shell, statement: str, deleted: list[str]
) -> None:
    found = checkpoint_of(with_groups, "REP1", GroupKind.REPLICAT)
    with_groups.save(found._replace(started=1, options=GroupOptions(checkpoint_table="gg.ckpt")))
    with_groups.save(replicat("REP2"))
    before = {entry.group for entry in with_groups.home.groups()}
    out = with_groups.session(f"{statement}\ny\nEXIT\n")
    assert "the row of REPLICAT REP1 in gg.ckpt cannot be removed" in out
    assert re.findall(r"Deleted \w+ (\w+)\.\n", out) == deleted
    assert {entry.group for entry in with_groups.home.groups()} == before - set(deleted)


def test_trails_are_listed_and_deleted(shell: Shell) -> None:
    shell.save(pump("PMP1"))
    shell.batch("ADD RMTTRAIL ./dirdat/ra, EXTRACT pmp1", "ADD RMTTRAIL ./dirdat/rb, EXTRACT pmp1, SEQNO 4")
    (found,) = shell.run("--format", "json", "-c", "INFO RMTTRAIL ./dirdat/rb").objects
    assert found["rows"] == [["./dirdat/rb", "RMTTRAIL", "PMP1", 4, 0, 500, None]]
    assert shell.batch("INFO RMTTRAIL *").out.count("Extract Trail:") == 2
    assert shell.batch("INFO RMTTRAIL ./dirdat/r?").out.count("Extract Trail:") == 2
    deleted = shell.batch(f"DELETE RMTTRAIL {shell.home.root}/dirdat/ra")
    assert deleted.out == "Deleting extract trail ./dirdat/ra for extract PMP1\n"
    assert [target.trail for target in checkpoint_of(shell, "PMP1").write] == ["./dirdat/rb"]


def test_a_damaged_checkpoint_is_reported_and_hides_no_group(with_groups: Shell) -> None:
    path = with_groups.home.checkpoint("EXT1", GroupKind.EXTRACT)
    path.with_name(f"{path.name}.previous").write_bytes(path.read_bytes())
    path.write_bytes(b"GGSCHK 1 00000000\n{}")
    answer = with_groups.batch("INFO ALL")
    assert answer.code == 1
    assert [line.split()[2:4] for line in answer.out.splitlines() if line.startswith("EXTRACT")] == [
        ["EXT1", "Unknown"],
        ["PMP1", "00:00:00"],
    ]
    assert str(path) in answer.err
    assert f"{path.name}.previous" in answer.err
    assert "PMP1" in with_groups.run("--continue-on-error", "-c", "INFO EXTRACT *").out
    answer = with_groups.batch("STATUS ER *")
    assert (answer.code, "PMP1" in answer.out, "REP1" in answer.out, str(path) in answer.err) == (1, True, True, True)


def test_groups_are_selected_by_kind_wildcard_and_name(with_groups: Shell) -> None:
    def names(statement: str) -> list[str]:
        return [row[1] for row in with_groups.run("--format", "json", "-c", statement).objects[0]["rows"]]

    assert names("INFO EXTRACT *") == ["EXT1", "PMP1"]
    assert names("INFO ER *") == ["EXT1", "PMP1", "REP1"]
    assert names("INFO *1") == ["EXT1", "PMP1", "REP1"]
    assert names("info rep1") == ["REP1"]
    assert names("STATUS EXTRACT e*") == ["EXT1"]
    assert names("LAG REPLICAT *") == ["REP1"]


def test_the_slot_of_the_last_run_is_shown(shell: Shell) -> None:
    watch = SlotFacts("ggs_ext1", 1 << 20, growth_per_hour=0)
    shell.save(log_extract("EXT1", options=GroupOptions(slot="ggs_ext1", watch=watch)))
    assert "WAL held back        1.0 MB" in shell.batch("INFO EXTRACT ext1, DETAIL").out


def test_a_slot_that_retains_less_each_hour_does_not_grow(shell: Shell) -> None:
    watch = SlotFacts("ggs_ext1", 1 << 20, growth_per_hour=-5.0)
    shell.save(log_extract("EXT1", options=GroupOptions(slot="ggs_ext1", watch=watch)))
    result = shell.run("--format", "json", "-c", "INFO EXTRACT ext1").objects[0]
    assert result["rows"][0][result["columns"].index("wal_bytes_per_hour")] == 0


def test_credentials(shell: Shell) -> None:
    out = shell.batch(
        "ADD CREDENTIALSTORE",
        "ALTER CREDENTIALSTORE ADD USER ogg@h:1/d PASSWORD secret ALIAS north",
        "ALTER CREDENTIALSTORE ADD USER other PASSWORD secret DOMAIN d2",
        "ALTER CREDENTIALSTORE REPLACE USER ogg@h:2/d PASSWORD secret ALIAS north",
        "INFO CREDENTIALSTORE",
    )
    assert out.code == 0
    assert "Default domain: OracleGoldenGate\n\n  Alias: north\n  Userid: ogg@h:2/d\n" in out.out
    assert "Domain: d2\n\n  Alias: other\n" in out.out
    assert shell.batch("ALTER CREDENTIALSTORE DELETE USER other DOMAIN d2").code == 0
    assert "d2" not in shell.batch("INFO CREDENTIALSTORE").out
    assert shell.batch("ADD CREDENTIALSTORE").code == 1
    assert "a password is required for x" in shell.batch("ALTER CREDENTIALSTORE ADD USER x ALIAS y").err


@pytest.mark.parametrize("style", ["ggsci", "json", "csv"])
def test_a_password_in_a_user_id_is_not_shown(shell: Shell, style: str) -> None:
    """A user ID can be a connection string."""
    shell.batch(
        "ADD CREDENTIALSTORE",
        "ALTER CREDENTIALSTORE ADD USER 'host=h user=u password=hunter2' PASSWORD x ALIAS a1",
        "ALTER CREDENTIALSTORE ADD USER 'postgresql://u:hunter3@h/d' PASSWORD x ALIAS a2",
    )
    out = shell.run("--format", style, "-c", "INFO CREDENTIALSTORE").out
    assert "a1" in out and "a2" in out
    assert "hunter" not in out


def test_reports_parameters_and_events_are_shown(with_groups: Shell) -> None:
    home = with_groups.home
    home.report("EXT1").write_text("the present one\n")
    home.report("EXT1", 0).write_text("the one before\n")
    home.parameters("ext1").write_text("EXTRACT ext1\n")
    home.parameters("mgr").write_text("PORT 7809\n")
    home.globals.write_text("GGSCHEMA gg\n")
    out = with_groups.batch(
        "VIEW REPORT ext1", "VIEW REPORT ext10", "VIEW PARAMS ext1", "VIEW PARAMS mgr", "VIEW PARAMS ./GLOBALS"
    ).out
    assert out == "the present one\nthe one before\nEXTRACT ext1\nPORT 7809\nGGSCHEMA gg\n"
    assert with_groups.batch("VIEW GGSEVT").out == ""
    with_groups.batch("DELETE EXTRACT pmp1")
    assert "OGG-00987" in with_groups.batch("VIEW GGSEVT").out


def test_discard_files_are_shown_with_the_older_ones(with_groups: Shell) -> None:
    home = with_groups.home
    answer = with_groups.batch("VIEW DISCARD rep1")
    assert answer.code == 1
    assert f"discard file {home.discard('REP1')} does not exist" in answer.err
    assert "when the target rejects the first operation" in answer.err
    home.discard("REP1").write_text("rejected\n")
    home.discard("REP1").with_name("REP10.dsc").write_text("rejected before\n")
    assert with_groups.batch("VIEW DISCARD rep1", "view discard rep10").out == "rejected\nrejected before\n"
    assert "DISCARDROLLOVER has not created" in with_groups.batch("VIEW DISCARD rep11").err
    assert "group NOPE does not exist" in with_groups.batch("VIEW DISCARD nope").err


def test_the_discard_file_is_the_one_that_the_parameter_file_names(with_groups: Shell) -> None:
    home = with_groups.home
    home.discard("REP1").write_text("the default file\n")
    (home.root / "dirout").mkdir()
    (home.root / "dirout" / "rejected.txt").write_text("rejected\n")
    (home.root / "dirout" / "rejected3.txt").write_text("rejected before\n")
    text = "REPLICAT rep1\nNONSENSE\nDISCARDFILE ./dirout/rejected.txt, PURGE\nMAP a.*, TARGET a.*;\n"
    home.parameters("rep1").write_text(text)
    assert with_groups.batch("VIEW DISCARD rep1", "VIEW DISCARD rep13").out == "rejected\nrejected before\n"


def test_globals_is_shown_without_its_passwords(with_groups: Shell) -> None:
    assert "No such file" in with_groups.batch("VIEW GLOBALS").err
    with_groups.home.globals.write_text("GGSCHEMA gg\n")
    assert with_groups.batch("VIEW GLOBALS").out == "GGSCHEMA gg\n"
    assert "requires a terminal" in with_groups.batch("EDIT GLOBALS").err


def test_the_tables_of_a_duckdb_file_are_listed(shell: Shell, tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "some.duckdb")) as connection:
        connection.execute("CREATE SCHEMA shop; CREATE TABLE shop.orders (id int); CREATE TABLE people (id int)")
    answer = shell.batch(f"DBLOGIN SOURCEDB duckdb://{tmp_path}/some.duckdb", "LIST TABLES shop.*")
    assert answer.out.endswith("\nshop.orders\n\nFound 1 tables matching list criteria.\n")


def test_create_subdirs_lists_the_eleven_folders(shell: Shell) -> None:
    out = shell.batch("CREATE SUBDIRS").out
    root = shell.home.root
    assert f"Creating subdirectories under current directory {root}" in out
    assert f"Parameter files                {root}/dirprm: " in out
    assert len([line for line in out.splitlines() if f"{root}/dir" in line and line.endswith(": created")]) == 11
    again = shell.batch("CREATE SUBDIRS").out
    assert again.count(": already exists") == 11
    assert shell.home.event_log.read_text().count("CREATE SUBDIRS") == 2


def test_help_show_and_versions(shell: Shell) -> None:
    out = shell.batch("HELP", "HELP ADD EXTRACT", "HELP STATS", "SHOW", "VERSIONS").out
    assert "\nADD EXTRACT\nAdds " in out
    assert "\nSTATS REPLICAT\nShows " in out
    assert "Parameter settings:" in out
    assert f"Reports (.rpt)                 {shell.home.root}/dirrpt" in out


def test_a_home_that_cannot_be_written_is_a_clear_error(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the home should be")
    answer = shell.batch("ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea")
    assert answer.code == 1
    assert "cannot create the home directory" in answer.err


def test_nothing_is_left_of_a_group_that_the_home_cannot_note(shell: Shell) -> None:
    """Regression: the statement failed, and the group was there."""
    shell.batch("ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea")
    before = home_content(shell.home.root)
    notes = shell.home.known("PMP1", GroupKind.EXTRACT).parent
    notes.rename(notes.with_name("aside"))
    notes.symlink_to("missing")
    for statement in (
        "ADD EXTRACT pmp2, EXTTRAILSOURCE ./dirdat/ea",
        "ADD REPLICAT rep1, EXTTRAIL ./dirdat/ra, NODBCHECKPOINT",
        "ADD DISTPATH dp1, SOURCE ./dirdat/ea, TARGET ./dirdat/da",
    ):
        refused = shell.batch(statement)
        assert (refused.code, f"cannot write {notes}" in refused.err) == (1, True), refused
    notes.unlink()
    notes.with_name("aside").rename(notes)
    assert home_content(shell.home.root) == before


def test_a_home_without_notes_gets_those_of_all_groups(shell: Shell) -> None:
    shell.batch("ADD EXTRACT pmp1, EXTTRAILSOURCE ./dirdat/ea", "ADD EXTRACT pmp2, EXTTRAILSOURCE ./dirdat/ea")
    notes = shell.home.known("PMP1", GroupKind.EXTRACT).parent
    shutil.rmtree(notes)
    shell.batch("ALTER EXTRACT pmp1, DESC 'to the south'")
    assert sorted(path.name for path in notes.iterdir()) == ["PMP1.cpe", "PMP2.cpe"]


def test_info_without_a_name_shows_all_groups_of_the_kind(with_groups: Shell) -> None:
    assert with_groups.batch("INFO EXTRACT").out == with_groups.batch("INFO EXTRACT *").out
    assert "REP1" in with_groups.batch("INFO REPLICAT, DETAIL").out


@pytest.fixture
def with_missing_checkpoint(shell: Shell) -> Shell:
    """A home with two Replicats; the checkpoint file of REP1 is missing."""
    for group in ("rep1", "rep2"):
        assert shell.batch(f"ADD REPLICAT {group}, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE a.checks").code == 0
    shell.home.checkpoint("REP1", GroupKind.REPLICAT).unlink()
    return shell


@pytest.mark.slow
def test_a_group_with_a_missing_checkpoint_file_is_shown_as_abended_with_the_reason(
    with_missing_checkpoint: Shell,
) -> None:
    """Regression: the group disappeared, START * skipped it, and the target fell behind."""
    found = with_missing_checkpoint.run("--format", "json", "-c", "INFO ALL")
    rows = {row[2]: row[1] for row in found.objects[0]["rows"]}
    assert (rows["REP1"], rows["REP2"]) == ("ABENDED", "STOPPED")
    assert "ABENDED" in with_missing_checkpoint.batch("INFO ALL").out
    for statement in ("INFO ALL", "INFO REPLICAT rep1", "START REPLICAT rep1", "START REPLICAT *"):
        answer = (
            with_missing_checkpoint.batch("START MANAGER", statement)
            if "START" in statement
            else with_missing_checkpoint.batch(statement)
        )
        output = answer.out + answer.err
        assert "REP1.cpr does not exist, but its group was not deleted" in output, statement
        assert "ADD REPLICAT again, which continues from its checkpoint table row" in output, statement
    with_missing_checkpoint.batch("STOP MANAGER !")


def test_a_group_with_a_missing_checkpoint_file_can_be_added_again_and_deleted(with_missing_checkpoint: Shell) -> None:
    deleted = with_missing_checkpoint.batch(
        "ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea, CHECKPOINTTABLE a.checks", "DELETE REPLICAT rep1", "INFO ALL"
    )
    assert deleted.code == 0
    assert "REP1" not in deleted.out.partition("Deleted REPLICAT REP1.")[2]
    assert with_missing_checkpoint.home.group_names() == [("REP2", GroupKind.REPLICAT)]


def test_a_similar_group_name_is_suggested(with_groups: Shell) -> None:
    assert "did you mean EXT1?" in with_groups.batch("INFO EXTRACT ext11").err
    assert "did you mean REP1?" in with_groups.batch("STOP rpe1").err


def test_tasks_are_shown_by_name_with_tasks_and_with_allprocesses(with_groups: Shell) -> None:
    with_groups.batch("ADD EXTRACT load1, SOURCEISTABLE")

    def shown(text: str) -> set[str]:
        return set(re.findall(r"\b(EXT1|PMP1|LOAD1)\b", with_groups.batch(text).out))

    for command in ("STATUS EXTRACT", "INFO EXTRACT"):
        assert shown(f"{command} *") == {"EXT1", "PMP1"}
        assert shown(f"{command} *, TASKS") == {"LOAD1"}
        assert shown(f"{command} *, ALLPROCESSES") == {"EXT1", "PMP1", "LOAD1"}
        assert shown(f"{command} load?") == set()
        assert shown(f"{command} load1") == {"LOAD1"}


def test_an_extract_can_be_deleted_while_logged_in_to_a_duckdb_file(with_groups: Shell, tmp_path: Path) -> None:
    """This login cannot access the slot. Regression: the statement failed after the group had been deleted."""
    found = checkpoint_of(with_groups, "EXT1", GroupKind.EXTRACT)
    with_groups.save(found._replace(options=found.options._replace(slot="ggs_ext1")))
    duckdb.connect(str(tmp_path / "some.duckdb")).close()
    answer = with_groups.batch(f"DBLOGIN SOURCEDB duckdb://{tmp_path}/some.duckdb", "VERSIONS", "DELETE EXTRACT ext1")
    assert answer.code == 0, answer.err
    assert "Database:   DuckDB" in answer.out
    assert "Deleted EXTRACT EXT1." in answer.out


def test_options_that_skip_transactions_are_refused_for_an_extract(
    with_groups: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: it was an internal error, or a message about the name of a trail."""
    monkeypatch.setattr(supervision, "require_manager", lambda session: None)
    with_groups.home.parameters("ext1").write_text("EXTRACT ext1\n")
    assert (
        "SKIPTRANSACTION is for a Replicat; EXTRACT EXT1 captures"
        in with_groups.batch("START ext1, SKIPTRANSACTION").err
    )
    for statement in ("START ext1, DRYRUN", "START ext1, ATCSN 0/50056B8, DRYRUN"):
        assert "EXTRACT EXT1 does not read a trail" in with_groups.batch(statement).err
