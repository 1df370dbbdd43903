"""COMPARECOLS and RESOLVECONFLICT checked against the columns of a table: errors name the column."""

from __future__ import annotations

import pytest
from batches import Row, Tx, make_batch
from pipeline.apply.two_sites import TABLE, TARGET

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.column_groups import column_groups, compared_columns, require_befores
from ggshell.pipeline.apply.conflicts import Resolver
from ggshell.pipeline.apply.target import Refusal, TableMapping, TargetColumn
from ggshell.pipeline.transform.conflicts import read_compared, read_resolution
from ggshell.record.image import encode_image, join_key_update
from ggshell.record.operation import IoType

MAPPING = TableMapping(TABLE, TARGET, TARGET.columns, (0,), True)


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("(DEFAULT, USEMAX (nothing))", "OGG-00201", "nothing"),
        ("(g, OVERWRITE, COLS (nothing)), (DEFAULT, IGNORE)", "OGG-00201", "nothing"),
        ("(g, USEDELTA, COLS (price, name)), (DEFAULT, IGNORE)", "OGG-01901", "not name"),
        ("(g, USEDELTA, COLS (price))", "GGS-00511", "no rule for name, rank, changed"),
        ("(DEFAULT, USEMAX (lasting))", "OGG-01901", "interval"),
    ],
)
def test_a_rule_that_the_table_does_not_allow_is_refused_with_the_column_name(
    text: str, code: str, expected: str
) -> None:
    columns = (*TARGET.columns, TargetColumn("lasting", "interval")) if "lasting" in text else TARGET.columns
    conflict, rules = read_resolution(f"(UPDATEROWEXISTS, {text})", "here")
    with pytest.raises(ApplyError, match=expected) as caught:
        column_groups(MAPPING._replace(columns=columns), {conflict: rules})
    assert caught.value.code == code


def test_a_compared_column_that_the_table_does_not_have_is_refused_by_name() -> None:
    with pytest.raises(ApplyError, match=r"COMPARECOLS .* names column nothing"):
        compared_columns(MAPPING, read_compared("(ON UPDATE KEYINCLUDING (name, nothing))", "here"), "UPDATE", 5)


def test_on_update_all_excludes_computed_columns_and_naming_one_is_refused() -> None:
    assert compared_columns(MAPPING, read_compared("(ON UPDATE ALL)", "here"), "UPDATE", 4) == {1, 2, 3}
    with pytest.raises(ApplyError, match="changed, which COLMAP computes"):
        compared_columns(MAPPING, read_compared("(ON UPDATE KEYINCLUDING (changed))", "here"), "UPDATE", 4)


def test_a_record_without_the_old_values_to_compare_is_refused() -> None:
    require_befores(MAPPING, frozenset({1, 2}), (0, 1, 2), "UPDATE")
    with pytest.raises(ApplyError, match="name, changed") as caught:
        require_befores(MAPPING, frozenset({1, 2, 4}), (0, 2), "DELETE")
    assert caught.value.code == "OGG-01920"
    assert "ALLCOLS" in caught.value.hint


MISSING = Refusal("no row", missing=True)
OLD = {0: b"1", 1: b"a", 2: b"10", 3: b"1", 4: b"2026-01-01 00:00:00"}


def refusal_of(
    text: str, before: dict[int, bytes | None], after: dict[int, bytes | None], current: object
) -> Refusal | None:
    """Why a conflict of an update cannot be resolved."""
    resolver = Resolver()
    conflict, rules = read_resolution(text, "here")
    resolver.add(MAPPING, {conflict: rules})
    data = join_key_update(encode_image(before.items()), encode_image(after.items()))
    batch = make_batch([Tx(1, [Row(TABLE, IoType.UNIFIED_UPDATE, data)])])
    answer = resolver.answer(batch, 0, MAPPING, MISSING, lambda _, __: current)  # type: ignore[arg-type,return-value]
    assert answer is not None
    assert answer.resolved is (answer.refusal is None)
    return answer.refusal


SUM = "(UPDATEROWEXISTS, (g, USEDELTA, COLS (price)), (DEFAULT, IGNORE))"


@pytest.mark.parametrize(
    ("text", "before", "after", "current", "code"),
    [
        (SUM, OLD, {0: b"1", 2: b"11"}, {**OLD, 2: b"5"}, None),
        (SUM, OLD, {0: b"1", 2: None}, {**OLD, 2: b"5"}, "OGG-01907"),
        (SUM, OLD, {0: b"1", 2: b"11"}, {**OLD, 2: None}, "OGG-01907"),
        (SUM, OLD, {0: b"1", 2: b"NaN"}, {**OLD, 2: b"5"}, "OGG-01907"),
        (SUM, {0: b"1"}, {0: b"1", 2: b"11"}, {**OLD, 2: b"5"}, "OGG-01922"),
        ("(UPDATEROWEXISTS, (DEFAULT, OVERWRITE))", {0: b"1"}, {0: b"1", 2: b"11"}, OLD, "OGG-01922"),
        ("(UPDATEROWEXISTS, (DEFAULT, USEMAX (rank)))", {0: b"1"}, {0: b"1", 2: b"11"}, OLD, "OGG-01922"),
        ("(UPDATEROWMISSING, (DEFAULT, OVERWRITE))", {0: b"1"}, {0: b"1", 2: b"11"}, None, "OGG-01922"),
        ("(UPDATEROWMISSING, (DEFAULT, OVERWRITE))", OLD, {0: b"1", 2: b"11"}, None, None),
    ],
)
def test_values_that_a_record_does_not_contain_are_refused_and_never_guessed(
    text: str, before: dict[int, bytes | None], after: dict[int, bytes | None], current: object, code: str | None
) -> None:
    refusal = refusal_of(text, before, after, current)
    assert (refusal.code if refusal is not None else None) == code
