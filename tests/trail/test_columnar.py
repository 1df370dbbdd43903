"""Trails as columns: the same rows as record by record, ranges that share a file, skipped files, and damage."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from amounts import examples
from batches import Row, Tx, make_batch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trail_kit import A, B, cut_records, write_trail

from ggshell.errors import NotFoundError, TrailError
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType
from ggshell.trail.boundaries import split_points
from ggshell.trail.columnar import FAULT, OnDamage, RowFilter, read_columnar, read_table
from ggshell.trail.name import TrailName
from ggshell.trail.record import decode_record
from ggshell.types import Csn

TEXTS = st.one_of(st.none(), st.text(max_size=12), st.just("x" * 70_000))


@st.composite
def rows(draw: st.DrawFn) -> Row:
    table = draw(st.sampled_from([A, B]))
    columns = list(enumerate(draw(st.lists(TEXTS, min_size=1, max_size=len(table.columns)))))
    image = encode_image([(index, None if value is None else value.encode()) for index, value in columns])
    kind = draw(
        st.sampled_from([IoType.INSERT, IoType.FIELD_COMP, IoType.DELETE, IoType.KEY_FIELD_COMP, IoType.PURGE_DATA])
    )
    if kind is IoType.KEY_FIELD_COMP:
        image = join_key_update(encode_image([(0, b"old")]), image)
    return Row(table, kind, b"" if kind is IoType.PURGE_DATA else image, draw(st.integers(0, 1 << 40)))


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sent=st.lists(st.lists(rows(), min_size=1, max_size=4), min_size=1, max_size=12),
    megabytes=st.sampled_from([200, 1 << 30]),
    size=st.sampled_from([1, 300, 100_000]),
)
@pytest.mark.slow
def test_columns_equal_the_records(
    tmp_path_factory: pytest.TempPathFactory, sent: list[list[Row]], megabytes: int, size: int
) -> None:
    name = TrailName(tmp_path_factory.mktemp("trail"), "ea")
    write_trail(name, [make_batch([Tx(csn, each)]) for csn, each in enumerate(sent, 1)], megabytes)
    found = []
    for seqno in name.sequences():
        path = name.file(seqno)
        points = split_points(path, size, 0, path.stat().st_size)
        for low, high in itertools.pairwise([0, *(point.place for point in points), None]):
            for batch in read_columnar(path, first=low or 0, last=high):
                found += batch.to_pylist()
    wanted = [(csn, row) for csn, each in enumerate(sent, 1) for row in each]
    assert len(found) == len(wanted)
    for got, (csn, row) in zip(found, wanted, strict=True):
        record = next(
            decode_record(data)
            for place, data in cut_records(name.file(got["seqno"]).read_bytes())
            if place == got["rba"]
        )
        assert (got["csn"], got["xid"]) == (str(Csn(csn)), str(700 + csn))
        assert (got["io_type"], got["before_after"], got["trans_ind"] & 1) == (
            record.io_type,
            record.before_after,
            got["trans_ind"] & 1,
        )
        assert (got["owner"], got["table"], got["audit_pos"]) == (*row.table.name, row.position)
        assert got["length"] == len(row.data)
        assert got["io_time"] == record.io_time
        before, after = _images(row)
        assert (dict(got["before"]), dict(got["columns"])) == (before, after)
        assert dict(got["tokens"]) == (
            {"LOGCSN": str(Csn(csn)), "TRANID": str(700 + csn)}
            if row is sent[csn - 1][0] and _first(found, got)
            else {}
        )


def _first(found: list[dict[str, object]], got: dict[str, object]) -> bool:
    return next(each for each in found if each["csn"] == got["csn"]) is got


def _images(row: Row) -> tuple[dict[str, str | None], dict[str, str | None]]:
    from ggshell.record.image import decode_image, split_key_update

    def named(image: bytes | memoryview) -> dict[str, str | None]:
        pairs = decode_image(image)
        return {row.table.columns[index].name: None if value is None else value.decode() for index, value in pairs}

    if row.io_type == IoType.KEY_FIELD_COMP:
        before, after = split_key_update(row.data)
        return named(before), named(after)
    return (named(row.data), {}) if row.io_type == IoType.DELETE else ({}, named(row.data))


def small(csn: int, table=A, count: int = 3) -> Tx:  # type: ignore[no-untyped-def]
    values = [encode_image([(0, b"%d" % (csn * 10 + n)), *([(1, b"t")] if table is A else [])]) for n in range(count)]
    return Tx(csn, [Row(table, IoType.INSERT, value, csn) for value in values])


@pytest.fixture
def trail(tmp_path: Path) -> TrailName:
    name = TrailName(tmp_path, "ea")
    write_trail(name, [make_batch([small(csn, B if csn % 3 == 0 else A)]) for csn in range(1, 31)])
    return name


def ids(path: Path, **how: object) -> list[str]:
    batches = read_columnar(path, ["columns"], **how)  # type: ignore[arg-type]
    return [dict(row["columns"])["id"] for batch in batches for row in batch.to_pylist() if row["columns"] is not None]


def test_only_requested_rows_are_read(trail: TrailName) -> None:
    path = trail.file(0)
    assert len(ids(path)) == 90
    assert ids(path, predicate=RowFilter(first_csn=Csn(30))) == ["300", "301", "302"]
    assert ids(path, predicate=RowFilter(last_csn=Csn(1))) == ["10", "11", "12"]
    assert len(ids(path, predicate=RowFilter(tables=("hr.a",)))) == 60
    assert ids(path, predicate=RowFilter(operations=("delete",))) == []
    time = 1_700_000_000_000_000 + 2000
    assert ids(path, predicate=RowFilter(first_time=time, last_time=time)) == ["20", "21", "22"]


def test_a_file_is_skipped_by_its_header_alone(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    write_trail(name, [make_batch([small(csn)]) for csn in range(1, 31)], 900)
    assert len(name.sequences()) > 5
    first = name.file(0)
    content = bytearray(first.read_bytes())
    content[-30] ^= 1
    first.write_bytes(content)
    with pytest.raises(TrailError):
        ids(first)
    assert ids(first, predicate=RowFilter(first_csn=Csn(20))) == []


def test_the_columns_of_one_table(trail: TrailName) -> None:
    found = list(read_table(trail.file(0), "hr.a", columns=["csn", "op"]))
    assert [definition for definition, _ in found] == [A]
    rows = [row for _, batch in found for row in batch.to_pylist()]
    assert rows[0] == {"csn": str(Csn(1)), "op": "Insert", "id": "10", "t": "t"}
    assert len(rows) == 60


def test_damage_raises_an_error_or_is_skipped_or_is_reported(trail: TrailName) -> None:
    path = trail.file(0)
    content = bytearray(path.read_bytes())
    places = [place for place, _ in cut_records(bytes(content))]
    for place in (places[10], places[40]):
        content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(TrailError, match=str(places[10])):
        ids(path)
    left = ids(path, on_damage=OnDamage.DROP)
    assert 80 <= len(left) < 90
    with_faults = [row for batch in read_columnar(path, ["rba"], on_damage=OnDamage.TELL) for row in batch.to_pylist()]
    faults = [row[FAULT] for row in with_faults if row[FAULT]]
    assert len(faults) == 2
    assert f"RBA {places[10]}" in faults[0]
    assert len(with_faults) == len(left) + 2


def test_invalid_names_are_refused(trail: TrailName, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no column wonder"):
        list(read_columnar(trail.file(0), ["wonder"]))
    with pytest.raises(NotFoundError, match="is not a trail file"):
        list(read_columnar(tmp_path / "readme.txt"))
    with pytest.raises(NotFoundError):
        list(read_columnar(tmp_path / "zz000000000"))


def test_before_images_of_updates_are_marked_as_such_with_any_filter(tmp_path: Path) -> None:
    name = TrailName(tmp_path, "ea")
    before_image, after_image = encode_image([(0, b"1"), (1, b"was")]), encode_image([(0, b"1"), (1, b"is")])
    rows = [
        Row(B, IoType.INSERT, encode_image([(0, b"9")])),
        Row(A, IoType.FIELD_COMP, before_image, before=True, user=b"\x01a\x01\x00b"),
        Row(A, IoType.FIELD_COMP, after_image),
    ]
    write_trail(name, [make_batch([Tx(1, rows)])])
    for wanted in (RowFilter(), RowFilter(tables=("hr.a",)), RowFilter(operations=("FieldComp",))):
        (batch,) = read_columnar(name.file(0), ["before_after", "before", "columns"], wanted)
        assert [(row["before_after"], dict(row["before"]), dict(row["columns"])) for row in batch.to_pylist()][-2:] == [
            ("B", {"id": "1", "t": "was"}, {}),
            ("A", {}, {"id": "1", "t": "is"}),
        ]


def test_rows_are_counted_without_reading_any_column(trail: TrailName) -> None:
    assert sum(batch.num_rows for batch in read_columnar(trail.file(0), [])) == 90
    with_faults = list(read_columnar(trail.file(0), [], on_damage=OnDamage.TELL))
    assert (sum(batch.num_rows for batch in with_faults), with_faults[0].schema.names) == (90, [FAULT])
