"""Row clauses of TABLE and MAP, read from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.errors import GgsError, StatementError
from ggshell.parameters.loading import load_extract, load_replicat
from ggshell.pipeline.transform.clauses import Conversion
from ggshell.pipeline.transform.conflicts import (
    Compared,
    ComparedExtent,
    Conflict,
    Method,
    Resolution,
    read_compared,
    read_resolution,
)


def replicat(folder: Path, text: str) -> Path:
    path = folder / "rep1.prm"
    path.write_text(f"REPLICAT rep1\nUSERIDALIAS south\n{text}\n")
    return path


def test_operations_are_converted_for_the_lines_that_follow(tmp_path: Path) -> None:
    found = load_replicat(
        replicat(
            tmp_path,
            "MAP a.b, TARGET c.b;\nINSERTDELETES\nUPDATEINSERTS\nMAP a.c, TARGET c.c;\nNOINSERTDELETES\n"
            "MAP a.d, TARGET c.d, INSERTALLRECORDS;",
        )
    )
    assert [each.clauses.conversions for each in found.maps] == [
        frozenset(),
        {Conversion.INSERT_DELETES, Conversion.UPDATE_INSERTS},
        {Conversion.UPDATE_INSERTS, Conversion.ALL_RECORDS},
    ]
    assert not found.maps[0].clauses.active


def test_every_clause_keeps_its_position_in_the_statement(tmp_path: Path) -> None:
    text = "MAP a.b, TARGET c.b, FILTER (x > 1), FILTER (ON DELETE, x > 1), WHERE (y = 2), COLMAP (USEDEFAULTS, z = x);"
    clauses = load_replicat(replicat(tmp_path, text)).maps[0].clauses
    first, second = clauses.filters
    assert clauses.source[slice(*first.span)] == "(x > 1)"
    assert clauses.source[slice(*second.span)] == "(ON DELETE, x > 1)"
    assert (second.on, clauses.place) == (("DELETE",), f"{tmp_path}/rep1.prm:3:1")


def test_mapexception_accepts_the_clauses_of_a_map(tmp_path: Path) -> None:
    text = "MAP a.*, TARGET c.*, MAPEXCEPTION (TARGET c.exc, INSERTALLRECORDS, COLMAP (id = id));"
    clauses = load_replicat(replicat(tmp_path, text)).maps[0].clauses
    assert clauses.exception_target is not None
    assert clauses.exception_target.target == "c.exc"
    assert clauses.exception_target.clauses.conversions == {Conversion.ALL_RECORDS}
    assert clauses.exception_target.clauses.column_map is not None


def test_a_table_line_has_columns_and_a_name(tmp_path: Path) -> None:
    path = tmp_path / "ext1.prm"
    path.write_text('EXTRACT ext1\nEXTTRAIL ./dirdat/ea\nTABLE a.b, TARGET a.c, COLS (id, "Name");\n')
    found = load_extract(path).tables[0]
    assert (found.target, found.clauses.columns) == ("a.c", ("id", "Name"))


def test_comparecols() -> None:
    assert read_compared('(ON UPDATE KEYINCLUDING (a, "B"), ON DELETE ALL)', "here") == (
        Compared("UPDATE", ComparedExtent.INCLUDING, ("a", "B")),
        Compared("DELETE", ComparedExtent.ALL),
    )


def test_resolveconflict() -> None:
    text = "(UpdateRowExists, (money, usedelta, cols (salary, balance)), (default, usemax (changed)))"
    assert read_resolution(text, "here") == (
        Conflict.UPDATE_EXISTS,
        (Resolution(Method.DELTA, "", ("salary", "balance")), Resolution(Method.MAX, "changed")),
    )


@pytest.mark.parametrize(
    "text",
    [
        "(NOTHING, (DEFAULT, IGNORE))",
        "(DELETEROWMISSING)",
        "(DELETEROWMISSING, (DEFAULT, NOTHING))",
        "(UPDATEROWEXISTS, (DEFAULT, USEMAX))",
        "(UPDATEROWEXISTS, (DEFAULT, OVERWRITE (a)))",
        "(UPDATEROWEXISTS, (money, USEDELTA))",
        "(UPDATEROWEXISTS, (DEFAULT, USEDELTA, COLS (a)))",
        "(INSERTROWEXISTS, (money, USEDELTA, COLS (a)), (DEFAULT, IGNORE))",
        "(UPDATEROWMISSING, (DEFAULT, USEMAX (a)))",
        "(UPDATEROWMISSING, (g, IGNORE, COLS (a)))",
        "(DELETEROWEXISTS, (DEFAULT, USEMAX (a)))",
        "(DELETEROWMISSING, (DEFAULT, OVERWRITE))",
        "(UPDATEROWEXISTS, (g, IGNORE, COLS (a, A)), (DEFAULT, IGNORE))",
        "(UPDATEROWEXISTS, (DEFAULT, IGNORE), (DEFAULT, OVERWRITE))",
    ],
)
def test_an_invalid_resolution_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(StatementError):
        read_resolution(text, "here")
    with pytest.raises(GgsError) as caught:
        load_replicat(replicat(tmp_path, f"MAP a.b, TARGET c.b, RESOLVECONFLICT {text};"))
    assert "rep1.prm:3" in caught.value.where


@pytest.mark.parametrize("text", ["(ON INSERT ALL)", "(ON UPDATE ALL (a))", "(ON UPDATE KEYINCLUDING)"])
def test_an_invalid_comparison_is_refused(text: str) -> None:
    with pytest.raises(StatementError, match="COMPARECOLS"):
        read_compared(text, "here")


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("RESOLVECONFLICT (UPDATEROWEXISTS, (DEFAULT, OVERWRITE))", "never applies"),
        ("COMPARECOLS (ON UPDATE KEY), RESOLVECONFLICT (UPDATEROWEXISTS, (DEFAULT, OVERWRITE))", "never applies"),
        ("COMPARECOLS (ON UPDATE ALL), RESOLVECONFLICT (DELETEROWEXISTS, (DEFAULT, IGNORE))", "never applies"),
        (
            "RESOLVECONFLICT (DELETEROWMISSING, (DEFAULT, IGNORE)), RESOLVECONFLICT (DELETEROWMISSING, (DEFAULT, DISCARD))",
            "twice",
        ),
    ],
)
def test_a_rule_that_could_never_apply_is_refused(tmp_path: Path, clauses: str, expected: str) -> None:
    with pytest.raises(StatementError, match=expected) as caught:
        load_replicat(replicat(tmp_path, f"MAP a.b, TARGET c.b, {clauses};"))
    assert "rep1.prm:3" in caught.value.where


def test_a_delete_that_overwrites_needs_no_comparison(tmp_path: Path) -> None:
    clauses = "COMPARECOLS (ON UPDATE ALL), RESOLVECONFLICT (DELETEROWEXISTS, (DEFAULT, OVERWRITE))"
    found = load_replicat(replicat(tmp_path, f"MAP a.b, TARGET c.b, {clauses};"))
    assert found.maps[0].clauses.resolutions[0][0] is Conflict.DELETE_EXISTS
