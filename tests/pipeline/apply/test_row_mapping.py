"""MAP clauses applied to batches: which rows leave the stage and how they are applied."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from batches import Row, Tx, make_batch, read_rows
from pipeline.apply.hand_made import T, delete, image, insert, key_update, truncate, update, update_a

from ggshell.errors import ApplyError, StatementError
from ggshell.language.clauses import ColumnMap, FilterClause, parse_clause
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.row_mapping import RowMapping
from ggshell.pipeline.apply.target import TableMapping, TargetColumn, TargetTable
from ggshell.pipeline.transform.clauses import Clauses, Conversion
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.stage import Stage
from ggshell.record.change import ChangeBatch
from ggshell.record.image import decode_image, split_key_update
from ggshell.record.operation import OPERATIONS, IoType
from ggshell.types import TableName

TARGET = TargetTable(
    TableName("x", "t"),
    (TargetColumn("id", "integer"), TargetColumn("a", "text"), TargetColumn("b", "numeric"), TargetColumn("c", "text")),
    ("id",),
    (frozenset({"id"}),),
)


def clauses(colmap: str = "", filters: tuple[str, ...] = (), *conversions: Conversion) -> Clauses:
    found = parse_clause("colmap", colmap) if colmap else None
    asked = [parse_clause("filter", text) for text in filters]
    return Clauses(
        filters=tuple(each for each in asked if isinstance(each, FilterClause)),
        column_map=found if isinstance(found, ColumnMap) else None,
        conversions=frozenset(conversions),
    )


class Mapped:
    """A mapping stage with its mapper."""

    def __init__(self, *rules: MapRule) -> None:
        self.mapper = Mapper(rules, lambda name: TARGET._replace(name=name))
        self.stage = Stage(RowMapping(rules, self.mapper, Environment(), lambda: None).programs)

    def mapping(self, batch: ChangeBatch, number: int) -> TableMapping:
        found = self.mapper.resolve(batch.tables[number])
        assert found is not None
        return found

    def values_of(self, batch: ChangeBatch, row: int) -> dict[str, str | None]:
        """A row's values (the after values of two images) by target column."""
        mapping = self.mapping(batch, int(batch.table[row]))
        start = int(batch.start[row])
        data: bytes | memoryview = bytes(batch.buffer[start : start + int(batch.length[row])])
        if batch.io_type[row] in (IoType.KEY_FIELD_COMP, IoType.UNIFIED_UPDATE):
            _, data = split_key_update(data)
        return {
            column.name: value.decode() if value is not None else None
            for index, value in decode_image(data)
            if (column := mapping.columns[index]) is not None
        }


def rule(
    target: str = "x.t", *, source: str = "hr.t", ignored: frozenset[int] = frozenset(), **given: Clauses
) -> MapRule:
    return MapRule(source, target, ignored=ignored, **given)  # type: ignore[arg-type]


def test_without_clauses_the_batch_is_passed_on_unchanged() -> None:
    batch = make_batch([Tx(1, [insert(1)])])
    assert Mapped(rule()).stage.run(batch) is batch


@pytest.mark.parametrize("count", [1, 30])
def test_computed_columns_are_evaluated_and_others_are_copied(count: int) -> None:
    mapped = Mapped(rule(clauses=clauses("(USEDEFAULTS, a = @STRUP (a), c = @STRCAT (id, '/', b))")))
    made = mapped.stage.run(make_batch([Tx(1, [insert(number) for number in range(count)])]))
    assert [mapped.values_of(made, row) for row in range(count)] == [
        {"id": str(number), "a": "X", "b": "1.5", "c": f"{number}/1.5"} for number in range(count)
    ]


def test_one_source_column_for_two_target_columns_and_a_missing_value() -> None:
    mapped = Mapped(rule(clauses=clauses("(id = id, a = a, c = a, b = b)")))
    made = mapped.stage.run(make_batch([Tx(1, [insert(1, None), update_a(2, "y")])]))
    assert mapped.values_of(made, 0) == {"id": "1", "a": None, "b": "1.5", "c": None}
    assert mapped.values_of(made, 1) == {"id": "2", "a": "y", "c": "y"}


def test_skipped_rows_belong_to_no_table_and_keep_their_positions() -> None:
    batch = make_batch([Tx(1, [insert(1), insert(2, b="0"), truncate()]), Tx(2, [insert(3, b="0")])])
    made = Mapped(rule(clauses=clauses(filters=("(b > 1)",)))).stage.run(batch)
    assert made.pieces == batch.pieces
    assert made.table.tolist() == [0, 1, 0, 1]
    assert made.buffer is batch.buffer


def test_filters_apply_to_their_operations_only() -> None:
    mapped = Mapped(rule(clauses=clauses("", ("(ON INSERT, b > 1)", "(IGNORE INSERT, IGNORE DELETE, a = 'yes')"))))
    batch = make_batch([Tx(1, [insert(1, b="0"), insert(2), update(3, "yes"), update(4, "no"), delete(5)])])
    assert mapped.stage.run(batch).table.tolist() == [1, 0, 0, 1, 0]


def test_a_second_target_and_a_history_table_each_get_the_row_in_its_transaction() -> None:
    history = clauses("(USEDEFAULTS, c = GGS_OP_TYPE)", (), Conversion.ALL_RECORDS)
    mapped = Mapped(rule(), rule("x.history", clauses=history))
    batch = make_batch([Tx(1, [insert(1), update(1, "y")]), Tx(2, [delete(1), truncate()])])
    made = mapped.stage.run(batch)
    assert [piece.count for piece in made.pieces] == [4, 3]
    targets = [mapped.mapping(made, number).target.name.name for number in made.table.tolist()]
    assert targets == ["t", "history", "t", "history", "t", "history", "t"]
    assert made.io_type.tolist()[1::2] == [IoType.INSERT] * 3
    assert mapped.values_of(made, 5) == {"id": "1", "c": "DELETE"}
    assert {mapped.mapping(made, number).source.name for number in range(2)} == {T.name}
    assert made.rba.tolist() == [0] * 7


def test_a_source_and_target_that_are_mapped_twice_count_once() -> None:
    batch = make_batch([Tx(1, [insert(1)])])
    assert Mapped(rule(), rule()).stage.run(batch) is batch


def test_the_row_of_a_key_update_is_found_by_its_old_key() -> None:
    mapped = Mapped(rule(clauses=clauses("(id = @COMPUTE (id + 100), a = a)")))
    made = mapped.stage.run(make_batch([Tx(1, [key_update(1, 2), delete(2)])]))
    first = int(made.start[0])
    before, after = split_key_update(bytes(made.buffer[first : first + int(made.length[0])]))
    place = next(iter(mapped.mapping(made, 0).key))
    assert dict(decode_image(before))[place] == b"101"
    assert dict(decode_image(after))[place] == b"102"
    assert mapped.values_of(made, 1) == {"id": "102"}


def test_deletes_become_inserts_or_updates() -> None:
    batch = make_batch([Tx(1, [delete(1), insert(2)])])
    for conversion, expected in (
        (Conversion.INSERT_DELETES, [IoType.INSERT, IoType.INSERT]),
        (Conversion.UPDATE_DELETES, [IoType.FIELD_COMP, IoType.INSERT]),
        (Conversion.UPDATE_INSERTS, [IoType.DELETE, IoType.FIELD_COMP]),
    ):
        made = Mapped(rule(clauses=clauses("", (), conversion))).stage.run(batch)
        assert made.io_type.tolist() == expected


def test_before_images_follow_their_update_and_become_history_rows() -> None:
    rows = [update(1, "old"), update(1, "new"), update(2, "old"), update(2, "no")]
    batch = replace(make_batch([Tx(1, rows)]), befores=np.array([True, False, True, False]))
    history = clauses("(USEDEFAULTS, c = GGS_BEFORE_AFTER_IND)", ("(a <> 'no')",), Conversion.ALL_RECORDS)
    mapped = Mapped(rule(clauses=history))
    made = mapped.stage.run(batch)
    assert made.table.tolist() == [0, 0, 1, 1]
    assert made.befores is not None
    assert not made.befores[:2].any()
    assert [mapped.values_of(made, row)["c"] for row in (0, 1)] == ["BEFORE", "AFTER"]


def test_operations_that_a_rule_ignores_are_skipped() -> None:
    mapped = Mapped(rule(ignored=OPERATIONS["DELETES"], clauses=clauses("(USEDEFAULTS, c = 'x')")))
    made = mapped.stage.run(make_batch([Tx(1, [delete(1), insert(2)])]))
    assert made.table.tolist() == [1, 0]
    assert mapped.mapper.ignored(made.tables[0]) == frozenset()


def test_keycols_are_target_columns() -> None:
    given = clauses("(USEDEFAULTS, c = @STRUP (a))")
    mapped = Mapped(MapRule("hr.t", "x.t", ("C",), clauses=given))
    made = mapped.stage.run(make_batch([Tx(1, [insert(1)])]))
    mapping = mapped.mapping(made, 0)
    assert [mapping.columns[index].name for index in mapping.key if mapping.columns[index]] == ["c"]  # type: ignore[union-attr]
    assert not mapping.single


def test_other_tables_and_their_tokens_pass_unchanged() -> None:
    other = T._replace(name=TableName("hr", "other"))
    batch = make_batch([Tx(1, [Row(other, IoType.INSERT, image("1", "x", "1")), insert(2)])])
    made = Mapped(rule(clauses=clauses("(USEDEFAULTS, c = 'x')"))).stage.run(batch)
    assert read_rows(made)[0] == read_rows(batch)[0]


@pytest.mark.parametrize(
    ("colmap", "error", "text"),
    [
        ("(a = a)", ApplyError, "leaves out columns that identify rows"),
        ("(USEDEFAULTS, d = a)", StatementError, "no column d"),
        ("(USEDEFAULTS, a = nothing)", StatementError, "has no column nothing"),
    ],
)
def test_an_invalid_mapping_is_refused_before_the_first_row(colmap: str, error: type[Exception], text: str) -> None:
    keyless = TARGET._replace(key=())
    rules = [rule(clauses=clauses(colmap))]
    stage = Stage(RowMapping(rules, Mapper(rules, lambda _: keyless), Environment(), lambda: None).programs)
    with pytest.raises(error, match=text):
        stage.run(make_batch([Tx(1, [insert(1)])]))
