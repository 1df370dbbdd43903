"""Column expressions from text to tree, by binding powers, one token after the other; how deep parentheses may go is bounded.

Single quotes make a literal.  Double quotes make a name with its own case; older files write literals so, in the arguments of
functions above all, which is why ``Column.quoted`` tells: what no column is called may be meant as text.
"""

from __future__ import annotations

import re
from decimal import Decimal

from ggshell.syntax.expression_tokens import Token, Tokens
from ggshell.syntax.expression_tree import Binary, Call, Column, Expression, Literal, Number, Unary
from ggshell.syntax.functions import check_call

DEEPEST = 100
ARITHMETIC = frozenset({"+", "-", "*", "/", "\\"})
COMPARISONS = frozenset({"=", "<>", "<", ">", "<=", ">="})
_POWERS = {"OR": 1, "AND": 2} | dict.fromkeys(COMPARISONS, 4) | {"+": 5, "-": 5, "*": 6, "/": 6, "\\": 6}
_NOT, _SIGN = 3, 7


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
