"""The mechanical part of plain technical English, in everything that people read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from source_trees import ROOT, nodes, sources

_WORDS = r"(?:a|an|the|this|that|its|it|them|him|which|what|each|one|another|every|all|these|those)"
REFUSED = {
    "is no <noun>": re.compile(
        r"\b(?<!there )(?<!There )(?:is|are) no (?!longer\b|more than\b|less than\b|fewer than\b|later than\b|one\b)\w+"
    ),
    "anew": re.compile(r"\banew\b", re.IGNORECASE),
    "mend": re.compile(r"\bmend(?:s|ed|ing)?\b", re.IGNORECASE),
    "for ever": re.compile(r"\bfor ever\b", re.IGNORECASE),
    "told": re.compile(r"\btold\b(?!\.)", re.IGNORECASE),
    "behind": re.compile(rf"\bbehind {_WORDS}\b", re.IGNORECASE),
    "come to run": re.compile(r"\bc[oa]me to run\b", re.IGNORECASE),
    "whole story": re.compile(r"\bwhole story\b", re.IGNORECASE),
    "British spelling": re.compile(
        r"\b(?:(?:recogni|initiali|organi|normali|optimi|synchroni)s(?:e|es|ed|ing)|analys(?:e|ed|ing)|cancelled"
        r"|licence|(?:un)?colour\w*|behaviour\w*|neighbour\w*|favour\w*)\b",
        re.IGNORECASE,
    ),
    "ways for paths": re.compile(
        r"\b(?:replication|data) ways?\b|\bways? (?:of|for) (?:the )?replication\b", re.IGNORECASE
    ),
    "nobody": re.compile(r"\b(?:nobody|somebody)\b", re.IGNORECASE),
    "whatever": re.compile(r"\bwhatever\b", re.IGNORECASE),
    "beside": re.compile(r"\bbeside\b", re.IGNORECASE),
    "in place of": re.compile(r"\bin place of\b", re.IGNORECASE),
    "any more": re.compile(
        r"\bany more\b|\b(?:arriv|read|need)\w* (?:it |them )?no more\b(?! \w+ than| than)", re.IGNORECASE
    ),
    "by hand": re.compile(r"\bby hand\b", re.IGNORECASE),
    "stays as it is": re.compile(
        r"\b(?:stays?|left|leaves? it) (?:as (?:it|they) (?:is|are|was|were)|so)\b", re.IGNORECASE
    ),
    "says so": re.compile(r"\bsa(?:y|ys|id) (?:so|who (?:it|he) is)\b|\bproves? who\b", re.IGNORECASE),
    "is gone": re.compile(r"\b(?:is|are|has|have) gone\b", re.IGNORECASE),
    "leads to": re.compile(
        r"\b(?:login|logins|string|path|address|addresses|line|length|link)s? (?:\w+ )?leads? (?:to|out)", re.IGNORECASE
    ),
    "made again": re.compile(r"\b(?:is|are|always|not) made again\b", re.IGNORECASE),
    "exists already": re.compile(r"\bexists? already\b", re.IGNORECASE),
    "idioms": re.compile(
        r"\bover there\b|\bin spite of\b|\bagain and again\b|\b(?:goes past|is past it)\b|\bwhole life\b|\bspeaks GoldenGate\b"
        r"|\bhas no meaning\b|\bwithout use\b|\borderly\b|\bto nowhere\b|\bdearest\b",
        re.IGNORECASE,
    ),
}
"""What a native technical writer would not write, by name."""
ALLOWED = ("lag behind", "ahead of or behind", "time behind the source", "if the table says so")
_CODE = re.compile(r"(`+)[^`]*\1|(?s:\bSELECT\b.*)")
"""Names of the program and SQL are not read as English."""


def _documents() -> Iterator[tuple[str, str]]:
    for folder in ("grammar", "docs"):
        for file in sorted((ROOT / folder).rglob("*.md")):
            yield str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")
    for file in sorted((ROOT / "scripts").rglob("*")):
        if file.is_file() and file.suffix not in (".py", ".pyc"):
            yield str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"):
        yield name, (ROOT / name).read_text(encoding="utf-8")


def _texts_of(file: Path) -> Iterator[tuple[str, str]]:
    """Every string literal of a module with two words or more; the parts of an f-string with a placeholder between them."""
    name = str(file.relative_to(ROOT))
    inside = {id(part) for node in nodes(file) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes(file):
        if isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values]
            yield f"{name}:{node.lineno}", "".join(parts)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and " " in node.value
            and id(node) not in inside
        ):
            yield f"{name}:{node.lineno}", node.value


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """What people read, with its place: documents, help pages, and the texts and docstrings of the program and scripts."""
    files = (*sources("ggshell"), *sources("scripts"))
    found = (*_documents(), *(text for file in files for text in _texts_of(file)))
    return tuple((place, _plain(text)) for place, text in found)


def _plain(text: str) -> str:
    return " ".join(_CODE.sub("X", text).split())


def wrong(name: str, plain: str) -> list[str]:
    """The places of a text with a refused phrase, each with the words around it."""
    found = []
    for match in REFUSED[name].finditer(plain):
        around = plain[max(0, match.start() - 25) : match.end() + 25]
        if not any(phrase in around.lower() for phrase in ALLOWED):
            found.append(around)
    return found


@pytest.mark.parametrize("name", REFUSED)
def test_people_read_plain_english(name: str) -> None:
    assert [f"{place}: {around}" for place, text in texts() for around in wrong(name, text)] == []


def test_one_space_follows_a_sentence_in_docstrings() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {match.group()}"
        for file in sources("ggshell", "scripts", "tests")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for match in re.finditer(r"\w+[.!?]  [A-Z`]\w*", ast.get_docstring(node) or "")
    ]
    assert found == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("is no <noun>", "1.5GB is no size"),
        ("anew", "loaded anew by START"),
        ("mend", "The next start mends it"),
        ("for ever", "waits for ever"),
        ("told", "the user is told"),
        ("behind", "the name behind the keyword"),
        ("come to run", "EXT1 did not come to run"),
        ("whole story", "the whole story is in F"),
        ("ways for paths", "two replication ways"),
        ("British spelling", "a cancelled statement"),
        ("nobody", "a file that nobody reads"),
        ("whatever", "whatever their case"),
        ("beside", "beside the limit"),
        ("in place of", "a statement in place of its rows"),
        ("any more", "a path reads it no more"),
        ("by hand", "changed by hand"),
        ("stays as it is", "otherwise it stays so"),
        ("says so", "the client says so"),
        ("is gone", "when the row is gone"),
        ("leads to", "a login leads to it"),
        ("made again", "is always made again"),
        ("exists already", "the file exists already"),
        ("idioms", "files here and over there"),
    ],
)
def test_the_rule_finds_what_it_refuses(name: str, text: str) -> None:
    assert wrong(name, text) == [text]
    assert wrong("is no <noun>", "there is no trail, and it is no longer read") == []
