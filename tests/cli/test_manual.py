"""HELP: pages of every kind, in the terminal."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ggshell.cli.commands.shell import show_help
from ggshell.cli.manual import help_text, overview
from ggshell.cli.options import Options
from ggshell.cli.session import Session
from ggshell.errors import NotFoundError
from ggshell.language import pages
from ggshell.language.help import find


def test_colors_in_the_syntax_do_not_change_the_text() -> None:
    from ggshell.cli.session import without_colors

    colored = help_text("@date", color=True)
    assert "\x1b[1m\x1b[36m@DATE\x1b[0m" in colored
    assert without_colors(colored) == help_text("@date")


@pytest.mark.parametrize("width", [60, 80, 200])
def test_long_lines_are_wrapped_between_options_without_loss(width: int) -> None:
    for subject in ("add extract", "send extract", "br", "map"):
        text = help_text(subject, width=width)
        syntax = text.partition("Syntax\n")[2].partition("\n\n")[0]
        assert max(map(len, syntax.splitlines())) <= width
        assert " ".join(text.split()) == " ".join(help_text(subject).split())


def test_all_actions_of_a_command_are_listed_together() -> None:
    text = help_text("send extract")
    assert all(f"group_name {action}" in text for action in ("STATUS", "FORCESTOP", "SHOWTRANS"))


@pytest.mark.parametrize(
    ("subject", "titles"),
    [
        ("ADD EXTRACT", ["ADD EXTRACT"]),
        ("add extract ext1, tranlog", ["ADD EXTRACT"]),
        ("info;", ["INFO ALL", "INFO EXTRACT"]),
        ("cachemgr", ["CACHEMGR"]),
    ],
)
def test_subjects_with_a_page(subject: str, titles: list[str]) -> None:
    lines = help_text(subject).splitlines()
    assert all(title in lines for title in titles)


def test_functions_and_topics_have_pages_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"functions": "date", "topics": "trail", "commands": "date"}
    indexes: dict[str, dict[str, Path]] = {}
    for kind, stem in files.items():
        path = tmp_path / f"{kind}.md"
        path.write_text(f"# {kind}\n{stem}\n")
        indexes[kind] = {stem: path}
    monkeypatch.setattr(pages, "index", lambda kind: indexes.get(kind, {}))
    assert help_text("@date") == "\nfunctions\ndate\n"
    assert help_text("date") == "\ncommands\ndate\n\nfunctions\ndate\n"
    assert help_text("trail") == "\ntopics\ntrail\n"


def test_a_subject_without_a_page_suggests_similar_ones() -> None:
    with pytest.raises(NotFoundError) as caught:
        help_text("chachemgr")
    assert caught.value.hint == "did you mean CACHEMGR?"


def test_the_overview_fits_the_terminal() -> None:
    assert max(map(len, overview(80).splitlines())) <= 80
    assert all(page.title in overview() for page in map(pages.read, pages.index("commands").values()))


def test_the_overview_marks_commands_that_are_not_supported_with_the_reason() -> None:
    listed = overview()
    assert "\n  ADD PROFILE                 Not supported: " in listed
    supported, _, refused = listed.partition("\nCommands that this version does not support:\n")
    assert "Not supported: " not in supported
    assert "\n  ADD PROFILE " in refused
    whole = [page for page in map(pages.read, pages.index("commands").values()) if "Not supported" in page.facts]
    assert listed.count("Not supported: ") == len([page for page in whole if "Carried out" not in page.facts])
    topics = ", ".join(sorted(path.stem.upper() for path in pages.index("topics").values()))
    assert " ".join(f"Topics: {topics}".split())[:60] in " ".join(listed.split())


def test_a_noun_lists_the_commands_that_contain_it() -> None:
    assert [each.stem for each in find("SPARK")] == ["info_spark", "start_spark", "stop_spark"]


def test_the_overview_has_one_sentence_of_each_page() -> None:
    (line,) = [each for each in overview().splitlines() if each.startswith("  INFO SPARK ")]
    assert line.endswith("the last queries of this session.")


def test_wrapped_lines_of_a_page_are_joined_before_they_are_wrapped_again() -> None:
    narrow = help_text("LAG REPORT", width=80)
    assert "(dirlag of a home,\n        LAGARCHIVE of Replicat), a home, or a trail" in narrow
    assert max(map(len, narrow.splitlines())) <= 80


@pytest.mark.parametrize("subject", ["ADD FOO", "A", "ADD EXTRAKT"])
def test_help_of_an_unknown_page_is_a_hint_and_a_short_list(subject: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        help_text(subject)
    assert "ADD EXTRACT" in caught.value.hint
    assert len(str(caught.value)) < 400


def test_mgr_finds_the_page_of_manager_and_facts_are_shown_in_full() -> None:
    """Regression: HELP STOP MGR found no page, and the fact "Carried out" kept the dash of its file."""
    for verb in ("START", "STOP", "INFO"):
        assert help_text(f"{verb} MGR") == help_text(f"{verb} MANAGER")
    assert "\n  Carried out: CHECKPOINTRETENTIONTIME" in help_text("TRANLOGOPTIONS")


def test_steps_are_indented_when_wrapped_and_their_statements_are_not_wrapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "topic.md"
    first = "1. " + "word " * 25 + "end of the file's line"
    second = (
        "2. Run `ALTER REPLICAT rep1, EXTSEQNO 0` now:\n       START REPLICAT rep1, AFTERCSN 00000000/0195F8A8, DRYRUN"
    )
    page.write_text(
        f"# topic\nA topic.\n\n## Steps\n{first}\n   continues.\n{second}\n   A new line.\n- A note: short\n"
    )
    monkeypatch.setattr(pages, "index", lambda kind: {"topic": page} if kind == "topics" else {})
    lines = help_text("topic", width=40).partition("Steps\n")[2].splitlines()
    assert lines[:2] == ["1. word word word word word word word", "   word word word word word word word"]
    assert lines[4] == "   line continues."
    assert lines[5:] == [
        "2. Run ALTER REPLICAT rep1, EXTSEQNO 0",
        "   now:",
        "       START REPLICAT rep1, AFTERCSN 00000000/0195F8A8, DRYRUN",
        "   A new line.",
        "- A note: short",
    ]


def test_help_has_colors_only_in_the_format_of_a_terminal(tmp_path: Path) -> None:
    """Regression: SET FORMAT json at a terminal put escape sequences into the JSON."""
    for name, colored in (("ggsci", True), ("json", False), ("markdown", False)):
        session = Session(Options(home=str(tmp_path), format=name))
        session.interactive = True
        assert ("\x1b[" in show_help(session, rest="BR").text) is colored


@pytest.mark.parametrize(
    ("subject", "kind", "line"),
    [
        ("parameters", "parameters", "  TABLE "),
        ("FUNCTIONS;", "functions", "  @DATE                       Converts dates"),
        ("LOGDUMP", "logdump", "  OPEN                        Opens a trail file"),
        ("CODES", "messages", "  GGS-00306                   The parameter file of a group does not exist."),
        ("MESSAGES", "messages", "  OGG-00987 "),
        ("TOPICS", "topics", "  LAG "),
    ],
)
def test_help_lists_the_pages_of_a_kind(subject: str, kind: str, line: str) -> None:
    lines = help_text(subject).splitlines()
    assert any(each.startswith(line) for each in lines)
    heading = 3 * any("that this version does not support:" in each for each in lines)
    assert len(lines) == len(pages.index(kind)) + 3 + heading
    assert max(map(len, help_text(subject, width=80).splitlines())) <= 80


def test_the_lines_of_a_description_are_wrapped_again() -> None:
    for subject in ("ADD USER", "CONNECT", "ALTER REPLICAT"):
        lines = help_text(subject, width=120).partition("Options\n")[2].partition("\n\n")[0].splitlines()
        pairs = itertools.pairwise(lines)
        short = [line for line, after in pairs if after[:8].isspace() and line[:8].isspace() and len(line) < 90]
        assert not short, subject


def test_the_list_of_parameters_marks_those_that_are_not_supported() -> None:
    assert "Not supported: " in next(
        line for line in help_text("PARAMETERS").splitlines() if "FUNCTIONSTACKSIZE" in line
    )


def test_a_page_of_logdump_is_shown_after_its_name() -> None:
    assert help_text("LOGDUMP OPEN") == help_text("logdump open ./dirdat/ea000000000")
    assert "\nOPEN\nOpens a trail file" in help_text("LOGDUMP OPEN")
