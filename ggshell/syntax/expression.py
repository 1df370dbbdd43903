"""Column expressions: what stands in FILTER, WHERE, COLMAP and the arguments of @functions, as a small frozen tree.

Single quotes make a literal.  Double quotes make a name with its own case; older files write literals so, in the arguments of
functions above all, which is why ``Column.quoted`` tells: what no column is called may be meant as text.  A parser by
binding powers, one token after the other; how deep parentheses may go is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from ggshell.errors import StatementError

CODE = "GGS-00106"
DEEPEST = 100
Span = tuple[int, int]
"""Where something begins and ends in the statement, from 0."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A text in quotes."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Number:
    """A number, as exact as it was written."""

    value: Decimal
    span: Span


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or what looks like one: a bare keyword of a function, a result ``query.column``.

    ``qualifier`` is what stands before the last dot: BEFORE and AFTER in upper case, a query's name.
    """

    name: str
    quoted: bool
    qualifier: str
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments; ``name`` in upper case without the ``@``."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Unary:
    """``-``, ``+`` or NOT before something."""

    operator: str
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """Two things and what is done with them: arithmetic, a comparison, AND, OR."""

    operator: str
    left: Expression
    right: Expression
    span: Span


Expression: TypeAlias = Literal | Number | Column | Call | Unary | Binary

ARITHMETIC = frozenset({"+", "-", "*", "/", "\\"})
COMPARISONS = frozenset({"=", "<>", "<", ">", "<=", ">="})
_POWERS = {"OR": 1, "AND": 2} | dict.fromkeys(COMPARISONS, 4) | {"+": 5, "-": 5, "*": 6, "/": 6, "\\": 6}
_NOT, _SIGN = 3, 7
_TOKEN = re.compile(
    r"(?P<string>'(?:[^']|'')*')|(?P<name>(?:\"[^\"]+\"|[^\W\d][\w$#]*)(?:\.(?:\"[^\"]+\"|[\w$#]+))*)"
    r"|(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?![\w.]))|(?P<function>@\w+)|(?P<operator><=|>=|<>|!=|\^=|[-+*/\\=<>])|(?P<mark>[(),])"
    r"|(?P<blank>\s+)|(?P<other>.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of an expression: its kind (string, name, number, function, operator, mark, end), text and place."""

    kind: str
    text: str
    span: Span

    def is_word(self, *words: str) -> bool:
        return self.kind == "name" and self.text.upper() in words


class Tokens:
    """The tokens of a text, one after the other; ``offset`` is where the text begins in its statement."""

    def __init__(self, text: str, offset: int = 0, source: str = "") -> None:
        self.source = source or text
        self._list: list[Token] = []
        for match in _TOKEN.finditer(text):
            kind = str(match.lastgroup)
            span = match.start() + offset, match.end() + offset
            if kind == "other":
                raise self.refusal(_strange(match[0]), span[0])
            if kind != "blank":
                self._list.append(Token(kind, "<>" if match[0] in ("!=", "^=") else match[0], span))
        end = offset + len(text)
        self._list.append(Token("end", "", (end, end)))
        self._place = 0

    @property
    def now(self) -> Token:
        return self._list[self._place]

    @property
    def following(self) -> Token:
        return self._list[min(self._place + 1, len(self._list) - 1)]

    def take(self) -> Token:
        token = self._list[self._place]
        self._place = min(self._place + 1, len(self._list) - 1)
        return token

    def takes(self, *texts: str) -> bool:
        """Take the token when it is one of these marks, operators or words."""
        found = self.now.kind in ("mark", "operator", "name") and self.now.text.upper() in texts
        if found:
            self.take()
        return found

    def needs(self, text: str) -> Token:
        """Take a mark.  Raises StatementError when another thing stands there."""
        if self.now.text != text or self.now.kind not in ("mark", "operator"):
            raise self.unexpected(f"expected {text}")
        return self.take()

    def unexpected(self, expected: str) -> StatementError:
        found = self.now
        what = f"unexpected {found.text}" if found.kind != "end" else "the expression ends too early"
        return self.refusal(f"{what}; {expected}", found.span[0])

    def refusal(self, message: str, place: int, hint: str = "", page: str = "") -> StatementError:
        return StatementError(message, code=CODE, column=place + 1, source=self.source, hint=hint, page=page)


def _strange(letter: str) -> str:
    if letter in "'\"":
        return "the quote is never closed"
    return f"unexpected {letter}: no expression has that"


def parse_expression(text: str, offset: int = 0, source: str = "") -> Expression:
    """A whole text as one expression.  Raises StatementError with the column."""
    tokens = Tokens(text, offset, source)
    found = expression(tokens)
    if tokens.now.kind != "end":
        raise tokens.unexpected("expected an operator, or the end")
    return found


def expression(tokens: Tokens, power: int = 0, depth: int = 0) -> Expression:
    """The expression that begins at the present token; operators that bind less than ``power`` are left."""
    left = _operand(tokens, depth)
    while True:
        operator = tokens.now.text.upper() if tokens.now.kind in ("operator", "name") else ""
        own = _POWERS.get(operator, 0)
        if own <= power:
            return left
        tokens.take()
        right = expression(tokens, own, depth + 1)
        left = Binary(operator, left, right, (left.span[0], right.span[1]))


def _operand(tokens: Tokens, depth: int) -> Expression:
    if depth > DEEPEST:
        raise tokens.refusal(f"parentheses go deeper than {DEEPEST}", tokens.now.span[0])
    token = tokens.now
    if token.is_word("NOT"):
        tokens.take()
        inner = expression(tokens, _NOT, depth + 1)
        return Unary("NOT", inner, (token.span[0], inner.span[1]))
    if token.kind == "operator" and token.text in "+-":
        tokens.take()
        inner = expression(tokens, _SIGN, depth + 1)
        return Unary(token.text, inner, (token.span[0], inner.span[1]))
    if token.text == "(":
        tokens.take()
        inner = expression(tokens, 0, depth + 1)
        tokens.needs(")")
        return inner
    if token.kind == "function":
        return _call(tokens, depth)
    if token.kind == "name" and not token.is_word("AND", "OR"):
        return column(tokens.take())
    if token.kind in ("string", "number"):
        tokens.take()
        return literal(token) if token.kind == "string" else Number(Decimal(token.text), token.span)
    raise tokens.unexpected("expected a column, a number, a text in single quotes or an @function")


def literal(token: Token) -> Literal:
    """A text without its quotes; two quotes in it are one."""
    return Literal(token.text[1:-1].replace("''", "'"), token.span)


def column(token: Token) -> Column:
    """A name, with what stands before its last dot."""
    parts = re.findall(r"\"[^\"]+\"|[^.\"]+", token.text)
    qualifier = ".".join(part.strip('"') for part in parts[:-1])
    quoted = parts[-1].startswith('"')
    qualifier = qualifier.upper() if qualifier.upper() in ("BEFORE", "AFTER") else qualifier
    return Column(parts[-1].strip('"'), quoted, qualifier, token.span)


def _call(tokens: Tokens, depth: int) -> Call:
    from ggshell.syntax.functions import check_call

    name = tokens.take()
    end = name.span[1]
    arguments: list[Expression] = []
    opened = tokens.takes("(")
    if opened and not tokens.takes(")"):
        while True:
            arguments.append(expression(tokens, 0, depth + 1))
            if not tokens.takes(","):
                break
        if tokens.now.text != ")":
            raise tokens.unexpected("expected , or )")
        end = tokens.take().span[1]
    elif opened:
        end = tokens.now.span[0]
    found = Call(name.text[1:].upper(), tuple(arguments), (name.span[0], end))
    check_call(found, tokens, opened=opened)
    return found


def columns_of(tree: Expression) -> Iterable[Column]:
    """Every column of a tree, in order."""
    if isinstance(tree, Column):
        yield tree
    elif isinstance(tree, Unary):
        yield from columns_of(tree.operand)
    elif isinstance(tree, Binary):
        yield from columns_of(tree.left)
        yield from columns_of(tree.right)
    elif isinstance(tree, Call):
        for each in tree.arguments:
            yield from columns_of(each)
