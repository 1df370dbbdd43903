"""Macros: MACRO #name PARAMS (#a, #b) BEGIN … END; and the calls #name (x, y), which are replaced by their bodies.

Names begin with ``#`` (or what MACROCHAR says), in any case, and are text within quotes.  What stands in a body counts as
standing where it is called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ggshell.errors import ParameterError
from ggshell.params.source import SourceLine
from ggshell.syntax.suggest import did_you_mean

DEEPEST = 32
_DEFINITION = re.compile(
    r"MACRO\s+(?P<name>\S+?)\s*(?:PARAMS\s*\((?P<params>[^)]*)\)\s*)?\bBEGIN\b(?P<body>.*)\bEND\s*;\s*",
    re.IGNORECASE | re.DOTALL,
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_OPENERS, _CLOSERS = "({", ")}"


class Macro(NamedTuple):
    """A macro: its parameters with their ``#``, in lower case, and its body's lines."""

    parameters: tuple[str, ...]
    body: tuple[str, ...]


def expand_macros(lines: list[SourceLine], errors: list[ParameterError]) -> list[SourceLine]:
    """Take the definitions out and put bodies in place of calls; what is wrong goes into ``errors``."""
    character = "#"
    macros: dict[str, Macro] = {}
    found: list[SourceLine] = []
    rest = list(lines)
    while rest:
        line = rest.pop(0)
        word = line.text.split(None, 1)[0].upper()
        if word == "MACROCHAR":
            character = line.text.split(None, 1)[1][:1] if " " in line.text else character
        elif word == "MACRO":
            while rest and not re.search(r"(?i)\bEND\s*;\s*$", line.text):
                line = line._replace(text=f"{line.text}\n{rest.pop(0).text}")
            _define(line, character, macros, errors)
        else:
            # A call's list of values may go on over lines.
            while (
                rest and _calls(line.text, character) and _depth(line.text) > 0 and not line.text.rstrip().endswith(";")
            ):
                line = line._replace(text=f"{line.text} {rest.pop(0).text}")
            found += [line._replace(text=text) for text in _expanded(line, line.text, character, macros, errors, 0)]
    return found


def _define(line: SourceLine, character: str, macros: dict[str, Macro], errors: list[ParameterError]) -> None:
    match = _DEFINITION.fullmatch(line.text)
    if match is None or not match["name"].startswith(character):
        hint = f"MACRO {character}name PARAMS ({character}a) BEGIN … END;"
        errors.append(_error(line, "this is no macro", hint))
        return
    parameters = tuple(part.strip().lower() for part in (match["params"] or "").split(",") if part.strip())
    body = tuple(part.strip() for part in match["body"].splitlines() if part.strip())
    macros[match["name"].lower()] = Macro(parameters, body)


def _calls(text: str, character: str) -> list[tuple[int, str]]:
    """Places and names (in lower case) of what looks like a macro outside quotes."""
    hidden = _QUOTED.sub(lambda match: " " * len(match[0]), text)
    pattern = rf"(?<![\w{re.escape(character)}]){re.escape(character)}[A-Za-z_][\w$-]*"
    return [(match.start(), match[0].lower()) for match in re.finditer(pattern, hidden)]


def _depth(text: str) -> int:
    hidden = _QUOTED.sub("", text)
    return sum(hidden.count(letter) for letter in _OPENERS) - sum(hidden.count(letter) for letter in _CLOSERS)


def _expanded(
    line: SourceLine, text: str, character: str, macros: Mapping[str, Macro], errors: list[ParameterError], depth: int
) -> list[str]:
    """A text with its calls replaced, as lines."""
    calls = _calls(text, character)
    if not calls:
        return [text]
    place, name = calls[0]
    macro = macros.get(name)
    if macro is None or depth >= DEEPEST:
        what = f"macro {name} calls itself" if macro is not None else f"macro {name} is not defined"
        hint = did_you_mean(name, set(macros)) or f"MACRO {name} BEGIN … END; before its first use"
        errors.append(_error(line, what, hint, place + 1))
        return []
    values, after = _values(text, place + len(name))
    if len(values) != len(macro.parameters):
        wanted = ", ".join(macro.parameters) or "none"
        errors.append(
            _error(line, f"macro {name} takes {len(macro.parameters)} values, not {len(values)}", wanted, place + 1)
        )
        return []
    bound = dict(zip(macro.parameters, values, strict=True))
    body = [_substituted(part, character, bound) for part in macro.body] or [""]
    body[0] = text[:place] + body[0]
    body[-1] += text[after:]
    return [
        done for part in body for done in _expanded(line, part, character, macros, errors, depth + 1) if done.strip()
    ]


def _values(text: str, place: int) -> tuple[list[str], int]:
    """The values in parentheses behind a macro's name, and the place behind them."""
    match = re.compile(r"\s*\(").match(text, place)
    if match is None:
        return [], place
    values, first, depth, quote = list[str](), match.end(), 0, ""
    for at in range(match.end(), len(text)):
        letter = text[at]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in _OPENERS:
            depth += 1
        elif letter in _CLOSERS and depth:
            depth -= 1
        elif letter == ")" or (letter == "," and not depth):
            values.append(_value(text[first:at]))
            first = at + 1
            if letter == ")":
                return [value for value in values if value] if values == [""] else values, first
    return values, len(text)


def _value(text: str) -> str:
    """A value; ``{a, b}`` is a list, handed on without its braces."""
    text = text.strip()
    return text[1:-1].strip() if text.startswith("{") and text.endswith("}") else text


def _substituted(text: str, character: str, bound: Mapping[str, str]) -> str:
    for place, name in reversed(_calls(text, character)):
        if name in bound:
            text = text[:place] + bound[name] + text[place + len(name) :]
    return text


def _error(line: SourceLine, message: str, hint: str = "", column: int = 1) -> ParameterError:
    where = f"{line.where}:{column}"
    return ParameterError(message, where=where, hint=hint, line=line.line, column=column, source=line.text)
