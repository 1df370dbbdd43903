"""Statements as in real scripts are parsed; invalid ones are refused at the right column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from amounts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ggshell.errors import StatementError
from ggshell.language import grammar, pages
from ggshell.language.completion import expected
from ggshell.language.grammar import parse
from ggshell.language.notation import compile_line
from ggshell.language.statement import split

EXAMPLES = [
    (kind, stem, example)
    for kind in (grammar.COMMANDS, grammar.PARAMETERS)
    for stem, path in pages.index(kind).items()
    for example in pages.read(path).examples
]


@pytest.mark.parametrize(("kind", "stem", "example"), EXAMPLES)
def test_every_example_of_the_manual_is_parsed_by_its_own_page(kind: str, stem: str, example: str) -> None:
    assert parse(example, kind).page == stem


@pytest.mark.parametrize("path", [path for kind in ("commands", "parameters") for path in pages.index(kind).values()])
def test_every_page_has_a_purpose_syntax_and_examples(path: Any) -> None:
    page = pages.read(path)
    assert page.summary
    assert page.syntax
    assert page.examples
    assert page.facts.get("For")


@pytest.mark.parametrize(
    ("text", "key", "args"),
    [
        ("info all", "INFO ALL", {}),
        ("  INFO   ALL ;", "INFO ALL", {}),
        ("add extract ext1 tranlog begin now", "ADD EXTRACT", {"group_name": "EXT1", "tranlog": True, "begin": "NOW"}),
        (
            "ADD EXTRACT ext1,TRANLOG,,BEGIN NOW;",
            "ADD EXTRACT",
            {"group_name": "EXT1", "tranlog": True, "begin": "NOW"},
        ),
        (
            "add extract e1, begin 2026-11-20 08:00:00, tranlog",
            "ADD EXTRACT",
            {"group_name": "E1", "begin": "2026-11-20 08:00:00", "tranlog": True},
        ),
        ("info ext e1 showch", "INFO EXTRACT", {"group_name": "E1", "showch": True}),
        ("INFO EXTRACT *, DETAIL", "INFO EXTRACT", {"group_name": "*", "detail": True}),
        ("info r99", "INFO", {"group_name": "R99"}),
        ("send c11,SHOWTRANS", "SEND SHOWTRANS", {"group_name": "C11"}),
        ("start ext*", "START", {"group_name": "EXT*"}),
        ("start er *", "START ER", {"group_name": "*"}),
        ("stop mgr !", "STOP MGR", {"force": True}),
        ("dblogin userid ogg@h:1/d,password ogg", "DBLOGIN USERID", {"userid": "ogg@h:1/d", "password": "ogg"}),
        ("DBLOGIN USERIDALIAS north", "DBLOGIN USERIDALIAS", {"alias": "north"}),
        ('add trandata "Shop"."Order Items"', "ADD TRANDATA", {"table": '"Shop"."Order Items"'}),
        ('add trandata "Shop"."6"" nails"', "ADD TRANDATA", {"table": '"Shop"."6"" nails"'}),
        (
            "add exttrail ./dirdat/ea extract ext1 megabytes 50",
            "ADD EXTTRAIL",
            {"trail": "./dirdat/ea", "extract": "EXT1", "megabytes": 50},
        ),
        ("delete checkpointtable a.b !", "DELETE CHECKPOINTTABLE", {"checkpoint_table": "a.b", "force": True}),
        ("view report ext10", "VIEW REPORT", {"report": "EXT10"}),
    ],
)
def test_odd_but_legal_forms(text: str, key: str, args: dict[str, Any]) -> None:
    parsed = parse(text)
    assert (parsed.key, parsed.args) == (key, args)


@pytest.mark.parametrize(
    ("text", "column", "part"),
    [
        ("INFO EXTRACT e1 DETIAL", 17, "did you mean DETAIL?"),
        ("INFO ext1, DETIAL", 12, "did you mean DETAIL?"),
        ("INFO extarct e1, DETAIL", 6, "did you mean EXTRACT?"),
        ("add exttrail ./dirdat/ea, extarct ext1", 27, "did you mean EXTRACT?"),
        ("ADD EXTRACT e1, BEGIN soon", 23, "soon"),
        ("INFO EXTRACT e1, DETAIL, DETAIL", 26, "is given twice"),
        ("ADD EXTTRAIL ./dirdat/ea, EXTRACT e1, MEGABYTES many", 49, "many"),
        ("INOF ALL", 1, "did you mean INFO?"),
        ("STATS EXTRACT e1, REPORTRATE DAY", 30, "DAY"),
        ("SEND EXTRACT e1 STATSU", 17, "did you mean STATUS?"),
        ("ADD REPLICAT r1", 16, "incomplete"),
    ],
)
def test_invalid_statements_are_refused_at_the_right_column(text: str, column: int, part: str) -> None:
    with pytest.raises(StatementError) as raised:
        parse(text)
    assert raised.value.column == column
    assert part in str(raised.value)


@settings(max_examples=examples(400), deadline=1000)
@given(st.one_of(st.text(max_size=60), st.sampled_from([example for _, _, example in EXAMPLES]).flatmap(
    lambda text: st.tuples(st.just(text), st.integers(0, len(text)), st.text(max_size=3)).map(
        lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] + 1 :]
    )
)))  # fmt: skip
def test_any_text_gives_a_statement_or_a_statement_error(text: str) -> None:
    for statement in split(text):
        try:
            parse(statement.text)
        except StatementError as error:
            assert error.column >= 1


def test_a_stray_brace_in_the_notation_is_refused_with_its_position() -> None:
    with pytest.raises(StatementError) as raised:
        compile_line("ADD THING {a | b}} [C]", "page")
    assert raised.value.column == 18


def test_statements_are_split_with_their_positions() -> None:
    text = (
        "INFO ALL -- look\n\n  start ext1; stop ext1\nADD EXTRACT e1, &\n   TRANLOG\nshell ls; date\nadd x 'a;b -- c'"
    )
    assert [(item.text, item.line, item.column) for item in split(text)] == [
        ("INFO ALL", 1, 1),
        ("start ext1", 3, 3),
        ("stop ext1", 3, 15),
        ("ADD EXTRACT e1, TRANLOG", 4, 1),
        ("shell ls; date", 6, 1),
        ("add x 'a;b -- c'", 7, 1),
    ]


@pytest.fixture
def small_manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A manual with the page that its README adds, and with SEND in a hundred syntax lines."""
    readme = (pages.folder() / "README.md").read_text()
    begin = readme.index("    # COUNT REPORTS")
    text = "\n".join(line[4:] for line in readme[begin : readme.index("and one function")].splitlines())
    folder = tmp_path / "commands"
    folder.mkdir()
    (folder / "count_reports.md").write_text(text)
    lines = "".join(f"    SEND EXT[RACT] group_name ACTION{n} [, LEVEL number] [, FILE file]\n" for n in range(100))
    (folder / "send_extract.md").write_text(f"# SEND EXTRACT\nSends.\n\n## Syntax\n{lines}")
    for name in ("commands", "parameters"):
        (tmp_path / name).mkdir(exist_ok=True)
    monkeypatch.setattr(pages, "folder", lambda: tmp_path)
    caches = (pages.index, pages.syntax_lines, pages.second_words, pages.all_syntax_lines)
    caches += (pages._of_page, pages.later_words, pages.leading_vocabulary, grammar._candidates, grammar._complete)
    for cached in caches:
        cached.cache_clear()
    yield tmp_path
    for cached in caches:
        cached.cache_clear()


def test_a_command_is_added_by_its_page_only(small_manual: Path) -> None:
    assert parse("count reports, prefix EXT")[:3] == ("COUNT REPORTS", {"prefix": "EXT"}, "count_reports")
    assert [each.word for each in expected("COUNT REPORTS ", 14)] == ["PREFIX"]
    with pytest.raises(StatementError, match="PREFIXX"):
        parse("COUNT REPORTS PREFIXX e")


def test_only_the_needed_one_of_a_hundred_lines_is_compiled(
    small_manual: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    real = pages.compiled

    def counting(line: Any) -> Any:
        compiled.append(line.text)
        return real(line)

    monkeypatch.setattr(pages, "compiled", counting)
    assert parse("send ext e1, action77, level 3").key == "SEND EXTRACT ACTION77"
    assert {text.split()[3] for text in compiled} == {"ACTION77"}
    with pytest.raises(StatementError) as caught:
        parse("SEND EXTRACT e1 ACTION777")
    assert caught.value.column == 17
