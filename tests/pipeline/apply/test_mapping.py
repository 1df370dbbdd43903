"""MAP: the target of each table, the columns that find its rows, and what is refused before the first row."""

from __future__ import annotations

import pytest

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.mapping import Mapper, MapRule, target_name
from ggshell.pipeline.apply.target import TargetColumn, TargetTable
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.families import fits
from ggshell.types import TableName


def target(name: TableName, *columns: str, key: tuple[str, ...] = (), unique: bool = True) -> TargetTable:
    made = tuple(TargetColumn(column, "integer") for column in columns)
    return TargetTable(name, made, key, (frozenset(key),) if key and unique else ())


def source(*columns: str, key: tuple[int, ...] = (), name: str = "hr.emp") -> TableDefinition:
    return TableDefinition(TableName.parse(name), tuple(Column(column, "integer") for column in columns), key)


def mapper(*rules: MapRule, excludes: tuple[str, ...] = (), key: tuple[str, ...] = ("id",)) -> Mapper:
    return Mapper(rules, lambda name: target(name, "id", "a", "B", key=key), excludes)


def test_the_first_rule_that_matches_a_table_applies() -> None:
    chosen = mapper(MapRule("hr.emp", "x.first"), MapRule("hr.*", "x.*")).resolve(source("id"))
    assert chosen is not None
    assert chosen.target.name == TableName("x", "first")


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("hr.*", "hr.emp", True),
        ("*.*", "hr.emp", True),
        ("hr.e?p", "hr.emp", True),
        ("hr.e?", "hr.emp", False),
        ("h*.emp", "hr.emp", True),
        ('hr."Emp"', "hr.emp", False),
        ("HR.EMP", "hr.emp", True),
    ],
)
def test_wildcards_in_schema_and_table_name(pattern: str, name: str, matches: bool) -> None:
    found = mapper(MapRule(pattern, "x.*")).resolve(source("id", name=name))
    assert (found is not None) == matches


def test_excluded_tables_are_not_mapped() -> None:
    assert mapper(MapRule("*.*", "x.*"), excludes=("hr.e*",)).resolve(source("id")) is None


def test_a_wildcard_in_the_target_is_replaced_by_the_source_name() -> None:
    assert target_name("copy.new_*", TableName("hr", "Emp")) == TableName("copy", "new_Emp")
    assert target_name("*.*", TableName("hr", "Emp")) == TableName("hr", "Emp")


def test_columns_are_matched_by_exact_name_first_then_ignoring_case() -> None:
    found = mapper(MapRule("hr.*", "x.*")).resolve(source("b", "id", key=(1,)))
    assert found is not None
    assert [column.name for column in found.columns if column is not None] == ["B", "id"]
    assert found.key == (1,)
    assert found.single


def test_keycols_take_precedence_and_an_unknown_column_is_refused() -> None:
    found = mapper(MapRule("hr.*", "x.*", ("A",))).resolve(source("id", "a", key=(0,)))
    assert found is not None
    assert found.key == (1,)
    assert not found.single
    with pytest.raises(ApplyError, match="KEYCOLS names nothing"):
        mapper(MapRule("hr.*", "x.*", ("nothing",))).resolve(source("id"))


def test_a_source_without_a_key_uses_the_key_of_the_target() -> None:
    with_key = mapper(MapRule("hr.*", "x.*")).resolve(source("id", "a"))
    without = mapper(MapRule("hr.*", "x.*"), key=()).resolve(source("id", "a"))
    assert with_key is not None
    assert with_key.key == (0,)
    assert without is not None
    assert without.key == (0, 1)
    assert not without.single


def test_missing_and_incompatible_columns_are_named() -> None:
    with pytest.raises(ApplyError, match=r"x.emp does not exist") as raised:
        Mapper([MapRule("hr.*", "x.*")], lambda _: None).resolve(source("id"))
    assert raised.value.code == "OGG-00199"
    with pytest.raises(ApplyError, match=r"has no column salary \(source hr.emp\)"):
        mapper(MapRule("hr.*", "x.*")).resolve(source("salary"))
    dated = TableDefinition(TableName("hr", "emp"), (Column("a", "date"),), ())
    with pytest.raises(ApplyError, match=r"a of target table x.emp is integer, which cannot hold the date"):
        mapper(MapRule("hr.*", "x.*")).resolve(dated)


@pytest.mark.parametrize(
    ("source_type", "target_type", "answer"),
    [
        ("integer", "numeric(10,2)", True),
        ("integer", "text", True),
        ("text", "integer", True),
        ("timestamp without time zone", "date", True),
        ("boolean", "integer", False),
        ("integer[]", "integer", False),
        ("integer[]", "jsonb", False),
        ("time without time zone", "timestamp with time zone", False),
        ("mood", "integer", True),
        ("bit varying(3)", "bit(3)", True),
    ],
)
def test_only_incompatible_types_are_refused(source_type: str, target_type: str, answer: bool) -> None:
    assert fits(source_type, target_type) is answer


def test_a_table_is_described_once_until_forget_is_called() -> None:
    asked: list[TableName] = []

    def describe(name: TableName) -> TargetTable:
        asked.append(name)
        return target(name, "id")

    made = Mapper([MapRule("hr.*", "x.*")], describe)
    assert not made.knows(source("id"))
    made.resolve(source("id"))
    made.resolve(source("id"))
    assert made.knows(source("id"))
    assert len(asked) == 1
    made.forget()
    made.resolve(source("id"))
    assert len(asked) == 2


def test_rows_of_missing_target_tables_can_be_skipped() -> None:
    told: list[tuple[TableName, TableName]] = []
    here = TableName("x", "emp")
    chosen = Mapper(
        (MapRule("hr.*", "x.*"),),
        lambda name: target(name, "id") if name == here else None,
        missing=lambda *names: told.append(names),
    )
    assert chosen.resolve(source("id")) is not None
    assert chosen.resolve(source("id", name="hr.other")) is None
    assert told == [(TableName("hr", "other"), TableName("x", "other"))]
    with pytest.raises(ApplyError, match="does not exist"):
        Mapper((MapRule("hr.*", "x.*"),), lambda _: None).resolve(source("id"))
