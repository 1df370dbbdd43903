"""COMPARECOLS and RESOLVECONFLICT against a table's columns: what is refused, with the column's name."""

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
        ("(g, USEDELTA, COLS (price, name)), (DEFAULT, IGNORE)", "OGG-01901", "name cannot hold"),
        ("(g, USEDELTA, COLS (price))", "GGS-00511", "no rule for name, rank, changed"),
        ("(DEFAULT, USEMAX (lasting))", "OGG-01901", "interval"),
    ],
)
def test_a_rule_that_the_table_does_not_allow_is_refused_by_name(text: str, code: str, expected: str) -> None:
    columns = (*TARGET.columns, TargetColumn("lasting", "interval")) if "lasting" in text else TARGET.columns
    conflict, rules = read_resolution(f"(UPDATEROWEXISTS, {text})", "here")
    with pytest.raises(ApplyError, match=expected) as caught:
        column_groups(MAPPING._replace(columns=columns), {conflict: rules})
    assert caught.value.code == code


def test_a_compared_column_that_the_table_lacks_is_refused_by_name() -> None:
    with pytest.raises(ApplyError, match=r"COMPARECOLS .* names column nothing"):
        compared_columns(MAPPING, read_compared("(ON UPDATE KEYINCLUDING (name, nothing))", "here"), "UPDATE", 5)


def test_all_leaves_out_what_colmap_computes_and_naming_it_is_refused() -> None:
    assert compared_columns(MAPPING, read_compared("(ON UPDATE ALL)", "here"), "UPDATE", 4) == {1, 2, 3}
    with pytest.raises(ApplyError, match="changed, which COLMAP computes"):
        compared_columns(MAPPING, read_compared("(ON UPDATE KEYINCLUDING (changed))", "here"), "UPDATE", 4)


def test_a_record_must_hold_the_old_values_that_are_compared() -> None:
    require_befores(MAPPING, frozenset({1, 2}), (0, 1, 2), "UPDATE")
    with pytest.raises(ApplyError, match="name, changed") as caught:
        require_befores(MAPPING, frozenset({1, 2, 4}), (0, 2), "DELETE")
    assert caught.value.code == "OGG-01920"
    assert "ALLCOLS" in caught.value.hint


MISSING = Refusal("no row", missing=True)
OLD = {0: b"1", 1: b"a", 2: b"10", 3: b"1", 4: b"2026-01-01 00:00:00"}


def answered(
    text: str, before: dict[int, bytes | None], after: dict[int, bytes | None], here: object
) -> Refusal | None:
    """Why a conflict of an update cannot be resolved."""
    resolver = Resolver()
    conflict, rules = read_resolution(text, "here")
    resolver.add(MAPPING, {conflict: rules})
    data = join_key_update(encode_image(before.items()), encode_image(after.items()))
    batch = make_batch([Tx(1, [Row(TABLE, IoType.UNIFIED_UPDATE, data)])])
    answer = resolver.answer(batch, 0, MAPPING, MISSING, lambda _, __: here)  # type: ignore[arg-type,return-value]
    assert answer is not None
    assert answer.resolved is (answer.refusal is None)
    return answer.refusal


SUM = "(UPDATEROWEXISTS, (g, USEDELTA, COLS (price)), (DEFAULT, IGNORE))"


@pytest.mark.parametrize(
    ("text", "before", "after", "here", "code"),
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
def test_what_a_record_does_not_hold_is_refused_and_never_guessed(
    text: str, before: dict[int, bytes | None], after: dict[int, bytes | None], here: object, code: str | None
) -> None:
    refusal = answered(text, before, after, here)
    assert (refusal.code if refusal is not None else None) == code
