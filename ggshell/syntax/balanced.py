"""Parentheses and quotes, in one pass over the text: where a body ends, and its parts at commas."""

from __future__ import annotations

import re

_PART = re.compile(r"[^()'\",;]+|'[^']*'|\"[^\"]*\"|.", re.DOTALL)


def balanced_end(text: str, place: int) -> int:
    """Where the parentheses that open at a place close, quotes protecting; -1 when none open there, or they never close."""
    if text[place : place + 1] != "(":
        return -1
    depth = 0
    for part in _PART.finditer(text, place):
        if part[0] == "(":
            depth += 1
        elif part[0] == ")":
            depth -= 1
            if not depth:
                return part.end()
    return -1


def unclosed(text: str, place: int) -> str:
    """Why what opens at a place is no body: a quote or the parentheses themselves never close; empty when nothing opens."""
    if text[place : place + 1] != "(":
        return ""
    for part in _PART.finditer(text, place):
        if part[0] in "'\"":
            return "a quote in the parentheses is never closed"
    return "the parenthesis is never closed"


def split_list(text: str) -> list[str]:
    """The parts of a list at its commas, stripped; commas within quotes and parentheses do not count."""
    parts, depth, first = [], 0, 0
    for part in _PART.finditer(text):
        if part[0] == "(":
            depth += 1
        elif part[0] == ")":
            depth -= 1
        elif part[0] == "," and depth <= 0:
            parts.append(text[first : part.start()].strip())
            first = part.end()
    return [*parts, text[first:].strip()]
