"""Column expressions of FILTER, WHERE, COLMAP and the arguments of @functions: text to tree, by precedence climbing.

A call is checked against the page of its function. Nesting of parentheses is limited.

Single quotes make a literal. Double quotes make a case-sensitive name, but older files also use them for literals, mostly
in the arguments of functions. ``ColumnReference.quoted`` keeps the difference: a quoted name that is not a column can be a
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ggshell.errors import StatementError
from ggshell.language import pages
from ggshell.language.notation import Alternatives, Many, Node, Option, Series, Slot, Symbol, Word, spellings
from ggshell.language.suggest import did_you_mean

if TYPE_CHECKING:
    from ggshell.language.statement import Span
EXPRESSION_CODE = "GGS-00106"
FUNCTIONS = "functions"
DEEPEST = 100
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
class Literal:
    """A quoted text."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Number:
    """A number, with the precision it was written with."""

    value: Decimal
    span: Span


@dataclass(frozen=True, slots=True)
class ColumnReference:
    """A column, or what is written like one: a bare keyword of a function, or a result ``query.column``.

    ``qualifier`` is the part before the last dot: BEFORE or AFTER in upper case, or the name of a query.
    """

    name: str
    quoted: bool
    qualifier: str
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    """A function call. ``name`` is in upper case, without the ``@``."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Unary:
    """``-``, ``+`` or NOT with one operand."""

    operator: str
    operand: Expression
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """An operator with two operands: arithmetic, comparison, AND, OR."""

    operator: str
    left: Expression
    right: Expression
    span: Span


Expression: TypeAlias = Literal | Number | ColumnReference | Call | Unary | Binary


def columns_of(tree: Expression) -> Iterable[ColumnReference]:
    """Every column of a tree, in order."""
    if isinstance(tree, ColumnReference):
        yield tree
    elif isinstance(tree, Unary):
        yield from columns_of(tree.operand)
    elif isinstance(tree, Binary):
        yield from columns_of(tree.left)
        yield from columns_of(tree.right)
    elif isinstance(tree, Call):
        for each in tree.arguments:
            yield from columns_of(each)


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind (string, name, number, function, operator, mark, end), text and position."""

    kind: str
    text: str
    span: Span

    def is_word(self, *words: str) -> bool:
        return self.kind == "name" and self.text.upper() in words


class TokenReader:
    """The tokens of a text, read one by one. ``offset`` is where the text begins in its statement."""

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
        """Take the current token if it is one of these marks, operators or words. Returns whether it was taken."""
        found = self.now.kind in ("mark", "operator", "name") and self.now.text.upper() in texts
        if found:
            self.take()
        return found

    def needs(self, text: str) -> Token:
        """Take a required mark or operator. Raises StatementError if the current token is a different one."""
        if self.now.text != text or self.now.kind not in ("mark", "operator"):
            raise self.unexpected(f"expected {text}")
        return self.take()

    def unexpected(self, expected: str) -> StatementError:
        found = self.now
        what = f"unexpected {found.text}" if found.kind != "end" else "the expression is incomplete"
        return self.refusal(f"{what}; {expected}", found.span[0])

    def refusal(self, message: str, place: int, hint: str = "", page: str = "") -> StatementError:
        return StatementError(message, code=EXPRESSION_CODE, column=place + 1, source=self.source, hint=hint, page=page)


def _strange(letter: str) -> str:
    if letter in "'\"":
        return "the quote is not closed"
    return f"unexpected {letter}: not valid in an expression"


class Arguments(NamedTuple):
    """A group of arguments in a signature: the bare keywords of each (empty: any expression), and whether it can repeat."""

    keywords: tuple[frozenset[str], ...]
    needed: bool
    repeated: bool


class Signature(NamedTuple):
    """The signature of a function. ``parentheses``: whether it has parentheses."""

    text: str
    groups: tuple[Arguments, ...]
    parentheses: bool

    def takes(self, count: int) -> bool:
        """Whether this number of arguments is possible."""
        possible = {0}
        for group in self.groups:
            size = len(group.keywords)
            times = range(1 if group.needed else 0, (count // size if group.repeated else 1) + 1)
            possible = {
                before + size * number for before in possible for number in times if before + size * number <= count
            }
        return count in possible

    def keywords_at(self, number: int, count: int) -> frozenset[str]:
        """The bare keywords allowed for argument ``number`` of ``count``. Empty if an expression is allowed there."""
        slots: list[frozenset[str]] = []
        for group in self.groups:
            times = max(1, count - len(slots)) if group.repeated else 1
            slots += group.keywords * times
        return slots[number] if number < len(slots) else frozenset()


def _arguments(node: Node, *, needed: bool, repeated: bool) -> list[Arguments]:
    if isinstance(node, Many):
        return _arguments(node.item, needed=needed, repeated=True)
    if isinstance(node, Option):
        return _arguments(node.item, needed=False, repeated=repeated)
    if isinstance(node, Slot):
        return [Arguments((frozenset(),), needed, repeated)]
    if isinstance(node, Word):
        return [Arguments((frozenset(spellings(node)),), needed, repeated)]
    if isinstance(node, Alternatives):
        words = [frozenset(spellings(arm)) if isinstance(arm, Word) else frozenset[str]() for arm in node.arms]
        return [Arguments((frozenset().union(*words) if all(words) else frozenset(),), needed, repeated)]
    if isinstance(node, Series):
        inner = [part for item in node.items for part in _arguments(item, needed=True, repeated=False)]
        return [Arguments(tuple(word for part in inner for word in part.keywords), needed, repeated)]
    return []


@cache
def signatures() -> dict[str, str]:
    """The syntax line of every function, by its name in upper case without the ``@``."""
    found: dict[str, str] = {}
    for path in pages.index(FUNCTIONS).values():
        for line in pages.read(path).syntax:
            name = line.split("(")[0].split()[0].lstrip("@").upper()
            found.setdefault(name, line)
    return found


@cache
def signature(name: str) -> Signature | None:
    """The signature of a function, or None if the manual does not have that function."""
    line = signatures().get(name)
    if line is None:
        return None
    from ggshell.language.notation import compile_line

    items = compile_line(line, name.lower()).body.items[1:]
    groups = [
        part for item in items if not isinstance(item, Symbol) for part in _arguments(item, needed=True, repeated=False)
    ]
    return Signature(line, tuple(groups), any(isinstance(item, Symbol) for item in items))


def check_call(call: Call, tokens: TokenReader, *, opened: bool) -> None:
    """Check a call against its page.

    Raises StatementError at the function's name, or at an argument that is not a valid keyword.
    """
    known = signatures()
    if not known:
        return
    found = signature(call.name)
    place = call.span[0]
    if found is None:
        hint = did_you_mean(call.name, known)
        text = f"unknown function @{call.name}"
        raise tokens.refusal(text, place, hint.replace("mean ", "mean @") or "HELP lists the functions")
    page = call.name.lower()
    if found.parentheses and not opened:
        raise tokens.refusal(f"@{call.name} requires parentheses", call.span[1], found.text, page)
    if not found.takes(len(call.arguments)):
        count = len(call.arguments)
        raise tokens.refusal(f"@{call.name} cannot take {count} argument{'s'[: count != 1]}", place, found.text, page)
    for number, argument in enumerate(call.arguments):
        words = found.keywords_at(number, len(call.arguments))
        if words and _bare(argument) not in words:
            hint = did_you_mean(_bare(argument), words)
            text = f"@{call.name} accepts only {', '.join(sorted(words))} here"
            raise tokens.refusal(text, argument.span[0], hint or found.text, page)


def _bare(argument: Expression) -> str:
    """An argument as a bare keyword in upper case. Older files quote keywords."""
    if isinstance(argument, ColumnReference) and not argument.qualifier:
        return argument.name.upper()
    return argument.text.upper() if isinstance(argument, Literal) else ""


def parse_expression(text: str, offset: int = 0, source: str = "") -> Expression:
    """Read the whole text as one expression. Raises StatementError with the column."""
    tokens = TokenReader(text, offset, source)
    found = expression(tokens)
    if tokens.now.kind != "end":
        raise tokens.unexpected("expected an operator, or the end")
    return found


def expression(tokens: TokenReader, power: int = 0, depth: int = 0) -> Expression:
    """Read the expression at the current token. Stops at an operator that does not bind more tightly than ``power``."""
    left = _operand(tokens, depth)
    while True:
        operator = tokens.now.text.upper() if tokens.now.kind in ("operator", "name") else ""
        own = _POWERS.get(operator, 0)
        if own <= power:
            return left
        tokens.take()
        right = expression(tokens, own, depth + 1)
        left = Binary(operator, left, right, (left.span[0], right.span[1]))


def _operand(tokens: TokenReader, depth: int) -> Expression:
    if depth > DEEPEST:
        raise tokens.refusal(f"parentheses are nested deeper than {DEEPEST}", tokens.now.span[0])
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
    """A literal without its quotes; a doubled quote within it becomes one quote."""
    return Literal(token.text[1:-1].replace("''", "'"), token.span)


def column(token: Token) -> ColumnReference:
    """A column name, with the qualifier before its last dot."""
    parts = re.findall(r"\"[^\"]+\"|[^.\"]+", token.text)
    qualifier = ".".join(part.strip('"') for part in parts[:-1])
    quoted = parts[-1].startswith('"')
    qualifier = qualifier.upper() if qualifier.upper() in ("BEFORE", "AFTER") else qualifier
    return ColumnReference(parts[-1].strip('"'), quoted, qualifier, token.span)


def _call(tokens: TokenReader, depth: int) -> Call:
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
