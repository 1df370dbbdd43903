"""What the writer writes is read by a reader that was written from FORMAT.md alone."""

from __future__ import annotations

import ast
import random
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest
from amounts import examples
from batches import Row, Tx, ddl_row, make_batch
from hypothesis import given, settings
from hypothesis import strategies as st
from trail import independent_reader
from trail.damage_kit import KINDS, WIDE, flips, sample_record, splices
from trail.independent_reader import Change, IndependentReader, durable_end
from trail_kit import A, B, open_writer

from ggshell.record.ddl import DdlObject, DdlStatement, ddl_pairs, encode_ddl
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.record.user_tokens import encode_user_tokens
from ggshell.trail.name import TrailName
from ggshell.types import Csn, TableName

VALUES = st.none() | st.binary(max_size=20) | st.sampled_from([b"", b"x" * 65_530, b"y" * 65_531, b"z" * 130_000])
TWO = (IoType.KEY_FIELD_COMP, IoType.UNIFIED_UPDATE, IoType.UNIFIED_KEY_UPDATE)


class Sent(NamedTuple):
    """A row to write: its columns before and after, its user tokens."""

    row: Row
    before: independent_reader.Image
    after: independent_reader.Image
    user_tokens: dict[str, bytes]
    ddl: Mapping[str, str] = MappingProxyType({})


@st.composite
def sent_statements(draw: st.DrawFn) -> Sent:
    """A DDL statement: its text, and a role."""
    texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60) | st.just("it's" * 20_000)
    name = draw(st.sampled_from([A.name, TableName("hr", "o'dd, =x"), TableName("", "")]))
    statement = DdlStatement("ALTER TABLE", draw(texts), (DdlObject("TABLE", name),), role=draw(texts))
    return Sent(ddl_row(statement, draw(st.integers(0, 2**64 - 1))), [], [], {}, ddl_pairs(encode_ddl(statement)))


@st.composite
def sent_rows(draw: st.DrawFn) -> Sent:
    table = draw(st.sampled_from([A, B, WIDE]))
    kind = draw(
        st.sampled_from([IoType.INSERT, IoType.DELETE, IoType.UPDATE, IoType.FIELD_COMP, IoType.PURGE_DATA, *TWO])
    )
    columns = st.lists(st.tuples(st.integers(0, len(table.columns) - 1), VALUES), max_size=3)
    after = [] if kind == IoType.PURGE_DATA else draw(columns)
    before = draw(columns) if kind in TWO else []
    image = encode_image(after)
    tokens = draw(st.just({}) | st.dictionaries(st.text(min_size=1, max_size=9), st.binary(max_size=30), max_size=3))
    row = Row(
        table,
        kind,
        join_key_update(encode_image(before), image) if kind in TWO else image,
        draw(st.integers(0, 2**64 - 1)),
        before=kind == IoType.FIELD_COMP and draw(st.booleans()),
        user=encode_user_tokens(tokens.items()),
    )
    return Sent(row, before, after, tokens)


PLANS = st.lists(
    st.tuples(
        st.lists(sent_rows() | sent_statements(), min_size=1, max_size=4),
        st.sampled_from(["", "pieces", "roll", "again"]),
    ),
    max_size=8,
)


@settings(max_examples=examples(40))
@given(PLANS, st.integers(400, 90_000))
def test_an_independent_reader_reads_random_trails_as_written(
    plan: list[tuple[list[Sent], str]], max_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        name = TrailName(Path(folder), "ea")
        writer, again = open_writer(name, max_bytes), 0
        for csn, (rows, event) in enumerate(plan, 1):
            changes = [each.row for each in rows]
            cuts = range(len(changes)) if event == "pieces" else [0]
            step = 1 if event == "pieces" else len(changes)
            for at in cuts:
                last = at + step >= len(changes)
                writer.write(make_batch([Tx(csn, changes[at : at + step], begins=at == 0, ends=last)]))
            end = writer.flush()
            if event == "roll":
                writer.rollover()
            if event == "again":
                writer.close()
                writer, again = open_writer(name, max_bytes), again + 1
        end = writer.flush()
        writer.close()
        reader = IndependentReader(Path(folder), "ea")
        read = list(reader.changes())
        assert reader.restarts == again
        mark = durable_end(Path(folder), "ea")
        assert (mark["seqno"], mark["rba"], mark["csn"] * (mark["kind"] < 2)) == (end.seqno, end.rba, len(plan))
    written = [(csn, each, at, len(rows)) for csn, (rows, _) in enumerate(plan, 1) for at, each in enumerate(rows)]
    assert len(read) == len(written)
    for change, (csn, each, at, count) in zip(read, written, strict=True):
        _compare(change, each, csn)
        assert (change.begins, change.ends) == (at == 0, at == count - 1)


def _compare(change: Change, sent: Sent, csn: int) -> None:
    row, table = sent.row, sent.row.table
    assert change.transaction == (str(Csn(csn)), str(700 + csn), str(Csn(csn)), 1_700_000_000_000_000 + csn * 1000)
    assert (change.operation, change.position, change.is_before) == (row.io_type, row.position, row.before)
    assert change.ddl == sent.ddl
    assert (change.before, change.after, change.user_tokens) == (sent.before, sent.after, sent.user_tokens)
    assert (change.table["owner"], change.table["table"]) == table.name
    assert change.table["key"] == list(table.key)
    assert change.table["columns"] == [
        [column.name, column.type_name, column.type_id, column.nullable] for column in table.columns
    ]


@pytest.mark.parametrize("name", ["insert, sole", "metadata", "file header", "fragment, last", "user tokens"])
def test_an_independent_reader_detects_damage(tmp_path: Path, name: str) -> None:
    shown, rng = sample_record(tmp_path, KINDS[name]), random.Random(51)
    good = list(IndependentReader(tmp_path, "ea").changes())
    for content in (*flips(shown, rng, 0.5), *splices(shown, rng, 30)):
        shown.put(content)
        read = []
        with pytest.raises((ValueError, IndexError)):
            for change in IndependentReader(tmp_path, "ea").changes():
                read.append(change)
        assert read == good[: len(read)]


def test_the_file_header_has_the_fields_that_the_format_describes(tmp_path: Path) -> None:
    shown = sample_record(tmp_path, KINDS["header of a file within a transaction"])
    reader = IndependentReader(tmp_path, "ea")
    list(reader.changes())
    second = reader.headers[1]
    assert second[0x34, 0x30] == b"\1"
    assert second[0x34, 0x31].decode() == str(Csn(1))
    assert second[0x30, 0x36][2:].decode() == str(shown.path)
    assert (second[0x32, 0x30][2:], second[0x32, 0x31][2:]) == (b"PostgreSQL", b"north")
    assert second[0x33, 0x30][2:] == b"EXT1"


def test_the_independent_reader_imports_nothing_from_the_project() -> None:
    tree = ast.parse(Path(independent_reader.__file__).read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names == {"__future__", "json", "struct", "zlib", "collections.abc", "pathlib", "typing"}


def test_the_worked_example_of_the_format_page(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "ggshell/trail/FORMAT.md").read_text(encoding="utf-8")
    section = text.split("## Worked example")[1].split("\n## ")[0]
    lines = [line[4:].split("  ")[0] for line in section.splitlines() if line.startswith("    ")]
    record = b"".join(bytes.fromhex("".join(re.findall(r"\b(?:[0-9a-f]{2}){1,2}\b", line))) for line in lines)
    (piece,) = independent_reader.records(bytes(700) + record, 700)
    assert independent_reader.image(piece.data) == [(0, b"1"), (1, None)]
    assert independent_reader.transaction_of(piece.tokens, piece.field["io_time"]) == (
        "00000000/0000002A",
        "742",
        "00000000/0000002A",
        1_700_000_000_042_000,
    )
