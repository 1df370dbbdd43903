"""Statements in README, docs and scripts are valid, and the examples run as written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import psycopg
import pytest
from processes import until
from short_folders import short_folder

from ggshell.check.cli import check_sources
from ggshell.check.findings import FindingSeverity
from ggshell.connectors.lake.replicat import BATCH_BYTES
from ggshell.demo.processes import end_processes
from ggshell.demo.servers import open_servers
from ggshell.language.grammar import COMMANDS, LOGDUMP, parse
from ggshell.language.statement import split

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))
}
README = PAGES["README.md"]


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language in a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def _given() -> Iterator[object]:
    """Every statement of the pages and scripts, with its source."""
    for page, text in PAGES.items():
        scripts = [*re.findall(r'ggshell (?!logdump)[^"\n]*-c "([^"]+)"', text), *blocks(text, "ggsci")]
        scripts += re.findall(r"ggshell [^\n]*- <<'EOP'\n(.*?)^EOP$", text, re.DOTALL | re.MULTILINE)
        for script in scripts:
            for item in split(script):
                yield pytest.param(item.text, COMMANDS, id=f"{page}: {item.text}")
        for script in re.findall(r'ggshell logdump -c "([^"]+)"', text):
            for line in script.splitlines():
                yield pytest.param(line, LOGDUMP, id=f"{page}: {line}")
    for name in ("quickstart.d/source/setup.oby", "quickstart.d/target/setup.oby", "queries.oby"):
        for item in split((ROOT / "scripts" / name).read_text()):
            yield pytest.param(item.text, COMMANDS, id=f"{name}: {item.text}")


@pytest.mark.parametrize(("statement", "kind"), list(_given()))
def test_statements_in_the_pages_are_valid(statement: str, kind: str) -> None:
    assert parse(statement, kind).key


PARAMETER_FILES = [
    pytest.param(text, id=f"{page}: {text.splitlines()[0]}")
    for page, content in PAGES.items()
    for text in blocks(content, "prm")
]


@pytest.mark.parametrize("text", PARAMETER_FILES)
def test_parameter_files_in_the_pages_are_accepted(text: str) -> None:
    found = check_sources([("shown.prm", text)]).findings
    assert [finding for finding in found if finding.severity is FindingSeverity.ERROR] == []


@pytest.mark.parametrize("page", PAGES)
def test_python_in_the_pages_compiles(page: str) -> None:
    for code in blocks(PAGES[page], "python"):
        compile(code, page, "exec")


def test_the_size_of_a_lake_s_batch_is_that_of_the_program() -> None:
    latency = (ROOT / "grammar" / "parameters" / "latency.md").read_text(encoding="utf-8")
    for page in (PAGES["docs/lakes.md"], latency):
        assert f"A batch of {BATCH_BYTES.removesuffix('MB')} MB of the trail" in page


def test_the_two_commands_come_first() -> None:
    assert README.index("git clone") < README.index("scripts/quickstart") < README.index("## Five-minute tour")


def test_the_first_page_is_short() -> None:
    assert README.count("\n") <= 250


def section(title: str) -> str:
    """A section of README, up to the next one."""
    text = README[README.index(f"## {title}") :]
    return text[: text.index("\n## ")]


LAG = re.compile(r'^(?=ggshell -c ".*LAG REPLICAT (\w+);)', re.MULTILINE)
WAIT = r"""timeout 60 bash -c 'until ggshell -c "LAG REPLICAT \1" | grep -q "At EOF"; do :; done'
"""
"""A reader repeats LAG until the Replicat is at the end of the trail, as the pages say."""


def run_blocks(text: str, written: str, home: Path) -> str:
    """What the shell blocks of a text print, in ``home`` instead of the place that is ``written`` there; they must succeed."""
    waited = (LAG.sub(WAIT, block) for block in blocks(text, "sh"))
    script = "\n".join(["set -e", *waited]).replace(written, str(home))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return ran.stdout


@pytest.fixture
def demo_home() -> Iterator[Path]:
    """A home with demo servers; both are removed after the test."""
    folder = short_folder("ggs-tour-")
    yield folder
    end_processes(folder)
    open_servers(folder).remove()
    shutil.rmtree(folder, ignore_errors=True)


def test_the_tour_runs_as_written(demo_home: Path) -> None:
    """Includes the pages that continue in the home of the tour."""
    text = section("Five-minute tour") + PAGES["docs/checking-scripts.md"] + PAGES["docs/duckdb.md"]
    printed = run_blocks(text, "/tmp/tour", demo_home)  # noqa: S108 - as README says
    assert "Total operations" in printed
    assert "From north to south   ==> EXT1 ==> REP1 ==>" in printed
    assert '"rows": [["MANAGER", "RUNNING"' in printed
    assert "Killed process" in printed
    checked = blocks(PAGES["docs/checking-scripts.md"], "text")[0].replace("/tmp/tour", str(demo_home))  # noqa: S108
    begin, end = checked.split("…\n")
    assert begin in printed
    assert end in printed
    with duckdb.connect(str(demo_home / "copy.duckdb")) as file:
        assert file.execute("SELECT count(*) > 0 FROM shop.order_history").fetchall() == [(True,)]
    assert [each for each in demo_home.glob("dirpcs/*") if each.suffix in (".pce", ".pcr", ".pcm")] == []


def test_the_ten_line_example_replicates_two_other_databases(demo_home: Path, north: str, south: str) -> None:
    """The example of README with the logins of two other databases."""
    for dsn in (north, south):
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE public.people (id int PRIMARY KEY, name text)")
    text = section("Your own two")
    for name, dsn in (("source", north), ("target", south)):
        facts = psycopg.conninfo.conninfo_to_dict(dsn)
        login = f"{facts['user']}@{facts['host']}:{facts['port']}/{facts['dbname']}"
        text = text.replace(f"ggadmin@{name}.example.com:5432/shop", login)
    run_blocks(text, "/tmp/own", demo_home)  # noqa: S108 - as README says
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute("INSERT INTO public.people VALUES (1, 'Ada')")
    with psycopg.connect(south, autocommit=True) as target:
        until("the row arrives", lambda: target.execute("SELECT * FROM public.people").fetchall() == [(1, "Ada")])


def test_the_example_in_both_directions_runs_and_resolves_its_conflict(demo_home: Path) -> None:
    printed = run_blocks(PAGES["docs/two-way.md"], "/tmp/two-way", demo_home)  # noqa: S108 - as the page says
    assert len(re.findall(r"CDR resolutions succeeded +1\.00", printed)) == 2
    assert len(re.findall(r"^bank\.accounts +2 +2  equal", printed, re.MULTILINE)) == 2
    for here, there, number in (("north", "south", 1), ("south", "north", 2)):
        assert f"From {here} to {there}   ==> EXT{number} ==> REP{number} ==>" in printed
