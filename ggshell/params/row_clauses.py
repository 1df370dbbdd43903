"""FILTER, WHERE, COLMAP, COLS, TOKENS, SQLEXEC, what changes operations: what each TABLE or MAP statement says of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from ggshell.columns.clauses import Clauses, Conversion, ExceptionTarget
from ggshell.columns.conflicts import read_compared, read_resolution
from ggshell.params.lines import Parameter
from ggshell.syntax import grammar
from ggshell.syntax.clauses import Clause, ColumnMap, Filter, Query, TokenValues, Where, parse_clause

_CONVERSIONS = {conversion.value: conversion for conversion in Conversion}
_Kind = TypeVar("_Kind", bound=Clause)


def with_clauses(found: Iterable[Parameter], name: str, path: Path) -> Iterator[tuple[Parameter, Clauses]]:
    """Each statement of a name with its clauses; INSERTALLRECORDS and its like count for those below them, until their NO…

    Raises StatementError.
    """
    conversions: set[Conversion] = set()
    for item in found:
        conversion = _CONVERSIONS.get(item.name.removeprefix("NO"))
        if conversion is not None:
            (conversions.discard if item.name.startswith("NO") else conversions.add)(conversion)
        elif item.name == name:
            yield item, clauses_of(item, frozenset(conversions), path)


def clauses_of(item: Parameter, conversions: frozenset[Conversion], path: Path) -> Clauses:
    """One statement's clauses.  Raises StatementError."""
    args = item.args
    if "insertallrecords" in args:
        conversions |= {Conversion.ALL_RECORDS}
    place = f"{path}:{item.line}"
    resolutions = tuple(read_resolution(body, place) for body in _bodies(args.get("resolveconflict", ())))
    wheres, maps = _read(item, "where", Where), _read(item, "colmap", ColumnMap)
    tokens = _read(item, "tokens", TokenValues)
    return Clauses(
        filters=_read(item, "filter", Filter),
        where=wheres[0] if wheres else None,
        column_map=maps[0] if maps else None,
        tokens=tokens[0] if tokens else None,
        columns=_names(args["cols"]) if "cols" in args else None,
        without=_names(args.get("colsexcept", ())),
        queries=_read(item, "sqlexec", Query),
        conversions=conversions,
        exceptions="exceptionsonly" in args,
        exception_target=_exception_target(item, path),
        compared=read_compared(args["comparecols"], place) if "comparecols" in args else (),
        resolutions=resolutions,
        source=item.text,
        place=place,
    )


def _exception_target(item: Parameter, path: Path) -> ExceptionTarget | None:
    """MAPEXCEPTION, which holds the clauses of a MAP.  Raises StatementError."""
    body = item.args.get("mapexception")
    if body is None:
        return None
    text = f"MAP {item.args['source_table']}, {body.strip()[1:-1]}"
    parsed = grammar.parse(text, grammar.PARAMETERS)
    inner = Parameter("MAP", parsed.args, item.line, text)
    return ExceptionTarget(parsed.args["target"], clauses_of(inner, frozenset(), path))


def _read(item: Parameter, name: str, kind: type[_Kind]) -> tuple[_Kind, ...]:
    given = item.args.get(name, ())
    found: list[_Kind] = []
    begin = 0
    for body in _bodies(given):
        begin = max(item.text.find(body, begin), 0)
        clause = parse_clause(name, body, begin, item.text)
        if isinstance(clause, kind):
            found.append(clause)
        begin += len(body)
    return tuple(found)


def _bodies(given: str | Iterable[str]) -> Iterable[str]:
    return (given,) if isinstance(given, str) else given


def _names(columns: Iterable[str]) -> tuple[str, ...]:
    return tuple(column.strip('"') for column in columns)
