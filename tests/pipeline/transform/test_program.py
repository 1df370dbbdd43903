"""The program of a statement gives the same rows whether they are processed one by one or together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline.transform.expressions import COLUMNS, Given, batch_of

from ggshell.clock import FakeClock
from ggshell.language.clauses import ColumnMap, parse_clause
from ggshell.pipeline.transform.clauses import Clauses
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.images import cut
from ggshell.pipeline.transform.program import Program
from ggshell.pipeline.transform.projection import projected
from ggshell.pipeline.transform.rows import Rows
from ggshell.record.change import ChangeBatch
from ggshell.record.operation import IoType

pytestmark = pytest.mark.slow

COLMAP = "(USEDEFAULTS, twice = @COMPUTE (id * 2), name = @STRUP (name), again = code)"
texts = st.one_of(st.none(), st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40))
long = st.just("x" * 70_000)


def program(columns: tuple[str, ...] | None) -> Program:
    found = parse_clause("colmap", COLMAP)
    assert isinstance(found, ColumnMap)
    batch = batch_of([{"id": "1"}])
    clauses = Clauses(column_map=found if columns is None else None, columns=columns, source=COLMAP)
    return projected(batch.tables[0], batch.tables[0].name, clauses, Environment(FakeClock()))


def images(made: Program, batch: ChangeBatch, numbers: list[int]) -> list[bytes]:
    outcome = made.run(Rows(batch, np.array(numbers, dtype=np.int64)))
    return [batch.data(row) for row in numbers] if outcome.data is None else cut(outcome.data)


@given(
    rows=st.lists(st.tuples(st.integers(0, 9), texts, st.one_of(texts, long)), min_size=20, max_size=40),
    columns=st.one_of(
        st.none(), st.permutations(list(COLUMNS)).map(lambda each: tuple(dict.fromkeys(["id", *each[:3]])))
    ),
    io_type=st.sampled_from([IoType.INSERT, IoType.FIELD_COMP, IoType.DELETE]),
)
def test_many_rows_give_the_same_results_as_single_rows(
    rows: list[tuple[int, str | None, str | None]], columns: tuple[str, ...] | None, io_type: IoType
) -> None:
    given_rows: list[Given] = [{"id": str(number), "name": name, "code": code} for number, name, code in rows]
    batch, made = batch_of(given_rows, io_type), program(columns)
    together = images(made, batch, list(range(len(batch))))
    assert together == [image for row in range(len(batch)) for image in images(made, batch, [row])]
