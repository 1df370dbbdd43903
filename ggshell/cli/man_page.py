"""``ggshell man``: the man page in troff, generated from the usage text and the pages of the manual."""

from __future__ import annotations

from ggshell import __version__
from ggshell.cli.options import USAGE
from ggshell.language import pages
from ggshell.language.help import index_line


def man_page() -> str:
    """The man page ``ggshell(1)``."""
    synopsis, _, options = USAGE.partition("\noptions:\n")
    lines = [
        f'.TH GGSHELL 1 "" "ggshell {__version__}" "ggshell manual"',
        ".SH NAME",
        r"ggshell \- replication with GoldenGate commands",
        ".SH SYNOPSIS",
        *_verbatim(synopsis.removeprefix("usage: ").replace("\n       ", "\n")),
        ".SH OPTIONS",
        *_verbatim("\n".join(line.removeprefix("  ") for line in options.splitlines())),
        ".SH COMMANDS",
        "HELP followed by a command shows its page.",
    ]
    for path in pages.index("commands").values():
        page = pages.read(path)
        lines += [".TP", f".B {_escaped(page.title)}", _escaped(index_line(page))]
    lines += [
        ".SH ENVIRONMENT",
        ".TP\n.B GGSHELL_HOME\nThe home directory, if \\-\\-home is not given.",
        ".TP\n.B NO_COLOR\nAny value turns colors off.",
        ".SH EXIT STATUS",
        "0: success. 1: a statement failed. 2: wrong usage. 3: a syntax error; nothing was run. 130: interrupted by Ctrl-C.",
    ]
    return "\n".join(lines) + "\n"


def _verbatim(text: str) -> list[str]:
    return [".nf", *(_escaped(line) for line in text.rstrip().splitlines()), ".fi"]


def _escaped(text: str) -> str:
    """ASCII text in which troff finds no commands."""
    plain = text.replace("\\", r"\e").replace("-", r"\-").replace("`", "").replace("…", "...")
    plain = "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in plain)
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain
