"""The row clauses of TABLE and MAP: FILTER, WHERE, COLMAP, COLS, TOKENS, SQLEXEC, and the conversions of operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ggshell.errors import StatementError
from ggshell.language import grammar
from ggshell.language.clauses import Clause, ColumnMap, FilterClause, Query, TokenValues, WhereClause, parse_clause
from ggshell.parameters.lines import Parameter
from ggshell.pipeline.transform.clauses import Clauses, Conversion, ExceptionTarget
from ggshell.pipeline.transform.conflicts import (
    AllResolutions,
    Compared,
    read_compared,
    read_resolution,
    read_resolutions,
)

_CONVERSIONS = {conversion.value: conversion for conversion in Conversion}
_Kind = TypeVar("_Kind", bound=Clause)
_Given = TypeVar("_Given")
_Result = TypeVar("_Result")


def with_clauses(found: Iterable[Parameter], name: str) -> Iterator[tuple[Parameter, Clauses]]:
    """Each statement of a name with its clauses. Raises StatementError.

    INSERTALLRECORDS and similar parameters apply to the statements below them, up to their NO… form.
    """
    conversions: set[Conversion] = set()
    for item in found:
        conversion = _CONVERSIONS.get(item.name.removeprefix("NO"))
        if conversion is not None:
            (conversions.discard if item.name.startswith("NO") else conversions.add)(conversion)
        elif item.name == name:
            yield item, clauses_of(item, frozenset(conversions))


def clauses_of(item: Parameter, conversions: frozenset[Conversion]) -> Clauses:
    """The clauses of one statement. Raises StatementError."""
    args = item.args
    if "insertallrecords" in args:
        conversions |= {Conversion.ALL_RECORDS}
    place = item.place
    compared = tuple(
        each for body, column in item.bodies("comparecols") for each in _at(item, column, read_compared, body, place)
    )
    resolutions = _resolutions(item, compared)
    wheres, maps = _read(item, "where", WhereClause), _read(item, "colmap", ColumnMap)
    tokens = _read(item, "tokens", TokenValues)
    return Clauses(
        filters=_read(item, "filter", FilterClause),
        where=wheres[0] if wheres else None,
        column_map=maps[0] if maps else None,
        tokens=tokens[0] if tokens else None,
        columns=_names(args["cols"]) if "cols" in args else None,
        without=_names(args.get("colsexcept", ())),
        queries=_read(item, "sqlexec", Query),
        conversions=conversions,
        exceptions="exceptionsonly" in args,
        exception_target=_exception_target(item),
        compared=compared,
        resolutions=resolutions,
        source=item.text,
        place=place,
    )


def _exception_target(item: Parameter) -> ExceptionTarget | None:
    """MAPEXCEPTION, which contains the clauses of a MAP. Raises StatementError."""
    body = item.args.get("mapexception")
    if body is None:
        return None
    text = f"MAP {item.args['source_table']}, {body.strip()[1:-1]}"
    return _at(item, item.column("mapexception"), _inner_map, text, item)


def _inner_map(text: str, item: Parameter) -> ExceptionTarget:
    parsed = grammar.parse(text, grammar.PARAMETERS)
    inner = Parameter("MAP", parsed.args, item.line, text, "", item.raw, parsed.spans)
    return ExceptionTarget(parsed.args["target"], clauses_of(inner, frozenset()))


def _resolutions(item: Parameter, compared: tuple[Compared, ...]) -> AllResolutions:
    """Every RESOLVECONFLICT of a MAP. Raises StatementError at the clause that is wrong."""
    found = item.bodies("resolveconflict")
    for body, column in found:
        _at(item, column, read_resolution, body, item.place)
    try:
        return read_resolutions([body for body, _ in found], compared, item.place)
    except StatementError as error:
        error.where, error.column = "", item.column("resolveconflict")
        raise


def _at(item: Parameter, column: int, read: Callable[[str, _Given], _Result], body: str, given: _Given) -> _Result:
    """Call a reader that does not track positions. Its errors are placed at a column of the statement."""
    try:
        return read(body, given)
    except StatementError as error:
        error.where, error.column = "", column
        raise


def _read(item: Parameter, name: str, kind: type[_Kind]) -> tuple[_Kind, ...]:
    found: list[_Kind] = []
    begin = 0
    for body, _ in item.bodies(name):
        begin = max(item.text.find(body, begin), 0)
        clause = parse_clause(name, body, begin, item.text)
        if isinstance(clause, kind):
            found.append(clause)
        begin += len(body)
    return tuple(found)


def _names(columns: Iterable[str]) -> tuple[str, ...]:
    return tuple(column.strip('"') for column in columns)
