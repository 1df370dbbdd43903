"""Completion by grammar position: words of the grammar, and existing names."""

from __future__ import annotations

import pytest
from cli.shell import Shell, replicat

from ggshell.cli.complete import LiveNames, candidates, statement_before
from ggshell.cli.options import Options
from ggshell.cli.session import Session
from ggshell.home.credential import CredentialStore
from ggshell.language import pages
from ggshell.language.completion import expected, partial_word
from ggshell.language.notation import compile_line


def expected_words(text: str) -> set[str]:
    return {each.word or f"<{each.slot}>" for each in expected(text, len(text))}


@pytest.mark.parametrize(
    ("text", "there", "absent"),
    [
        ("", {"ADD", "INFO", "START"}, {"EXTRACT"}),
        ("INFO ", {"ALL", "EXTRACT", "<group_name>"}, {"STATUS", "INFO"}),
        ("info ext", {"EXTRACT", "EXTTRAIL"}, {"DETAIL"}),
        ("INFO EXTRACT e1, ", {"DETAIL", "SHOWCH"}, {"BEGIN", "<group_name>"}),
        ("INFO EXTRACT e1, SHOWCH ", {"DETAIL"}, {"SHOWCH"}),
        ("ADD EXTRACT e1 BEGIN ", {"NOW", "<when>"}, {"TRANLOG"}),
        ("ALTER EXTRACT e1, BEGIN 2026-01-01 00:00:00, ", {"EXTSEQNO"}, {"BEGIN", "NOW"}),
        ("SEND EXTRACT e1, ", {"STATUS", "FORCESTOP"}, {"DETAIL"}),
        ("ADD EXTTRAIL 'a b', EXTRACT ", {"<group_name>"}, {"MEGABYTES"}),
        ("STOP EXTRACT e1 ", {"!"}, {"e1"}),
        ("INFO EXTRACT e1 nonsense nonsense ", set(), {"DETAIL"}),
        ("NONSENSE ", set(), {"ADD"}),
    ],
)
def test_the_words_expected_at_a_position(text: str, there: set[str], absent: set[str]) -> None:
    found = expected_words(text)
    assert there <= found
    assert not absent & found


@pytest.mark.parametrize("stem", sorted(pages.index("commands")))
def test_each_fixed_word_of_a_line_is_expected_after_those_before_it(stem: str) -> None:
    for text in pages.read(pages.index("commands")[stem]).syntax:
        words = compile_line(text, stem).key.split()
        for number in range(1, len(words)):
            if not any(symbol in text.split()[number] for symbol in "[]{}") and text.split()[number] == words[number]:
                assert words[number] in expected_words(" ".join(words[:number]) + " "), text


def test_the_word_at_the_cursor() -> None:
    assert partial_word("info ext", 8) == "ext"
    assert partial_word("info ext ", 9) == ""
    assert partial_word("info extract", 8) == "ext"


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("info all; sta", "sta"),
        ("info all\nstatus &\n ext", "status    ext"),
        ("watch 5 info ", "info "),
        ("  info", "info"),
    ],
)
def test_the_statement_at_the_end(text: str, statement: str) -> None:
    assert " ".join(statement_before(text).split()) == " ".join(statement.split())


@pytest.fixture
def names(with_groups: Shell) -> LiveNames:
    CredentialStore(with_groups.home).add("north", "u@h:1/d", "x")
    (with_groups.home.root / "setup.oby").write_text("INFO ALL\n")
    return LiveNames(Session(Options(home=str(with_groups.home.root))))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("info extract ", {"ext1", "pmp1", "detail"}),
        ("status replicat ", {"rep1"}),
        ("info p", {"pmp1"}),
        ("INFO EXTRACT ext1, DE", {"DETAIL"}),
        ("dblogin useridalias n", {"north"}),
        ("obey s", {"setup.oby"}),
        ("edit params ", {"ext1", "pmp1", "rep1", "mgr", "GLOBALS"}),
        ("view report re", {"rep1"}),
        ("set format j", {"JSON"}),
        ("help send ex", {"EXTRACT"}),
        ("add exttrail ./dirdat/ea, extract e", {"ext1"}),
        ("add extract e", set()),
        ("add trandata ", set()),
        ("dblogin userid u password ", set()),
        ("help ggs-0050", {"GGS-00502", "GGS-00503"}),
        ("help ", {"OGG-01028", "HOMES"}),
    ],
)
def test_candidates(names: LiveNames, text: str, found: set[str]) -> None:
    texts = {each.text for each in candidates(text, names)}
    assert found <= texts if found else not {text for text in texts if text.lower().startswith("e")}


def test_a_damaged_home_gives_no_names_and_no_error(names: LiveNames, with_groups: Shell) -> None:
    folder = with_groups.home.root / "dirchk"
    folder.rename(folder.with_name("elsewhere"))
    folder.write_text("no folder")
    assert not {each.text for each in candidates("status replicat ", names)}


def candidates_by_text(text: str, names: LiveNames) -> dict[str, str]:
    return {each.text: each.about for each in candidates(text, names)}


def test_candidates_include_sources_functions_and_unsupported_options(shell: Shell) -> None:
    shell.batch("ADD CREDENTIALSTORE; ALTER CREDENTIALSTORE ADD USER u@h:1/d, PASSWORD p, ALIAS north")
    shell.save(replicat("REP1"))
    (shell.home.root / "dirlag").mkdir(exist_ok=True)
    names = LiveNames(Session(Options(home=str(shell.home.root))))
    assert "north" in candidates_by_text("COMPARE ", names)
    assert "north" in candidates_by_text("COMPARE north TO ", names)
    assert {"north", "./dirdat/ea", "./dirlag"} <= set(candidates_by_text("LAG REPORT FROM ", names))
    assert {"@STRCAT", "@STREQ"} <= set(candidates_by_text("HELP @STR", names))
    assert candidates_by_text("HELP ALT", names) == {"ALTER": "page"}
    assert candidates_by_text("HELP PARAMETERS", names) == {"PARAMETERS": "page"}
    found = candidates_by_text("ADD EXTRACT e1, ", names)
    assert (found["TRANLOG"], found["PARAMS"]) == ("", "not supported")
    assert candidates_by_text("SEND EXTRACT e1 GETTCP", names) == {"GETTCPSTATS": "not supported"}
