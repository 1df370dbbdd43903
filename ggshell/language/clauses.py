"""The clauses of TABLE and MAP that contain expressions: FILTER, WHERE, COLMAP, TOKENS and SQLEXEC, as frozen records.

A clause is read from its body, including the parentheses. Positions are relative to the statement, so that every error is
reported at the right column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ggshell.language.expressions import (
    ARITHMETIC,
    EXPRESSION_CODE,
    Binary,
    Call,
    ColumnReference,
    Expression,
    Literal,
    Number,
    Token,
    TokenReader,
    Unary,
    column,
    expression,
    literal,
)

if TYPE_CHECKING:
    from ggshell.language.parser import LineParser
    from ggshell.language.statement import Span

OPERATIONS = ("INSERT", "UPDATE", "DELETE")
_TESTS = frozenset({"PRESENT", "ABSENT", "NULL"})
_SQLEXEC = (
    "SQLEXEC [, SPNAME procedure] [, ID logical_name] [, QUERY sql] [, {PARAMS body | NOPARAMS}]"
    " [, {AFTERFILTER | BEFOREFILTER}] [, {ON {INSERT | UPDATE | DELETE}} [, ...]] [, ALLPARAMS {OPTIONAL | REQUIRED}]"
    " [, ERROR {IGNORE | REPORT | RAISE | FINAL | FATAL}] [, EXEC {MAP | ONCE | TRANSACTION | SOURCEROW}]"
    " [, MAXVARCHARLEN number] [, PARAMBUFSIZE number] [, TRACE {ALL | ERROR}]"
)


@dataclass(frozen=True, slots=True)
class FilterClause:
    """FILTER: the operations it applies to (all if none is named) and ignores, the RAISEERROR number, and the condition."""

    on: tuple[str, ...]
    ignore: tuple[str, ...]
    error: int | None
    condition: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class WhereClause:
    """WHERE: a condition without arithmetic."""

    condition: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignment ``name = source``."""

    name: str
    quoted: bool
    source: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class ColumnMap:
    """COLMAP: the explicit assignments, and whether the other columns are mapped by name (USEDEFAULTS)."""

    use_defaults: bool
    assignments: tuple[Assignment, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class TokenValues:
    """TOKENS: token names, in their original case, with their values."""

    assignments: tuple[Assignment, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Query:
    """SQLEXEC within TABLE or MAP: a procedure or query with its parameters.

    ``options``: all other options, by name in lower case.
    """

    name: str
    procedure: str
    query: str
    parameters: tuple[Assignment, ...]
    options: Mapping[str, Any]
    span: Span


Clause = FilterClause | WhereClause | ColumnMap | TokenValues | Query


def parse_clause(name: str, body: str, offset: int = 0, source: str = "") -> Clause:
    """Read a clause by its keyword (any case). Raises StatementError with the column."""
    return _READERS[name.lower()](body, offset, source or body)


def check_clauses(args: Mapping[str, Any], spans: Mapping[str, tuple[Span, ...]], text: str) -> None:
    """Read every clause of a parsed TABLE or MAP, or of a standalone clause.

    Raises StatementError for the first invalid one.
    """
    for name in _READERS:
        bodies = args.get(name, ())
        for body, span in zip((bodies,) if isinstance(bodies, str) else bodies, spans.get(name, ()), strict=False):
            if isinstance(body, str) and body.startswith("("):
                parse_clause(name, body, text.find("(", span[0]), text)


def _filter(body: str, offset: int, source: str) -> FilterClause:
    tokens = _opened(body, offset, source)
    on: list[str] = []
    ignore: list[str] = []
    error: int | None = None
    while True:
        word, following = tokens.now, tokens.following
        if word.is_word("ON", "IGNORE") and following.kind == "name":
            tokens.take()
            (on if word.is_word("ON") else ignore).append(_operation(tokens))
        elif word.is_word("RAISEERROR") and following.kind in ("number", "operator"):
            tokens.take()
            negative = tokens.takes("-")
            error = int(_number(tokens)) * (-1 if negative else 1)
        else:
            break
        while tokens.takes(","):
            continue
    return FilterClause(tuple(on), tuple(ignore), error, _to_the_end(tokens), (offset, offset + len(body)))


def _operation(tokens: TokenReader) -> str:
    if not tokens.now.is_word(*OPERATIONS):
        raise tokens.unexpected(f"expected {', '.join(OPERATIONS)}")
    return tokens.take().text.upper()


def _number(tokens: TokenReader) -> int:
    if tokens.now.kind != "number" or not re.fullmatch(r"[0-9]{1,20}", tokens.now.text):
        raise tokens.unexpected("expected a number")
    return int(tokens.take().text)


def _opened(body: str, offset: int, source: str) -> TokenReader:
    tokens = TokenReader(body, offset, source)
    tokens.needs("(")
    return tokens


def _to_the_end(tokens: TokenReader) -> Expression:
    found = expression(tokens)
    tokens.needs(")")
    return found


def _where(body: str, offset: int, source: str) -> WhereClause:
    tokens = _opened(body, offset, source)
    found = _to_the_end(tokens)
    _plain(found, tokens)
    return WhereClause(found, (offset, offset + len(body)))


def _plain(tree: Expression, tokens: TokenReader) -> None:
    """Check that WHERE does not support arithmetic and no functions except its three tests. Raises StatementError."""
    if isinstance(tree, Binary):
        if tree.operator in ARITHMETIC:
            raise tokens.refusal("WHERE does not support arithmetic", tree.span[0], "use FILTER", "where")
        _plain(tree.left, tokens)
        _plain(tree.right, tokens)
    elif isinstance(tree, Unary) and not isinstance(tree.operand, Number):
        _plain(tree.operand, tokens)
    elif isinstance(tree, Call) and tree.name not in _TESTS:
        raise tokens.refusal(f"WHERE does not support the function @{tree.name}", tree.span[0], "use FILTER", "where")


def _colmap(body: str, offset: int, source: str) -> ColumnMap:
    tokens = _opened(body, offset, source)
    default = tokens.now.is_word("USEDEFAULTS") and tokens.following.text != "="
    if default:
        tokens.take()
        tokens.takes(",")
    found: list[Assignment] = []
    if not default or tokens.now.text != ")":
        found = _assignments(tokens)
    tokens.needs(")")
    return ColumnMap(default, tuple(found), (offset, offset + len(body)))


def _assignments(tokens: TokenReader) -> list[Assignment]:
    found: list[Assignment] = []
    while True:
        target = _target(tokens)
        tokens.needs("=")
        source = expression(tokens)
        found.append(Assignment(target.name, target.quoted, source, (target.span[0], source.span[1])))
        if not tokens.takes(","):
            if tokens.now.kind == "name":
                raise tokens.unexpected("expected a comma before it")
            return found


def _target(tokens: TokenReader) -> ColumnReference:
    if tokens.now.kind != "name":
        raise tokens.unexpected("expected a name")
    return column(tokens.take())


_TOKEN_NAME = re.compile(r"([(,]\s*)([A-Za-z0-9_][\w-]*)(?=\s*=)")


def _tokens(body: str, offset: int, source: str) -> TokenValues:
    # Token names can contain hyphens, which are minus signs elsewhere. They are replaced with underscores while the
    # body is read.
    names = {match.start(2): match[2] for match in _TOKEN_NAME.finditer(_without_quoted(body))}
    letters = list(body)
    for at, name in names.items():
        letters[at : at + len(name)] = re.sub(r"\W|^\d", "_", name)
    plain = "".join(letters)
    tokens = _opened(plain, offset, source)
    found = _assignments(tokens)
    tokens.needs(")")
    named = tuple(
        Assignment(names.get(each.span[0] - offset, each.name), each.quoted, each.source, each.span) for each in found
    )
    return TokenValues(named, (offset, offset + len(body)))


def _without_quoted(text: str) -> str:
    return re.sub(r"'[^']*'|\"[^\"]*\"", lambda match: "x" * len(match[0]), text)


@cache
def _query_parser() -> LineParser:
    from ggshell.language.notation import compile_line
    from ggshell.language.parser import LineParser

    return LineParser(compile_line(_SQLEXEC, "sqlexec"))


def _sqlexec(body: str, offset: int, source: str) -> Query:
    from ggshell.language.grammar import PARAMETERS, Failure, refused
    from ggshell.language.parser import Attempt

    # The keyword stands in for the opening parenthesis, so that positions match those of the body.
    before = "SQLEXEC "
    run = Attempt(before + body[1:-1])
    pairs = _query_parser().parse(run)
    shift = offset + 1 - len(before)
    if pairs is None:
        error = refused(run.text, [Failure(run.far, run.wanted(), run.reasons, "sqlexec")], PARAMETERS)
        error.column, error.source, error.code = error.column + shift, source, EXPRESSION_CODE
        raise error
    args = {pair.name: pair.value for pair in pairs}
    parameters: tuple[Assignment, ...] = ()
    for pair in pairs:
        if pair.name == "params":
            parameters = _parameters(str(pair.value), pair.spans[0][0] + shift, source)
    options = {name: value for name, value in args.items() if name not in ("id", "spname", "query", "params")}
    name = str(args.get("id") or args.get("spname") or "")
    if not args.get("query") and not args.get("spname"):
        raise TokenReader("", offset + 1, source).refusal(
            "SQLEXEC requires SPNAME or QUERY", offset + 1, page="sqlexec"
        )
    if not name:
        raise TokenReader("", offset + 1, source).refusal(
            "SQLEXEC with QUERY requires an ID", offset + 1, page="sqlexec"
        )
    return Query(
        name, str(args.get("spname", "")), str(args.get("query", "")), parameters, options, (offset, offset + len(body))
    )


def _parameters(body: str, offset: int, source: str) -> tuple[Assignment, ...]:
    tokens = _opened(body, offset, source)
    found: list[Assignment] = []
    while True:
        if tokens.now.is_word("OPTIONAL", "REQUIRED") and tokens.following.kind == "name":
            tokens.take()
        target = tokens.now
        if target.kind not in ("name", "number", "string"):
            raise tokens.unexpected("expected a parameter's name")
        tokens.take()
        tokens.needs("=")
        value = expression(tokens)
        found.append(Assignment(_parameter_name(target), False, value, (target.span[0], value.span[1])))
        if not tokens.takes(","):
            tokens.needs(")")
            return tuple(found)


def _parameter_name(token: Token) -> str:
    value: Literal | ColumnReference | None = literal(token) if token.kind == "string" else None
    return value.text if isinstance(value, Literal) else token.text.strip('"')


_READERS: dict[str, Callable[[str, int, str], Clause]] = {
    "filter": _filter,
    "where": _where,
    "colmap": _colmap,
    "tokens": _tokens,
    "sqlexec": _sqlexec,
}
