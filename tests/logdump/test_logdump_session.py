"""Navigating a trail, scanning, filtering, counting and saving records."""

from __future__ import annotations

import contextlib
import json
import random
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from batches import Row, Tx, ddl_row, ddl_statement, make_batch, read_rows
from logdump.dumps import Dump, small_trail
from trail_kit import A, B, write_trail

from ggshell.language import grammar, pages
from ggshell.language.notation import compile_line
from ggshell.language.unsupported import gaps_of
from ggshell.logdump import counting
from ggshell.logdump.registry import ACTIONS
from ggshell.record.image import encode_image
from ggshell.record.operation import IoType
from ggshell.trail.durable import DurableMark, MarkWriter
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader
from ggshell.types import TrailPosition

ELSEWHERE = {"OBEY", "O", "FC"}
"""Statements that the session loop runs itself."""
LINES = [
    (compile_line(text, stem), path)
    for stem, path in pages.index(grammar.LOGDUMP).items()
    for text in pages.read(path).syntax
]


@pytest.fixture
def trail(tmp_path: Path) -> TrailName:
    return small_trail(tmp_path)


@pytest.fixture
def dump(trail: TrailName, capsys: pytest.CaptureFixture[str]) -> Iterator[Dump]:
    found = Dump(capsys)
    found.say(f"open {trail.file(0)}")
    yield found
    found.talk.session.close()


def rbas(text: str) -> list[int]:
    return [int(each) for each in re.findall(r"Len +\d+ RBA (\d+)", text)]


def kinds(text: str) -> list[str]:
    return re.findall(r"^\S+ \S+ (\w+) +Len", text, re.MULTILINE)


def test_every_syntax_line_of_the_manual_is_implemented_or_has_a_reason() -> None:
    actions = ACTIONS.load_all()
    for line, path in LINES:
        gaps = gaps_of(path)
        if not gaps.status and line.key not in ELSEWHERE | dict(gaps.missing).keys():
            assert line.key in actions, line.text
    assert set(actions) <= {line.key for line, _ in LINES}


@pytest.mark.parametrize("path", pages.index(grammar.LOGDUMP).values(), ids=lambda path: path.stem)
def test_every_example_of_the_manual_runs_without_an_internal_error(
    path: Path, dump: Dump, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dump.talk.session.shell = False
    for example in pages.read(path).examples:
        assert "internal error" not in dump.say(example)
        dump.talk.session.finished = False
    assert dump.say("env").startswith("Current Volume")


def test_records_are_read_forward_and_backward(dump: Dump) -> None:
    forward = rbas(dump.say("n 50"))
    assert forward == sorted(forward)
    assert forward[0] == 0
    backward = rbas(dump.say("pos last rev", "n 50"))
    assert backward[::-1] == forward or backward[::-1] == forward[:-1]
    assert "Beginning of the file" in dump.say("n")
    assert "End of the file" in dump.say("pos eof", "pos for", "n")


def test_a_record_is_shown_as_in_public_listings(dump: Dump) -> None:
    text = dump.say("ghdr on", "detail data", "ggstoken detail", "timeoffset gmt", "pos first", "sft insert")
    lines = text.splitlines()
    assert lines[lines.index("_" * 67) + 1] == "Hdr-Ind    :     E  (x45)     Partition  :     .  (x0c)"
    assert "RecLength  :    20  (x0014)   IO Time    : 2023/11/14 22:13:20.001.000" in lines
    assert "TransInd   :     .  (x03)     FormatType :     R  (x52)" in lines
    assert "AuditRBA   :          0       AuditPos   : 11" in lines
    assert "Name: hr.a  (TDR Index: 1)" in lines
    assert f"{'After  Image:':<58}Partition x0c   G  s" in lines
    assert "Column 0 (0x0000), Length 5 (0x0005)." in lines
    assert f" {'0000 0300 6f6e 65':<49} | ....one" in lines
    assert "TokenID x4c 'L' LOGCSN           Info x00  Length   17" in lines
    assert f" {'3730 31':<49} | 701" in lines


def test_the_file_header_is_shown_in_groups(dump: Dump) -> None:
    text = dump.say("fileheader detail", "pos 0", "n")
    assert "GroupID x30 '0' TrailInfo        Info x00  Length" in text
    assert "TokenID x30 '0' Signature        Info x00  Length    8" in text
    assert "GroupID x34 '4' ContinuityInfo" in text


def test_scans_find_the_next_record_of_their_kind(dump: Dump) -> None:
    assert kinds(dump.say("pos first", "sft delete")) == ["Delete"]
    assert kinds(dump.say("sft GGSKeyFieldComp")) == ["GGSKeyFieldComp"]
    assert "no insert" in dump.say("pos eof", "sft insert")
    assert "Definition" not in dump.say("pos first", "sfmd tdr hr.b*")
    assert "CSN" not in dump.say("pos first", "scanscn 0/4")
    assert kinds(dump.say("record")) == ["GGSPurgedata"]
    text = dump.say("pos first", "sft fieldcomp", "sfet")
    assert "End of Transaction found at RBA" in text
    assert kinds(text) == ["FieldComp", "GGSKeyFieldComp"]
    assert kinds(dump.say("timeoffset gmt", "pos first", "sfts 2023-11-14 22:13:20.004")) == ["GGSPurgedata"]
    assert "Reading forward from RBA" in dump.say("begin 2023-11-14 22:13:20.004")


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["filter rectype delete"], ["Delete", "Delete"]),
        (["filter inc rectype delete; filename hr.a", "filter match all"], ["Delete"]),
        (["filter exclude rectype 5,10,15,3,115,170,151,161"], ["GGSPurgedata"]),
        (["filter transid 702"], ["FieldComp", "Insert", "Delete"]),
        (["filter csn >= 0/6"], ["Delete"]),
        (["filter string 'uno'"], ["FieldComp"]),
        (["filter hex 756e6f"], ["FieldComp"]),
        (["filter auditpos > 50; rectype insert", "filter match all"], ["Insert"]),
        (["filter transind begin"], ["FieldComp", "Insert"]),
        (["filter reclen 0; rectype ggspurgedata", "filter match all"], ["GGSPurgedata"]),
    ],
)
def test_filters_select_matching_records(dump: Dump, filters: list[str], expected: list[str]) -> None:
    text = dump.say("pos first", *filters, "n 100")
    assert [kind for kind in kinds(text) if kind not in ("Metadata", "RecordFragment")] == expected


def test_filters_are_listed_cleared_and_switched(dump: Dump) -> None:
    dump.say("filter rectype delete", "filter exclude filename hr.b*")
    assert dump.say("filter show").splitlines() == [
        "Data filters are ENABLED",
        "Include  Match ANY",
        "Rectypes   : Delete",
        "Exclude  Match ANY",
        "Filename-0 : hr.b*",
    ]
    assert "has 1 records" in dump.say("count")
    dump.say("filter off")
    assert "has 1 records" not in dump.say("count")
    dump.say("filter on", "filter clear 1")
    assert "Rectype" not in dump.say("show filter")
    assert "filter 9 does not exist" in dump.say("filter clear 9")
    assert "unknown Logdump command wonder" in dump.say("filter rectype delete; wonder 3")


def test_count_reports_types_tables_and_transactions(dump: Dump) -> None:
    text = dump.say("count detail")
    assert re.search(r"^Delete +2$", text, re.MULTILINE)
    assert re.search(r"^Insert +3$", text, re.MULTILINE)
    assert re.search(r"^Average of 6 Transactions", text, re.MULTILINE)
    assert re.search(r"^hr\.a", text, re.MULTILINE)
    dump.say("transhist 5", "transreclimit 3", "count")
    assert "702" in dump.say("transhist")
    assert dump.say("timeoffset gmt", "count interval 1").startswith(
        "Interval from 2023/11/14 22:13:00.000 to 2023/11/14 22:14"
    )


def test_saved_records_are_a_readable_trail(dump: Dump, trail: TrailName, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    dump.say("pos first", "sft insert")
    text = dump.say("filter exclude rectype metadata", f"save {out}/sv000000000 4 records")
    assert "4 records" in text
    with contextlib.closing(TrailReader(TrailName(out, "sv"))) as reader:
        rows = []
        while (batch := reader.read()) is not None:
            rows += read_rows(batch)
    assert [row[2] for row in rows] == [15, 5, 3, 115]
    assert "already exists" in dump.say(f"save {out}/sv000000000 1 records")


def test_saving_a_large_transaction_needs_little_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: the whole new file was in memory."""
    name, rows = TrailName(tmp_path, "la"), 200
    image = encode_image([(0, b"1"), (1, b"x" * 20_000)])
    write_trail(name, [make_batch([Tx(1, [Row(A, IoType.INSERT, image, number) for number in range(rows)])])])
    dump = Dump(capsys)
    dump.say(f"open {name.file(0)}", "pos first")
    tracemalloc.start()
    text = dump.say(f"save {tmp_path}/sv000000000 100000000 bytes")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert f" bytes saved to {tmp_path}/sv000000000" in text
    assert (tmp_path / "sv000000000").stat().st_size > rows * 20_000
    assert peak < rows * 20_000 / 4
    with contextlib.closing(TrailReader(TrailName(tmp_path, "sv"))) as reader:
        assert sum(len(batch) for batch in iter(reader.read, None)) == rows
    dump.talk.session.close()


def test_a_save_that_ends_at_a_damaged_record_leaves_the_file_as_it_was(
    trail: TrailName, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = bytearray(trail.file(0).read_bytes())
    content[-30] ^= 0xFF
    trail.file(0).write_bytes(content)
    out = tmp_path / "out"
    out.mkdir()
    (out / "sv000000000").write_bytes(b"before")
    dump = Dump(capsys)
    text = dump.say(f"open {trail.file(0)}", "pos first", f"save {out}/sv000000000 ! 100 records")
    assert "nothing was saved" in text
    assert [(path.name, path.read_bytes()) for path in out.iterdir()] == [("sv000000000", b"before")]
    dump.talk.session.close()


def test_saved_records_are_enclosed_in_comments_unless_nocomment_is_given(
    dump: Dump, trail: TrailName, tmp_path: Path
) -> None:
    source = trail.file(0)
    dump.say(
        "pos first",
        "sft insert",
        f"save {tmp_path}/sv000000000 2 records",
        f"save {tmp_path}/nc000000000 2 records nocomment",
    )
    text = dump.say(f"open {tmp_path}/sv000000000", "pos 0", *["n"] * 9)
    assert text.count("GGSComment") == 2
    begin = re.search(rf"^Begin of records saved from {source}, RBA (\d+)$", text, re.MULTILINE)
    assert begin is not None
    assert f"End of 2 records saved from {source}, RBA {begin[1]}" in text
    assert "GGSComment" not in dump.say(f"open {tmp_path}/nc000000000", "pos 0", *["n"] * 9)


def test_two_records_are_compared_field_by_field(dump: Dump) -> None:
    first, second = (rbas(dump.say(*where))[0] for where in (["pos first", "sft insert"], ["sft fieldcomp"]))
    text = dump.say(f"compare {first}, {second}")
    assert re.search(r"^io_type +5 +15$", text, re.MULTILINE)
    assert re.search(r"^column 1 ", text, re.MULTILINE)
    assert "are equal" in dump.say(f"diff {first} {first}")
    assert "no record begins at RBA 3" in dump.say("compare 3, 4")


def test_records_can_be_printed_as_json(trail: TrailName, capsys: pytest.CaptureFixture[str]) -> None:
    dump = Dump(capsys, as_json=True)
    lines = dump.say(f"open {trail.file(0)}", "sft fieldcomp", "count").splitlines()
    record, counted = json.loads(lines[1]), json.loads(lines[2])
    assert (record["record"], record["table"], record["columns"]) == ("FieldComp", "hr.a", {"id": "1", "t": "uno"})
    assert record["tokens"]["6"] == "702"
    assert counted["transactions"] == 6
    assert counted["types"]["Delete"] == 2
    dump.talk.session.close()


def test_nexttrail_opens_the_next_existing_file_and_reports_missing_ones(dump: Dump, trail: TrailName) -> None:
    assert "is the last file of its trail" in dump.say("nexttrail")
    trail.file(2).write_bytes(trail.file(0).read_bytes())
    text = dump.say("nt")
    assert "Sequence numbers 1 to 1 are missing." in text
    assert str(trail.file(2)) in dump.say("open")


def test_nexttrail_reports_a_missing_file_that_the_durable_mark_names(dump: Dump, trail: TrailName) -> None:
    """The durable mark names a file that does not exist, so the open file is not the last one."""
    with contextlib.closing(MarkWriter(trail)) as mark:
        mark.write(DurableMark(TrailPosition(1, 900), None))
    assert f"{trail.file(1)} (sequence number 1) is missing" in dump.say("nexttrail")


def test_statements_without_a_file_and_wrong_statements_give_an_error_message(
    capsys: pytest.CaptureFixture[str],
) -> None:
    dump = Dump(capsys)
    assert "no trail file is open" in dump.say("n")
    assert "cannot open" in dump.say("open /nowhere/ea000000000")
    assert "unknown Logdump command wonder" in dump.say("wonder")
    assert "is not supported" in dump.say("trailformat new")
    assert "expected a time" in dump.say("begin tomorrow")


def test_counting_in_chunks_equals_counting_record_by_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(3)
    kinds_of = [IoType.INSERT, IoType.FIELD_COMP, IoType.DELETE]
    sent = [
        Tx(csn, [Row(rng.choice([A, B]), rng.choice(kinds_of), b"x" * rng.randrange(90)) for _ in range(size)])
        for csn, size in enumerate((rng.randrange(1, 9) for _ in range(120)), 1)
    ]
    name = TrailName(tmp_path, "cc")
    write_trail(name, [make_batch([each]) for each in [*sent, Tx(200, [Row(A, IoType.INSERT, b"y" * 150_000)])]])
    dump = Dump(capsys)
    dump.say(f"open {name.file(0)}")
    one_by_one = dump.say("filter rba >= 0", "count detail")
    for chunk in (300, 5000, 1 << 20):
        monkeypatch.setattr(counting, "CHUNK", chunk)
        in_chunks = dump.say("filter clear all", "count detail")
        assert _figures(in_chunks) == _figures(one_by_one)
    dump.talk.session.close()


def _figures(text: str) -> list[str]:
    """The lines of a count, without those that include the file header, which passes no filter."""
    with_header = ("LogTrail", "Total Data", "  Avg", "Records  ", "FileHeader")
    kept = [line for line in text.splitlines() if not line.startswith(with_header)]
    return [line for line in kept if line.strip() and not line.startswith("*FileHeader*")]


@pytest.fixture
def statements(tmp_path: Path, dump: Dump) -> Dump:
    """A session with a trail of one row between two DDL statements."""
    name = TrailName(tmp_path, "dd")
    create = ddl_statement("CREATE TABLE", "create table a (\n  t text default 'x')", "hr", "a")
    index = ddl_statement("CREATE INDEX", "create index i on a (t)", "hr", "i")
    row = Row(A, IoType.INSERT, encode_image([(0, b"1")]), 12)
    write_trail(name, [make_batch([Tx(1, [ddl_row(create, 11), row, ddl_row(index, 13)])])])
    dump.say(f"open {name.file(0)}")
    return dump


def test_a_ddl_statement_is_shown_with_its_pairs(statements: Dump) -> None:
    text = statements.say("ghdr on", "detail on", "timeoffset gmt", "pos first", "sft ddl")
    lines = text.splitlines()
    assert any(re.search(r"DDLOP +Len +\d+ RBA \d+$", line) for line in lines)
    assert "IOType     :   160  (xa0)     OrigNode   :   255  (xff)" in lines
    assert "Name: hr.a  (TDR Index: 1)" in lines
    assert f"{'After  Image:':<58}Partition x0c   G  b" in lines
    assert "TAG       : CREATE TABLE" in lines
    assert lines[lines.index("TEXT      : create table a (") + 1] == "              t text default 'x')"
    statements.say("detail off", "pos first")
    assert "TEXT" not in statements.say("sft ddl")
    assert "| ,OWNER='hr',,NAME=" in statements.say("detail data", "pos first", "sft ddl")


def test_ddl_statements_are_counted_filtered_and_saved(statements: Dump, tmp_path: Path) -> None:
    assert re.search(r"^DDLOP +2$", statements.say("count"), re.MULTILINE)
    text = statements.say("filter include iotype ddl", "pos first", "n 10")
    assert kinds(text) == ["DDLOP", "DDLOP"]
    statements.say("filter clear", "pos first", f"save {tmp_path / 'sv000000000'} 10 records")
    text = statements.say(f"open {tmp_path / 'sv000000000'}", "detail on", "n 10")
    assert [kind for kind in kinds(text) if kind in ("DDLOP", "Insert")] == ["DDLOP", "Insert", "DDLOP"]
    assert "TEXT      : create index i on a (t)" in text


def test_a_ddl_statement_is_an_object_with_its_pairs_as_json(
    statements: Dump, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = Dump(capsys, as_json=True)
    text = dump.say(f"open {tmp_path / 'dd000000000'}", "pos first", "sft ddl")
    found = next(json.loads(line) for line in text.splitlines() if '"DDLOP"' in line)
    dump.talk.session.close()
    assert (found["record"], found["table"], found["ddl"]["OPTYPE"]) == ("DDLOP", "hr.a", "CREATE")
    assert "columns" not in found
