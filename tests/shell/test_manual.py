"""HELP: pages of every kind, in the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.errors import NotFoundError
from ggshell.shell.manual import help_text, overview
from ggshell.syntax import pages
from ggshell.syntax.help import find


def test_colours_are_in_the_syntax_and_leave_the_text() -> None:
    from ggshell.shell.session import without_colors

    colored = help_text("@date", color=True)
    assert "\x1b[1m\x1b[36m@DATE\x1b[0m" in colored
    assert without_colors(colored) == help_text("@date")


@pytest.mark.parametrize("width", [60, 80, 200])
def test_long_lines_are_broken_between_options_and_nothing_is_lost(width: int) -> None:
    for subject in ("add extract", "send extract", "br", "map"):
        text = help_text(subject, width=width)
        syntax = text.partition("Syntax\n")[2].partition("\n\n")[0]
        assert max(map(len, syntax.splitlines())) <= width
        assert " ".join(text.split()) == " ".join(help_text(subject).split())


def test_all_actions_of_a_command_stand_together() -> None:
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
def test_what_is_found(subject: str, titles: list[str]) -> None:
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


def test_a_subject_without_a_page_names_what_comes_near() -> None:
    with pytest.raises(NotFoundError) as caught:
        help_text("chachemgr")
    assert caught.value.hint == "did you mean CACHEMGR?"


def test_the_overview_fits_the_terminal() -> None:
    assert max(map(len, overview(80).splitlines())) <= 80
    assert all(page.title in overview() for page in map(pages.read, pages.index("commands").values()))


def test_a_noun_finds_the_commands_that_have_it() -> None:
    assert [each.stem for each in find("SPARK")] == ["info_spark", "start_spark", "stop_spark"]


def test_the_overview_has_one_sentence_of_each_page() -> None:
    (line,) = [each for each in overview().splitlines() if each.startswith("  INFO SPARK ")]
    assert line.endswith("the last questions of this session.")


def test_lines_that_only_the_pages_width_broke_are_joined_before_they_are_broken_anew() -> None:
    narrow = help_text("LAG REPORT", width=80)
    assert "LAGARCHIVE\n        of Replicat), a home, or a trail" in narrow
    assert max(map(len, narrow.splitlines())) <= 80
