"""The @functions, as their pages declare them: how many arguments each takes, and which of these are bare keywords."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ggshell.syntax import pages
from ggshell.syntax.expression_tokens import Tokens
from ggshell.syntax.expression_tree import Call, Column, Expression, Literal
from ggshell.syntax.suggest import did_you_mean
from ggshell.syntax.tree import Choice, Many, Node, Option, Sequence, Slot, Symbol, Word, spellings

FUNCTIONS = "functions"


class Arguments(NamedTuple):
    """A group of arguments of a signature: the bare keywords of each (empty: any expression), and how often it stands."""

    keywords: tuple[frozenset[str], ...]
    needed: bool
    repeated: bool


class Signature(NamedTuple):
    """A function's line.  ``parentheses``: whether it has any."""

    text: str
    groups: tuple[Arguments, ...]
    parentheses: bool

    def takes(self, count: int) -> bool:
        """Whether so many arguments can be meant."""
        possible = {0}
        for group in self.groups:
            size = len(group.keywords)
            times = range(1 if group.needed else 0, (count // size if group.repeated else 1) + 1)
            possible = {
                before + size * number for before in possible for number in times if before + size * number <= count
            }
        return count in possible

    def keywords_at(self, number: int, count: int) -> frozenset[str]:
        """The bare keywords that argument ``number`` of ``count`` may be; empty where it is an expression, or may be one."""
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
    if isinstance(node, Choice):
        words = [frozenset(spellings(arm)) if isinstance(arm, Word) else frozenset[str]() for arm in node.arms]
        return [Arguments((frozenset().union(*words) if all(words) else frozenset(),), needed, repeated)]
    if isinstance(node, Sequence):
        inner = [part for item in node.items for part in _arguments(item, needed=True, repeated=False)]
        return [Arguments(tuple(word for part in inner for word in part.keywords), needed, repeated)]
    return []


@cache
def signatures() -> dict[str, str]:
    """Every function's line by its name in upper case without the ``@``."""
    found: dict[str, str] = {}
    for path in pages.index(FUNCTIONS).values():
        for line in pages.read(path).syntax:
            name = line.split("(")[0].split()[0].lstrip("@").upper()
            found.setdefault(name, line)
    return found


@cache
def signature(name: str) -> Signature | None:
    """A function's signature, None when the manual has no such function."""
    line = signatures().get(name)
    if line is None:
        return None
    from ggshell.syntax.notation import compile_line

    items = compile_line(line, name.lower()).body.items[1:]
    groups = [
        part for item in items if not isinstance(item, Symbol) for part in _arguments(item, needed=True, repeated=False)
    ]
    return Signature(line, tuple(groups), any(isinstance(item, Symbol) for item in items))


def check_call(call: Call, tokens: Tokens, *, opened: bool) -> None:
    """Hold a call against its page.  Raises StatementError at the function's name, or at an argument that is no keyword."""
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
        raise tokens.refusal(f"@{call.name} needs parentheses", call.span[1], found.text, page)
    if not found.takes(len(call.arguments)):
        count = len(call.arguments)
        raise tokens.refusal(f"@{call.name} cannot take {count} argument{'s'[: count != 1]}", place, found.text, page)
    for number, argument in enumerate(call.arguments):
        words = found.keywords_at(number, len(call.arguments))
        if words and _bare(argument) not in words:
            hint = did_you_mean(_bare(argument), words)
            text = f"@{call.name} knows {', '.join(sorted(words))} here"
            raise tokens.refusal(text, argument.span[0], hint or found.text, page)


def _bare(argument: Expression) -> str:
    """A keyword among arguments; older files quote it."""
    if isinstance(argument, Column) and not argument.qualifier:
        return argument.name.upper()
    return argument.text.upper() if isinstance(argument, Literal) else ""
