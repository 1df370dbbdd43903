"""Macros: definitions MACRO #name PARAMS (#a, #b) BEGIN … END; and calls #name (x, y), which are replaced by the body.

Names begin with ``#`` (or the character that MACROCHAR sets) and ignore case. Within quotes they are plain text. Each part
of a body keeps its own position in the file, and each value keeps the position of the call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ggshell.errors import ParameterError
from ggshell.language.suggest import did_you_mean
from ggshell.parameters.source_lines import Traced, join, wrong

DEEPEST = 32
_MOST_CALLS = 20_000
_MOST_LETTERS = 1_000_000
_NAME = re.compile(r"MACRO\s+(\S+?)(?=\s|\(|$)\s*", re.IGNORECASE)
_PARAMS = re.compile(r"PARAMS?\s*\(([^)]*)\)\s*", re.IGNORECASE)
_BEGIN = re.compile(r"BEGIN\b[ \t]*;?", re.IGNORECASE)
_END = re.compile(r"\bEND\s*;\s*$", re.IGNORECASE)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_OPENERS, _CLOSERS = "({", ")}"


class Macro(NamedTuple):
    """A macro: its parameters with their ``#``, in lower case, and the lines of its body."""

    parameters: tuple[str, ...]
    body: tuple[Traced, ...]


def expand_macros(lines: list[Traced], errors: list[ParameterError]) -> list[Traced]:
    """Remove definitions and replace calls by bodies. Errors are added to ``errors``."""
    expander = Expander(errors)
    found: list[Traced] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        word = line.text.split(None, 1)[0].upper()
        if word == "MACROCHAR":
            expander.character = line.text.split(None, 1)[1][:1] if " " in line.text else expander.character
        elif word == "MACRO":
            parts = [line]
            while number < len(lines) and not _END.search(parts[-1].text):
                parts.append(lines[number])
                number += 1
            expander.define(join(parts, "\n"))
        elif expander.calls(line.text):
            # The value list of a call can span several lines.
            parts, depth = [line], _depth(line.text)
            while number < len(lines) and depth > 0 and not parts[-1].text.endswith(";"):
                depth += _depth(lines[number].text)
                parts.append(lines[number])
                number += 1
            found += expander.outermost(join(parts))
        else:
            found.append(line)
    return found


class Expander:
    """The macros defined so far."""

    def __init__(self, errors: list[ParameterError]) -> None:
        self.character = "#"
        self._macros: dict[str, Macro] = {}
        self._errors = errors
        self._calls = self._letters = 0
        self._spent = False

    def define(self, text: Traced) -> None:
        """Add a definition, from MACRO to END."""
        name = _NAME.match(text.text)
        params = _PARAMS.match(text.text, name.end()) if name else None
        begin = _BEGIN.match(text.text, params.end() if params else name.end()) if name else None
        end = _END.search(text.text)
        if name is None or begin is None or end is None or not name[1].startswith(self.character):
            hint = f"write MACRO {self.character}name PARAMS ({self.character}a) BEGIN … END;"
            self._errors.append(wrong(text.lines()[0], "the macro definition is not valid", hint))
            return
        listed = params[1].split(",") if params else []
        body = text[begin.end() : max(begin.end(), end.start())]
        lines = tuple(part for part in (line.stripped() for line in body.lines()) if part)
        self._macros[name[1].lower()] = Macro(tuple(part.strip().lower() for part in listed if part.strip()), lines)

    def calls(self, text: str) -> list[tuple[int, str]]:
        """Positions and names (in lower case) of possible macro calls outside quotes."""
        if self.character not in text:
            return []
        hidden = _QUOTED.sub(lambda match: " " * len(match[0]), text)
        pattern = rf"(?<![\w{re.escape(self.character)}]){re.escape(self.character)}[A-Za-z_][\w$-]*"
        return [(match.start(), match[0].lower()) for match in re.finditer(pattern, hidden)]

    def outermost(self, line: Traced) -> list[Traced]:
        """A line of the file with its calls replaced, as lines."""
        self._calls = self._letters = 0
        self._spent = False
        return self.expanded(line, 0)

    def expanded(self, line: Traced, depth: int) -> list[Traced]:
        """A text with its calls replaced, as lines. A call that cannot be expanded is reported as an error and left out."""
        found: list[Traced] = []
        open_line: list[Traced] = []
        begin = 0
        for place, name in self.calls(line.text):
            if place < begin:
                continue  # within the values of the previous call
            body, after = self._called(line, place, name, depth)
            open_line.append(line[begin:place])
            begin = after
            for number, part in enumerate(body):
                if number:
                    found.append(join(open_line, ""))
                    open_line = []
                open_line.append(part)
        found.append(join([*open_line, line[begin:]], "") if open_line else line)
        return [each for each in found if each.text.strip()]

    def _called(self, line: Traced, place: int, name: str, depth: int) -> tuple[list[Traced], int]:
        """The expanded body for one call, with its values, and the position after the call."""
        macro = self._macros.get(name)
        values, after = _values(line, place + len(name))
        self._calls += 1
        if macro is None:
            hint = (
                did_you_mean(name, set(self._macros))
                or f"define it with MACRO {name} BEGIN … END; before its first use"
            )
            self._errors.append(wrong(line, f"macro {name} is not defined", hint, place))
            return [], after
        if self._spent:
            return [], after
        if depth >= DEEPEST or self._calls > _MOST_CALLS or self._letters > _MOST_LETTERS:
            self._spent = True  # one error is enough: there could be millions
            self._errors.append(wrong(line, f"macro {name} calls itself, or its expansion is too large", "", place))
            return [], after
        if len(values) != len(macro.parameters):
            count = len(macro.parameters)
            text = f"macro {name} takes {count} value{'s' * (count != 1)}, not {len(values)}"
            hint = f"pass {', '.join(macro.parameters)}" if count else "call it without values"
            self._errors.append(wrong(line, text, hint, place))
            return [], after
        bound = dict(zip(macro.parameters, values, strict=True))
        at = line.at(place)
        through = at.macro or f"{name}, called at {at}"
        parts = [self._substituted(part.through(through), bound) for part in macro.body]
        self._letters += sum(len(part.text) for part in parts)
        return [done for part in parts for done in self.expanded(part, depth + 1)], after

    def _substituted(self, text: Traced, bound: Mapping[str, Traced]) -> Traced:
        parts, begin = [], 0
        for place, name in self.calls(text.text):
            if name in bound:
                parts += [text[begin:place], bound[name]]
                begin = place + len(name)
        return join([*parts, text[begin:]], "") if parts else text


def _depth(text: str) -> int:
    hidden = _QUOTED.sub("", text)
    return sum(hidden.count(letter) for letter in _OPENERS) - sum(hidden.count(letter) for letter in _CLOSERS)


def _values(line: Traced, place: int) -> tuple[list[Traced], int]:
    """The values in parentheses after a macro's name, and the position after them."""
    text = line.text
    match = re.compile(r"\s*\(").match(text, place)
    if match is None:
        return [], place
    values, first, depth, quote = list[Traced](), match.end(), 0, ""
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
            values.append(_value(line[first:at]))
            first = at + 1
            if letter == ")":
                return ([] if len(values) == 1 and not values[0] else values), first
    return values, len(text)


def _value(text: Traced) -> Traced:
    """A value; ``{a, b}`` is a list, passed on without its braces."""
    text = text.stripped()
    braces = text.text.startswith("{") and text.text.endswith("}") and len(text.text) > 1
    return text[1:-1].stripped() if braces else text
