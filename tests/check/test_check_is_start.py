"""The offline check agrees with START: the loader of the process accepts and refuses the same, with the same messages.

Random files come from the trees of the grammar, with values at and beyond their limits and words in place of values.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

from ggshell.check.cli import check_sources
from ggshell.check.findings import CheckFinding, FindingSeverity
from ggshell.cli.execute import not_supported, parse
from ggshell.errors import GgsError, ParameterError
from ggshell.language import grammar, pages
from ggshell.language.notation import (
    Alternatives,
    Line,
    Many,
    Node,
    Option,
    Series,
    Slot,
    Word,
    compile_line,
    spellings,
)
from ggshell.parameters.loading import load_extract, load_globals, load_manager, load_replicat

LOADERS = {"Extract": load_extract, "Replicat": load_replicat, "Manager": load_manager, "GLOBALS": load_globals}
HEADS = {"Extract": ["EXTRACT e1"], "Replicat": ["REPLICAT r1"], "Manager": [], "GLOBALS": []}
TAILS = {"Extract": ["TABLE s.*;"], "Replicat": ["MAP s.*, TARGET t.*;"], "Manager": [], "GLOBALS": []}
NAMES = {"Extract": "e1.prm", "Replicat": "r1.prm", "Manager": "mgr.prm", "GLOBALS": "GLOBALS"}
FILES, STATEMENTS = 400, 400
WRONG = (
    *("0", "-1", "1", "99999999999999999999", "25:00", "05:30", "1.5GB", "1T", "64MB", "5M", "97H", "20M", "nonsense"),
    *(
        "2026-13-45",
        "2026-11-20 08:00:00",
        "0/15D6A28",
        "shop.orders",
        "orders",
        "a.b.c.d",
        '"',
        "''",
        "FRIDAY",
        "12.2",
    ),
    *("(DEFAULT, FOO)", "(abc, DISCARD)", "(23505, DISCARD)", "(1)", "(a = 1)", "(x = @GETENV ('GGHEADER', 'NOSUCH'))"),
    *(
        "(UPDATEROWEXISTS, (DEFAULT, USEMAX (c)))",
        "(UPDATEROWEXIST, (DEFAULT, OVERWRITE))",
        "(",
        "./dirdat/ea",
        "dirdat",
    ),
)


@cache
def lines_of(kind: str, process: str = "") -> tuple[Line, ...]:
    """The syntax lines of a kind of pages; for parameters, those of one process."""
    stems = {stem: pages.read(path) for stem, path in pages.index(kind).items()}
    wanted = [stem for stem, page in stems.items() if not process or process in page.facts.get("For", "")]
    return tuple(compile_line(text, stem) for stem in wanted for text in stems[stem].syntax)


def sentence(node: Node, chance: random.Random) -> list[str]:
    """The words of a random sentence of a tree; placeholders get random values."""
    if isinstance(node, Word):
        return [chance.choice(spellings(node))]
    if isinstance(node, Slot):
        return [chance.choice(WRONG)]
    if isinstance(node, Alternatives):
        return sentence(chance.choice(node.arms), chance)
    if isinstance(node, Option):
        return sentence(node.item, chance) if chance.random() < 0.3 else []
    if isinstance(node, Many):
        return sentence(node.item, chance)
    if isinstance(node, Series):
        return [word for item in node.items for word in sentence(item, chance)]
    return [node.text]


def random_file(process: str, chance: random.Random) -> str:
    """A random file for a process with a few parameters, some of them without their terminating semicolon."""
    made = [" ".join(sentence(chance.choice(lines_of("parameters", process)).body, chance)) for _ in range(2)]
    ended = [f"{text};" if chance.random() < 0.5 else text for text in made]
    return "\n".join([*HEADS[process], *ended, *TAILS[process], ""])


def errors_of(files: dict[str, str]) -> list[CheckFinding]:
    found = check_sources(files.items()).findings
    return [each for each in found if each.severity is FindingSeverity.ERROR and not each.code.startswith("GGS-012")]


def assert_agreement(text: str, process: str, folder: Path) -> None:
    """Assert that the check of a file agrees with its loader."""
    path = folder / NAMES[process]
    path.write_text(text)
    findings = check_sources([(str(path), text)], process).findings
    errors = [
        each for each in findings if each.severity is FindingSeverity.ERROR and not each.code.startswith("GGS-012")
    ]
    missing = [each for each in findings if each.code == "GGS-00107"]
    try:
        LOADERS[process](path)
    except ParameterError as error:
        reported = {(each.code, each.message) for each in (*errors, *missing)}
        assert (error.code, error.message) in reported, f"{text}\nthe loader: {error.code} {error}\nthe check: {errors}"
    else:
        assert errors == [], f"{text}\nthe loader accepts it"


@pytest.mark.parametrize("process", LOADERS)
def test_the_check_of_a_parameter_file_agrees_with_its_loader(
    process: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rounds = request.config.getoption("--rounds") or FILES // len(LOADERS)
    chance = random.Random(23)
    for _ in range(rounds):
        assert_agreement(random_file(process, chance), process, tmp_path)


def test_the_check_of_a_statement_agrees_with_the_shell(request: pytest.FixtureRequest) -> None:
    rounds = request.config.getoption("--rounds") or STATEMENTS
    chance = random.Random(23)
    for _ in range(rounds):
        text = " ".join(sentence(chance.choice(lines_of("commands")).body, chance))
        errors = errors_of({"x.oby": text})
        try:
            not_supported(parse(text))
        except GgsError as error:
            reported = [(each.code, each.message) for each in errors]
            assert (error.code, error.message) in reported or ";" in text, (
                f"{text}\nthe shell: {error}\nthe check: {errors}"
            )
        else:
            assert errors == [], f"{text}\nthe shell takes it"


EXTRACT = "EXTRACT e1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\n{}\nTABLE s.*;\n"
REPLICAT = "REPLICAT r1\nUSERIDALIAS south\n{}\nMAP s.*, TARGET t.*;\n"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (REPLICAT.format("REPERROR (DEFAULT, FOO)"), "GGS-00101", "FOO is not a valid REPERROR response"),
        (REPLICAT.format("REPERROR (abc, DISCARD)"), "GGS-00101", "abc is not a valid error number"),
        (REPLICAT.format("REPERROR (DEFAULT, EXCEPTION, ABEND)"), "GGS-00101", "is not a valid rule"),
        (
            REPLICAT.format("MAP a.b, TARGET c.d, REPERROR (23505, FOO);"),
            "GGS-00101",
            "FOO is not a valid REPERROR response",
        ),
        (
            REPLICAT.format("MAP a.b, TARGET c.d, RESOLVECONFLICT (UPDATEROWXISTS, (DEFAULT, OVERWRITE));"),
            "GGS-00101",
            "UPDATEROWXISTS",
        ),
        (
            REPLICAT.format("MAP a.b, TARGET c.d, RESOLVECONFLICT (UPDATEROWEXISTS, (DEFAULT, OVERWRIT));"),
            "GGS-00101",
            "OVERWRIT",
        ),
        (REPLICAT.format("MAP a.b, TARGET c.d, THREAD (600);"), "OGG-10143", "thread 600"),
        (
            REPLICAT.format("MAP a.b, TARGET c.d, COLMAP (x = @GETENV ('GGHEADER', 'NOSUCH'));"),
            "GGS-00106",
            "'NOSUCH'",
        ),
        (
            REPLICAT.format("MAP a.b, TARGET c.d, MAPEXCEPTION (TARGET x.y, COLMAP (z = @GETENV ('NONE')));"),
            "GGS-00106",
            "'NONE'",
        ),
        (EXTRACT.format("TABLE a.b, TOKENS (x = @GETENV ('GGHEADER', 'NOSUCH'));"), "GGS-00106", "'NOSUCH'"),
        (REPLICAT.format("REPORT AT 25:00"), "GGS-00101", "25:00 is not a valid time of day"),
        (REPLICAT.format("DISCARDROLLOVER AT 99:99"), "GGS-00101", "99:99 is not a valid time of day"),
        (EXTRACT.format("CACHEMGR CACHESIZE 1.5GB"), "GGS-00101", "1.5GB is not a valid size"),
        (EXTRACT.format("CACHEMGR CACHESIZE 1T"), "GGS-00101", "1T is not a valid size"),
        (EXTRACT.format("EXTTRAIL ./dirdat/abc"), "GGS-00002", "two characters"),
        (EXTRACT.format("EXTTRAIL ./dirdat/eb, FORMAT RELEASE 9.9"), "OGG-10143", "FORMAT RELEASE 9.9"),
        (EXTRACT.format("TABLE orders;"), "OGG-10143", "orders is not a valid table name"),
        (
            EXTRACT.format("SEQUENCE s.q;")[:-1].replace("TABLE s.*;", "TABLE s.*"),
            "OGG-10143",
            "TABLE must end with a semicolon",
        ),
        ("EXTRACT e1\nEXTTRAIL ./dirdat/ea\n", "OGG-10143", "a TABLE line is required"),
        (REPLICAT.format("SQLEXEC 'select 1'"), "GGS-00103", "SQLEXEC is not supported"),
    ],
)
def test_the_check_refuses_what_a_process_refuses(text: str, code: str, said: str, tmp_path: Path) -> None:
    process = "Extract" if text.startswith("EXTRACT") else "Replicat"
    found = errors_of({NAMES[process]: text})
    assert [(each.code, said in each.message) for each in found] == [(code, True)]
    assert_agreement(text, process, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        EXTRACT.format("CACHEMGR CACHESIZE 256MB, CACHEDIRECTORY /tmp/spill 2GB"),
        REPLICAT.format("DISCARDFILE ./dirrpt/r1.dsc, MAXBYTES 1000000"),
        REPLICAT.format("BATCHSQL BATCHERRORMODE, BYPASSPKCHECK"),
        EXTRACT.format("EXTTRAIL ./dirdat/eb, OBJECTDEFS"),
        EXTRACT.format("USERIDALIAS north, SYSDBA"),
    ],
)
def test_a_file_with_notes_of_the_check_can_be_started(text: str, tmp_path: Path) -> None:
    process = "Extract" if text.startswith("EXTRACT") else "Replicat"
    found = check_sources([(NAMES[process], text)]).findings
    assert {each.severity for each in found} == {FindingSeverity.NOTE}
    assert_agreement(text, process, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "ADD EXTRACT e1, TRANLOG, BEGIN 2026-13-45",
        "ADD HEARTBEATTABLE, FREQUENCY -5",
        "ADD HEARTBEATTABLE, FREQUENCY 0.05",
        "ADD EXTRACT e1, TRANLOG, EXTTRAILSOURCE ./dirdat/ea",
        "ADD EXTRACT e1, BEGIN NOW",
        "SEND EXTRACT e1 BR BRINTERVAL 5M",
        "SEND e1 BR BRINTERVAL 97H",
        "ADD EXTTRAIL ./dirdat/abc, EXTRACT e1",
        "ADD EXTRACT 1e, TRANLOG",
        "START REPLICAT r1, ATCSN 5:x",
        "LAG HEARTBEAT, SLO 101 WITHIN 5",
    ],
)
def test_the_check_refuses_an_unsupported_statement(text: str) -> None:
    assert len(errors_of({"x.oby": text})) == 1


@pytest.mark.parametrize("stem", sorted(pages.index(grammar.PARAMETERS)))
def test_the_fact_changes_has_one_of_two_values(stem: str) -> None:
    assert pages.read(pages.index(grammar.PARAMETERS)[stem]).facts.get("Changes", "rows") in ("rows", "no rows")
