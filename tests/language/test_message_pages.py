"""The message pages: every code of the source has a page, and the page agrees with the source."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from source_trees import PACKAGE, nodes, sources, text_of_file, tree

from ggshell.cli.manual import help_text, overview
from ggshell.errors import NotFoundError
from ggshell.language import pages
from ggshell.language.help import MESSAGES, find

CODE = re.compile(r"(?:GGS|OGG)-\d{5}")
SEVERITIES = {"ERROR": "error", "WARNING": "warning", "INFO": "information", "NOTE": "note"}


class CodeUse(NamedTuple):
    """One use of a code in the source: its severity, if it can be seen there, and its text."""

    severity: str
    words: str


@cache
def codes() -> frozenset[str]:
    """Every code in the source."""
    return frozenset(code for path in sources("ggshell") for code in CODE.findall(text_of_file(path)))


@cache
def constants() -> Mapping[Path, Mapping[str, str]]:
    """The string constants of every module, including those that it imports from other modules."""
    own: dict[Path, dict[str, str]] = {}
    for path in sources("ggshell"):
        own[path] = {}
        for node in tree(path).body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            value = getattr(node, "value", None)
            if isinstance(target, ast.Name) and value is not None:
                own[path][target.id] = text_of(value, {})
    for path in sources("ggshell"):
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ggshell."):
                module = PACKAGE.parent / f"{str(node.module).replace('.', '/')}.py"
                for name in node.names:
                    if name.name in own.get(module, {}):
                        own[path].setdefault(name.asname or name.name, own[module][name.name])
    return own


def text_of(node: ast.AST, names: Mapping[str, str]) -> str:
    """The literal strings of an expression and of the constants that it names."""
    found = []
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            found.append(each.value)
        elif isinstance(each, ast.Name):
            found.append(names.get(each.id, ""))
    return " ".join(filter(None, found))


def severity_of(call: ast.Call) -> str:
    """The severity that a call names or that its function implies; empty if neither shows it."""
    for each in ast.walk(call):
        word = each.attr if isinstance(each, ast.Attribute) else each.id if isinstance(each, ast.Name) else ""
        if word in SEVERITIES:
            return SEVERITIES[word]
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name.endswith("Error"):
        return "error"
    return {"Note": "warning", "Made": "information"}.get(name, "")


@cache
def code_uses() -> Mapping[str, list[CodeUse]]:
    """The uses of each code, by the innermost call that has it."""
    found: dict[str, list[CodeUse]] = defaultdict(list)
    for path in sources("ggshell"):
        names = constants()[path]
        for call in nodes(path):
            if isinstance(call, ast.Call):
                arguments = [*call.args, *(word.value for word in call.keywords)]
                for argument in arguments:
                    code = text_of(argument, names) if isinstance(argument, ast.Constant | ast.Name) else ""
                    if CODE.fullmatch(code):
                        found[code].append(CodeUse(severity_of(call), text_of(call, names)))
            elif isinstance(call, ast.ClassDef):
                for code in (text_of(node, {}) for node in call.body if isinstance(node, ast.Assign)):
                    if CODE.fullmatch(code):
                        found[code].append(CodeUse("error", ""))
    return found


@cache
def statements() -> tuple[str, ...]:
    """What hints can name: commands of several words, and parameters that are not ordinary words."""
    commands = [pages.read(path).title for path in pages.index("commands").values()]
    names = [pages.read(path).title for path in pages.index("parameters").values()]
    return (*(title for title in commands if " " in title or title in ("DBLOGIN",)), *(n for n in names if len(n) > 6))


def named_in(text: str) -> set[str]:
    return {each for each in statements() if re.search(rf"(?<![A-Z@]){re.escape(each)}(?![A-Z])", text)}


def page_of(code: str) -> pages.Page:
    return pages.read(pages.index(MESSAGES)[code.lower()])


def severities(code: str) -> list[str]:
    return [word.strip() for word in page_of(code).facts["Severity"].split(",")]


def all_pages() -> list[Path]:
    return list(pages.index(MESSAGES).values())


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert {page.stem.upper() for page in all_pages()} == codes()


@pytest.mark.parametrize("path", all_pages(), ids=lambda path: path.stem)
def test_a_page_has_a_sentence_a_severity_a_cause_and_an_action(path: Path) -> None:
    page = pages.read(path)
    assert page.title == path.stem.upper()
    assert page.summary.endswith(".")
    assert list(page.facts) == ["Severity"]
    assert set(severities(page.title)) <= set(SEVERITIES.values())
    headings = re.findall(r"(?m)^## (.+)$", path.read_text())
    assert headings in (["Cause", "Action"], ["Cause", "Action", "See"])
    for name in headings[:2]:
        assert " ".join(pages.section(path, name)).endswith(".")
    for title in ", ".join(pages.section(path, "See")).split(", ") if "See" in headings else ():
        assert title.lower().replace(" ", "_") in [found.stem for found in find(title)]


@pytest.mark.parametrize("code", sorted(codes()))
def test_a_page_has_the_severities_of_the_source(code: str) -> None:
    """An error that a process retries is reported as a warning or as information."""
    found, shown = {each.severity for each in code_uses()[code]}, set(severities(code))
    if "error" in found:
        assert found & {"warning", "information", "note"} <= shown
    elif found and "" not in found:
        assert shown == found
    else:
        assert found - {""} <= shown


@pytest.mark.parametrize("code", sorted(codes()))
def test_a_page_names_the_statements_in_the_hints_of_its_code(code: str) -> None:
    named = set().union(*(named_in(each.words) for each in code_uses()[code]))
    text = " ".join(page_of(code).path.read_text().split())
    assert not named - named_in(text)


@pytest.mark.parametrize("subject", ["GGS-00503", "ggs-00503", "GGS-503", "503", "00503", "GGS-00503: slot is ahead"])
def test_help_shows_the_page_of_a_code(subject: str) -> None:
    text = help_text(subject)
    assert text.startswith("\nGGS-00503\n")
    assert "\nCause\n" in text
    assert "\nAction\n" in text


def test_help_of_a_code_that_does_not_exist_is_refused() -> None:
    with pytest.raises(NotFoundError):
        help_text("GGS-09999")


def test_codes_do_not_hide_pages_found_by_words() -> None:
    assert all(path.parent.name != MESSAGES for word in ("G", "O", "OG", "ADD", "EXTRACT") for path in find(word))


def test_the_index_has_one_line_for_all_messages() -> None:
    lines = [line for line in overview(80).splitlines() if CODE.search(line)]
    assert lines == ["HELP code explains a message: HELP GGS-00503."]
    assert f"HELP CODES ({len(codes())} message codes)" in overview()
