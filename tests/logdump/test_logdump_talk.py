"""Statements: several in a line, repeated and edited, logs, notices, times, bytes, internal errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from batches import Row, Tx, make_batch, read_rows
from hypothesis import given
from hypothesis import strategies as st
from logdump.dumps import Dump, small_trail
from trail.damage_kit import KINDS, sample_record
from trail_kit import PRODUCER, A

from ggshell.cli.main import main
from ggshell.clock import FakeClock
from ggshell.errors import NotFoundError
from ggshell.home.home import Home
from ggshell.home.wallet import Wallet
from ggshell.logdump import cli
from ggshell.logdump.registry import ACTIONS
from ggshell.logdump.session import divided, earlier
from ggshell.record.image import encode_image
from ggshell.record.operation import IoType
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.trail.sealing import Protection
from ggshell.trail.writer import TrailWriter, WriterOptions


@pytest.fixture
def trail(tmp_path: Path) -> TrailName:
    return small_trail(tmp_path)


@pytest.fixture
def dump(trail: TrailName, capsys: pytest.CaptureFixture[str]) -> Iterator[Dump]:
    found = Dump(capsys)
    found.say(f"open {trail.file(0)}", "timeoffset gmt")
    yield found
    found.talk.session.stop_log()
    found.talk.session.close()


@pytest.mark.parametrize(
    ("line", "statements"),
    [
        ("pos 0; n 3 ;; count", ["pos 0", "n 3", "count"]),
        ("filter string 'a;b'; n", ["filter string 'a;b'", "n"]),
        ("filter inc rectype 5; filename hr.*; n", ["filter inc rectype 5; filename hr.*", "n"]),
        ("filter rectype 5; match all", ["filter rectype 5; match all"]),
        ("filter string /a;b/; env", ["filter string /a;b/", "env"]),
        ("x echo a; echo b", ["x echo a; echo b"]),
        ("writelog a; b", ["writelog a; b"]),
        ("filter show; rectype", ["filter show", "rectype"]),
        (" ; ", []),
    ],
)
def test_semicolons_separate_statements(line: str, statements: list[str]) -> None:
    assert divided(line) == statements


@given(st.text(max_size=60))
def test_any_line_can_be_split_into_statements(line: str) -> None:
    assert all(part == part.strip() and part for part in divided(line))


def test_earlier_statements_are_found_by_number_distance_and_prefix() -> None:
    history = ["open a", "n 3", "count"]
    assert [earlier(history, each) for each in ("", "1", "-2", "OPEN")] == ["count", "open a", "n 3", "open a"]
    for missing in ("0", "4", "-4", "sft"):
        with pytest.raises(NotFoundError, match="the history has no"):
            earlier(history, missing)


def test_fc_shows_a_statement_and_takes_edits(trail: TrailName, capsys: pytest.CaptureFixture[str]) -> None:
    typed = iter(["n 1", "fc", "  3", "", "fc n 1", "//", "! -1", "exit"])
    asked: list[str] = []

    def read(prompt: str) -> str | None:
        asked.append(prompt)
        return next(typed, None)

    assert cli.main([str(trail.file(0))], read=read) == 0
    out = capsys.readouterr().out
    assert "> n 1\n> n 3\n" in out
    assert out.count("Len ") == 1 + 3 + 3
    assert asked == ["Logdump 1 >", "Logdump 2 >", "..", "..", "Logdump 3 >", "..", "Logdump 4 >", "Logdump 5 >"]


def test_an_obey_file_in_a_session_echoes_its_statements(
    trail: TrailName, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.oby").write_text("pos first\nexit\ncount\n")
    typed = iter([f"obey {tmp_path / 'a.oby'}", "n"])
    assert cli.main([str(trail.file(0))], read=lambda _: next(typed, None)) == 0
    out = capsys.readouterr().out
    assert "Logdump 2 >pos first\nReading forward" in out
    assert "Logdump 3 >exit" in out
    assert "count" not in out
    assert next(typed) == "n"


def test_a_log_contains_the_output_and_the_text_of_writelog(dump: Dump, tmp_path: Path) -> None:
    assert "no log is kept" in dump.say("writelog here")
    assert dump.say("log") == "LOG is Off\n"
    dump.say(f"log to {tmp_path / 'seen'}", "dump 8", "writelog here it is", "log stop", "dump 4")
    assert "4600 " in (text := (tmp_path / "seen").read_text())
    assert text.endswith("here it is\n")
    assert "ERROR: cannot write" in dump.say(f"out to {tmp_path}")
    assert dump.say("out") == "LOG is Off\n"


def test_dump_shows_bytes_at_any_position_and_does_not_move_it(dump: Dump, trail: TrailName) -> None:
    content = trail.file(0).read_bytes()
    text = dump.say("pos 17", "dump 21", "dump 21")
    assert text.count("21 bytes from RBA 17") == 2
    assert content[17:37].hex(" ", -2) in text
    assert "28672" in dump.say("dump 28673")


def test_notify_reports_progress_while_records_are_counted(dump: Dump) -> None:
    text = dump.say("notify 4", "count")
    assert text.count("Scanned ") == 3
    assert text.index("Scanned 12 records") < text.index("LogTrail")
    assert dump.say("notify", "scanscrolling") == "NOTIFY is 4 records\nSCANSCROLLING is Off\n"


@pytest.mark.parametrize(
    ("statement", "answer"),
    [
        ("ctime 0", "1970/01/01 00:00:00.000.000 GMT"),
        ("interprettimestamp 210866760000000000", "1970/01/01 00:00:00.000.000 GMT"),
        ("computetimestamp 70-01-01", "70-01-01 is JulianTimestamp 210866760000000000"),
        ("computetimestamp 2011/01/30 17:38:43.500.001", "212163169123500001"),
        ("interpretinterval 90061001002", "Interval 90061001002 is 1-01:01:01.001.002"),
        ("interprettimestamp 9999999999999999999", "is outside the years 1 to 9999"),
        ("timeoffset gmt +15:59; env", "GMT +1559"),
        ("timeoffset gmt -3; env", "GMT -0300"),
        ("timeoffset gmt +09:99", "+09:99 is not a valid offset from GMT"),
        ("timeoffset gmt -16:00", "-16:00 is not a valid offset from GMT"),
        ("begin 2023-02-30", "2023-02-30 is not a valid time"),
        ("float 1.5 format %s", "%s is not a valid number format"),
        ("float 1.5 format %.2e", "1.50e+00"),
        ("x exit 3", "the command exited with code 3"),
        ("x printf 'a\\377b'", "a\ufffdb"),
        ("open .", "it is not a file"),
        ("sfmd tdr 9", "no such metadata record"),
        ("metadata ddlformat on", "this definition language exists on NonStop only"),
        ("save x oldformat", "expected"),
        ("trailformat old", "is not supported"),
    ],
)
@pytest.mark.slow
def test_statements_print_their_result_or_an_error_message(dump: Dump, statement: str, answer: str) -> None:
    assert answer in dump.say(statement)


def test_metadata_sqlformat_shows_a_definition_as_a_statement(dump: Dump) -> None:
    text = dump.say("metadata sqlformat on", "sfmd tdr 1")
    assert 'CREATE TABLE "hr"."a" (\n    "id" integer,\n    "t" text,\n    PRIMARY KEY ("id")\n);\n' in text


def test_metadata_on_shows_the_records_without_the_columns_of_detail(dump: Dump) -> None:
    shown = [
        dump.say(statement, "metadata") for statement in ("metadata detail", "metadata on", "metadata detail data")
    ]
    assert shown == ["METADATA is Detail\n", "METADATA is On\n", "METADATA is Detail\n"]


def test_a_transaction_filter_matches_from_any_position_within_the_transaction(dump: Dump) -> None:
    text = dump.say("sft delete", "filter transid 702", "pos last rev", "n 3")
    assert text.count(" Len ") == 4
    assert [line.split()[2] for line in text.splitlines() if " Len " in line] == [
        "Delete",
        "Delete",
        "Insert",
        "FieldComp",
    ]


@pytest.mark.parametrize(("count", "kinds"), [(1, [5]), (2, [5, 3]), (5, [5, 3, 115, 100, 5])])
def test_saving_part_of_a_transaction_completes_it(dump: Dump, tmp_path: Path, count: int, kinds: list[int]) -> None:
    dump.say("pos first", "sft fieldcomp", "filter exclude rectype metadata")
    text = dump.say(f"save {tmp_path}/sv000000000 {count} records")
    assert "cut at an edge" in text
    reader = TrailReader(TrailName(tmp_path, "sv"))
    rows = []
    while (batch := reader.read()) is not None:
        rows += read_rows(batch)
    reader.close()
    assert [row[2] for row in rows] == kinds
    assert "is the open file" in dump.say(f"save {dump.talk.session.file.path} ! 1 records")


def test_a_value_in_fragments_is_saved_whole(dump: Dump, tmp_path: Path) -> None:
    text = dump.say(
        "pos first",
        "filter rectype insert; reclen > 1000",
        "filter match all",
        f"save {tmp_path}/lv000000000 1 records",
    )
    assert "2 records" in text
    reader = TrailReader(TrailName(tmp_path, "lv"))
    batch = reader.read()
    assert batch is not None
    assert len(read_rows(batch)) == 1
    reader.close()


def test_user_tokens_are_shown_by_name_with_lengths_or_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = sample_record(tmp_path, KINDS["user tokens"])
    dump = Dump(capsys)
    dump.say(f"open {sample.path}", "usertoken on")
    text = dump.say("filter usertoken TK-HOST=north", "n")
    assert (
        f"User tokens: {15 + 11 + 10:>4} bytes\nTK-HOST             : 5 bytes\nTK-EMPTY            : 0 bytes\n" in text
    )
    text = dump.say("pos first", "usertoken detail", "n")
    assert "TK-HOST             : north\nTK-EMPTY            : \nTK-\u00dc                : \0\\xff\n" in text
    assert "TK-HOST" not in dump.say("pos first", "filter clear", "filter usertoken TK-HOST=south", "n")
    dump.talk.session.close()
    dump = Dump(capsys, as_json=True)
    record = json.loads(dump.say(f"open {sample.path}", f"pos {sample.rba}", "n").splitlines()[-1])
    assert record["user_tokens"]["TK-HOST"] == "north"
    dump.talk.session.close()


def test_an_internal_error_is_shown_in_short_and_written_to_a_crash_file(
    dump: Dump, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(session: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(ACTIONS.load_all(), "ENV", (broken, ()))
    text = dump.say("env", "time")
    assert "internal error: ZeroDivisionError: a bug" in text
    assert "GMT" in text
    assert "in broken" in next(tmp_path.glob("ggshell-crash-*.txt")).read_text()


def test_results_of_statements_can_be_printed_as_json(trail: TrailName, capsys: pytest.CaptureFixture[str]) -> None:
    dump = Dump(capsys, as_json=True)
    lines = dump.say(
        f"open {trail.file(0)}",
        "filter inc hex 'aabb' 0:3",
        "filter show",
        "filter clear",
        "dump 4",
        "transhist 3; transreclimit 2; count",
        "transhist",
        "show rectype",
        "n zero",
    ).splitlines()
    objects = [json.loads(line) for line in lines]
    assert objects[1]["include"] == {"match": "ANY", "filters": [{"filter": "HEX", "value": "AABB"}]}
    assert objects[2] == {"rba": 0, "length": 4, "data": trail.file(0).read_bytes()[:4].hex()}
    assert objects[4]["xid"] == "702"
    assert objects[5] == {"number": 1, "name": "Abort"}
    assert (objects[-1]["status"], objects[-1]["statement"]) == ("error", "n zero")
    dump.talk.session.close()


def test_encrypted_rows_are_decrypted_with_the_wallet_of_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home, folder = Home(tmp_path / "home"), tmp_path / "trail"
    wallet = Wallet(home)
    home.root.mkdir()
    wallet.create()
    wallet.add(FakeClock())
    options = WriterOptions(protection=Protection("AES256", wallet.name, 1), keys=wallet.keys)
    name = TrailName(folder, "ea")
    writer = TrailWriter.open(name, clock=FakeClock(), producer=PRODUCER, max_bytes=1 << 30, options=options)
    writer.write(make_batch([Tx(1, [Row(A, IoType.INSERT, encode_image([(0, b"1"), (1, b"a secret")]))])]))
    writer.flush()
    writer.close()
    monkeypatch.setenv("GGSHELL_HOME", str(home.root))
    dump = Dump(capsys)
    dump.say(f"open {name.file(0)}", "detail data")
    assert "a secret" not in dump.say("pos first", "n 3")
    assert "a secret" in dump.say("decrypt on", "pos first", "n 3")
    assert "a secret" not in dump.say("decrypt off", "pos first", "n 3")
    assert "saved to" in dump.say("pos first", f"save {folder}/sv000000000 3 records")
    text = dump.say("decrypt on", f"open {folder}/sv000000000", "n 4")
    assert "a secret" in text
    monkeypatch.setenv("GGSHELL_HOME", str(tmp_path))
    assert "the wallet does not exist" in dump.say("decrypt on")
    monkeypatch.delenv("GGSHELL_HOME")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "ggshell").mkdir()
    (tmp_path / "ggshell" / "config.toml").write_text(f'home = "{home.root}"')
    assert main(["logdump", "-c", "decrypt on\ndetail data\nn 3", str(name.file(0))]) == 0
    assert "a secret" in capsys.readouterr().out
    content = bytearray(name.file(0).read_bytes())
    content[60] ^= 1
    name.file(0).write_bytes(content)
    assert "is damaged at RBA 0: expected a file header" in dump.say(f"open {name.file(0)}")
    dump.talk.session.close()
