"""A mapping reports what it leaves out when the table is mapped."""

from __future__ import annotations

from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.target import TargetColumn, TargetTable
from ggshell.record.definition import Column, TableDefinition
from ggshell.types import TableName

SOURCE = TableDefinition(TableName("a", "t"), (Column("id", "integer"), Column("twice", "integer")), (0,))


def noted(*columns: TargetColumn) -> list[str]:
    found: list[str] = []
    table = TargetTable(TableName("b", "t"), columns, ("id",), (frozenset({"id"}),))
    mapper = Mapper([MapRule("a.*", "b.*")], lambda _: table, noted=lambda _, text: found.append(text))
    assert mapper.resolve(SOURCE) is mapper.resolve(SOURCE)
    return found


def test_a_value_for_a_generated_column_of_the_target_is_reported_as_not_applied() -> None:
    (text,) = noted(TargetColumn("id", "integer"), TargetColumn("twice", "integer", writable=False))
    assert text == "b.t computes column twice itself (generated): the values of a.t are not applied"


def test_a_target_column_without_a_value_is_reported() -> None:
    (text,) = noted(*(TargetColumn(name, "integer") for name in ("id", "twice", "x", "y")))
    assert text.startswith("a.t has no value for columns x, y of b.t: inserted rows get the default or NULL")


def test_nothing_is_reported_if_every_column_is_mapped() -> None:
    generated = TargetColumn("z", "integer", writable=False)
    assert not noted(TargetColumn("id", "integer"), TargetColumn("twice", "integer"), generated)


def test_a_target_column_that_silently_truncates_values_is_reported() -> None:
    (text,) = noted(TargetColumn("id", "integer"), TargetColumn("twice", '"char"'))
    assert text.startswith('column twice of b.t is "char", the source\'s is integer: values may be rounded or cut')


def test_an_assumed_time_zone_is_reported_with_columns_and_types() -> None:
    """Finding: timestamp to timestamptz, and back, was taken as UTC and not reported."""
    plain, zoned = "timestamp without time zone", "timestamp with time zone"
    types = {"made": (plain, zoned), "changed": (plain, zoned), "seen": (zoned, plain), "kept": (zoned, zoned)}
    source = TableDefinition(
        TableName("a", "t"), tuple(Column(name, source_type) for name, (source_type, _) in types.items()), (0,)
    )
    target = TargetTable(
        TableName("b", "t"),
        tuple(TargetColumn(name, target_type) for name, (_, target_type) in types.items()),
        ("made",),
    )
    found: list[str] = []
    Mapper([MapRule("a.*", "b.*")], lambda _: target, noted=lambda _, text: found.append(text)).resolve(source)
    assert found == [
        f"columns made, changed of b.t are {zoned}, the source's are {plain}: values without a time zone are taken as UTC",
        f"column seen of b.t is {plain}, the source's is {zoned}: values get the date and time that they have in UTC",
    ]


def test_a_domain_of_the_target_is_treated_like_its_base_type() -> None:
    (text,) = noted(TargetColumn("id", "integer"), TargetColumn("twice", "b.letter", holds='"char"'))
    assert text.startswith("column twice of b.t is b.letter, the source's is integer: values may be rounded or cut")
