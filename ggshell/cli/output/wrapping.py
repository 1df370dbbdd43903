"""Breaks long lines of messages between words, where they are shown at a terminal.

A terminal breaks a line wherever its last column is, often in the middle of a word. Here the line is filled with blanks up to
that column instead of being split: to the terminal it is still one line, so a statement in a message can be copied and run.
"""

from __future__ import annotations

import re
from typing import Final, TextIO
from unicodedata import east_asian_width

_LABEL: Final = re.compile(r"(\s*\S+(?: \S+)*\s{2,})\S")
"""A label, padded to the column of its value."""
_INDENT: Final = 2
_LEAST: Final = 20
"""Columns that must remain for the text after its indentation."""


def wrapped(text: str, stream: TextIO) -> str:
    """Return a text as it is shown on a stream: unchanged unless that is a terminal with shorter lines."""
    if not stream.isatty():
        return text
    import shutil

    width, lines = shutil.get_terminal_size().columns, text.split("\n")
    marked = (*(line.strip() == "^" for line in lines[1:]), False)  # the terminal breaks a line and its mark alike
    return "\n".join(
        _line(line, width) if len(line) > width and not mark else line for line, mark in zip(lines, marked, strict=True)
    )


def _line(line: str, width: int) -> str:
    """Fill up a line that is longer than the terminal before each word that would not fit."""
    if "\x1b" in line or any(east_asian_width(each) in "WF" for each in line):
        return line  # its characters are narrower or wider than one column
    indent = _indentation(line)
    if width - indent < _LEAST:
        return line
    words: list[str] = re.findall(r"\s*\S+", line)
    shown, column = words[0], len(words[0])
    for word in words[1:]:
        if column % width and column % width + len(word) > width and len(word.strip()) <= width - indent:
            shown += " " * (width - column % width) + " " * indent + word.lstrip()
        else:
            shown += word
        column = len(shown)
    return shown


def _indentation(line: str) -> int:
    """Return the column in which the text continues: below the value of a label, or a little to the right."""
    label = _LABEL.match(line)
    return len(label[1]) if label is not None else len(line) - len(line.lstrip()) + _INDENT
