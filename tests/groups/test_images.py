"""Which images and tokens an Extract writes; Replicat applies all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import Pipeline

from ggshell.record.operation import IoType
from ggshell.trail.inspection import InspectedFile
from ggshell.trail.name import TrailName
from ggshell.trail.record import Record

HEAD = "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\n"
ALL = {0: b"1", 1: b"one", 2: b"1"}
"""All columns of the inserted row."""


@pytest.fixture
def pipeline(tmp_path: Path, north: str, south: str) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path / "home", north, south)
    yield pipeline
    pipeline.close()


def replicate_changes(pipeline: Pipeline, parameters: str, *, whole: bool = True) -> list[Record]:
    """Insert, update, rekey and delete a row, with south following each step; returns the records."""
    pipeline.write("ext1", HEAD + parameters)
    pipeline.add()
    if whole:
        pipeline.run("DBLOGIN USERIDALIAS north", "ADD TRANDATA a.items ALLCOLS")
    pipeline.start()
    pipeline.in_north("INSERT INTO a.items VALUES (1, 'one', 1), (9, 'stays', 9)")
    pipeline.wait_for_rows(2)
    pipeline.in_north(
        "UPDATE a.items SET price = 2 WHERE id = 1",
        "UPDATE a.items SET id = 5 WHERE id = 1",
        "UPDATE a.items SET price = price + 1",
        "INSERT INTO a.items VALUES (10, 'more', 9)",
    )
    pipeline.wait_for_rows(3)
    pipeline.assert_same_rows()
    pipeline.in_north("DELETE FROM a.items WHERE id = 5")
    pipeline.wait_for_rows(2)
    pipeline.assert_same_rows()
    pipeline.run("STOP *")
    return list(records(TrailName.parse("./dirdat/ea", pipeline.home.root).file(0)))


def records(path: Path) -> Iterator[Record]:
    """The rows of a trail file."""
    file, place = InspectedFile(path), 0
    try:
        while (seen := file.at(place)) is not None:
            if seen.record is not None and seen.record.io_type < IoType.RESTART_ABEND:
                yield seen.record
            place = seen.rba + seen.size
    finally:
        file.close()


def values(columns: list[tuple[int, bytes | None]]) -> dict[int, bytes | None]:
    """The values without their length prefix."""
    return {index: value and value[2:] for index, value in columns}


def columns(record: Record) -> dict[int, bytes | None]:
    return values(record.columns())


def test_before_images_precede_their_updates(pipeline: Pipeline) -> None:
    found = replicate_changes(pipeline, "GETUPDATEBEFORES\nTABLE a.items;\n")
    updates = [item for item in found if item.io_type in (IoType.FIELD_COMP, IoType.KEY_FIELD_COMP)]
    assert [item.before_after for item in updates[:2]] == ["B", "A"]
    assert columns(updates[0]) == {0: b"1", 2: b"1"}
    assert columns(updates[1]) == {0: b"1", 2: b"2"}


def test_nocompress_writes_every_column(pipeline: Pipeline) -> None:
    found = replicate_changes(pipeline, "NOCOMPRESSUPDATES\nNOCOMPRESSDELETES\nTABLE a.items;\n")
    (update, *_) = [item for item in found if item.io_type == IoType.UPDATE]
    assert columns(update) == {0: b"1", 1: b"one", 2: b"2"}
    (delete,) = [item for item in found if item.io_type == IoType.DELETE]
    assert columns(delete) == {0: b"5", 1: b"one", 2: b"3"}


def test_images_hold_the_logged_columns_if_the_log_lacks_old_rows(pipeline: Pipeline) -> None:
    found = replicate_changes(pipeline, "GETUPDATEBEFORES\nNOCOMPRESSDELETES\nTABLE a.items;\n", whole=False)
    (delete,) = [item for item in found if item.io_type == IoType.DELETE]
    assert columns(delete) == {0: b"5"}


@pytest.mark.parametrize("form", ["COMPACT", "FULL"])
def test_unified_records_hold_both_images(pipeline: Pipeline, form: str) -> None:
    found = replicate_changes(pipeline, f"UPDATERECORDFORMAT {form}\nTABLE a.items;\n")
    (update, *_) = [item for item in found if item.io_type == IoType.UNIFIED_UPDATE]
    before, after = ({0: b"1", 2: b"1"}, {0: b"1", 2: b"2"}) if form == "COMPACT" else (ALL, {**ALL, 2: b"2"})
    assert values(update.before_columns()) == before
    assert columns(update) == after
    assert len([item for item in found if item.io_type == IoType.UNIFIED_KEY_UPDATE]) == 1


def test_every_record_of_the_table_has_its_tokens(pipeline: Pipeline) -> None:
    tokens = "TOKENS (TK_GROUP = @GETENV ('GGENVIRONMENT', 'GROUPNAME'), TK_NAME = name, TK_TEXT = 'fixed',"
    tokens += " TK_BOTH = @STRCAT (name, '/', @COMPUTE (id + 1)), TK_NONE = @COLSTAT (NULL))"
    found = replicate_changes(pipeline, f"TABLE a.items, {tokens};\n")
    (insert, *_) = [item for item in found if item.io_type == IoType.INSERT]
    assert insert.named_user_tokens() == {
        "TK_GROUP": b"EXT1",
        "TK_NAME": b"one",
        "TK_TEXT": b"fixed",
        "TK_BOTH": b"one/2",
    }
