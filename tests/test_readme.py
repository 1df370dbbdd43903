"""What README and the scripts tell people to type is understood."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pytest

from ggshell.demo.processes import end_processes
from ggshell.demo.servers import open_servers
from ggshell.syntax.grammar import COMMANDS, LOGDUMP, parse
from ggshell.syntax.statement import split

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
GIVEN = [
    *(
        (item.text, COMMANDS)
        for text in re.findall(r'ggshell (?!logdump)[^"\n]*-c "([^"]+)"', README)
        for item in split(text)
    ),
    *((line, LOGDUMP) for text in re.findall(r'ggshell logdump -c "([^"]+)"', README) for line in text.splitlines()),
    *(
        (item.text, COMMANDS)
        for script in ("quickstart.oby", "questions.oby")
        for item in split((ROOT / "scripts" / script).read_text())
    ),
]


@pytest.mark.parametrize(("statement", "kind"), GIVEN)
def test_statements_that_are_shown_are_understood(statement: str, kind: str) -> None:
    assert parse(statement, kind).key


def test_files_that_readme_links_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_two_commands_come_first() -> None:
    assert README.index("git clone") < README.index("scripts/quickstart") < README.index("## ")


def test_the_tour_runs_as_it_is_written() -> None:
    tour = (
        README[README.index("## A tour") : README.index("## Checking")]
        + README[README.index("## DuckDB as a target") :]
    )
    tour = tour[: tour.index("## Initial load")]
    home = Path(tempfile.mkdtemp(prefix="ggs-tour-", dir="/tmp"))
    script = "\n".join(["set -e", *re.findall(r"```sh\n(.*?)```", tour, re.DOTALL)]).replace("/tmp/tour", str(home))  # noqa: S108 - as README says
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    try:
        ran = subprocess.run(
            ["bash", "-c", script],
            cwd=ROOT,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
        assert "Total operations" in ran.stdout
        assert "From north to south   ==> EXT1 ==> REP1 ==>" in ran.stdout
        assert '"rows": [["MANAGER", "RUNNING"' in ran.stdout
        assert "Killed process" in ran.stdout
        with duckdb.connect(str(home / "copy.duckdb")) as file:
            assert file.execute("SELECT count(*) > 0 FROM shop.order_history").fetchall() == [(True,)]
        assert [each for each in home.glob("dirpcs/*") if each.suffix in (".pce", ".pcr", ".pcm")] == []
    finally:
        end_processes(home)
        open_servers(home).remove()
        shutil.rmtree(home, ignore_errors=True)
