"""The tokens of column expressions, and the refusals that name a place among them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ggshell.errors import StatementError
from ggshell.syntax.expression_tree import Span

CODE = "GGS-00106"
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
