"""The steps of docs/network.md run as written, with the addresses of real homes and databases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from command_line import run_ggshell
from processes import until
from service_client import free_port
from two_homes import TwoHomes, fingerprint

from ggshell.demo.processes import end_processes
from ggshell.home.home import Home
from ggshell.home.peers import Peers

pytestmark = pytest.mark.slow
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "network.md").read_text()
TABLE = "CREATE TABLE public.people (id int PRIMARY KEY, name text)"


def blocks(language: str, title: str) -> list[str]:
    """The blocks of a language in a section of the page."""
    text = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


class Machines:
    """The two machines of the page: homes in folders, with Manager running. The service listens on a free port."""

    def __init__(self, folder: Path) -> None:
        self.homes = {"source": folder / "source", "target": folder / "target"}
        self.port = free_port()
        for home in self.homes.values():
            Home(home).ensure()
            assert run_ggshell("--home", home, "-c", "START MANAGER").returncode == 0
        shown = dict.fromkeys(re.findall(r"FINGERPRINT ((?:[0-9A-F]{2}:){31}[0-9A-F]{2})", PAGE))
        real = (fingerprint(self.homes[name]) for name in ("target", "source"))
        self.words = {
            **dict(zip(shown, real, strict=True)),
            "target.example.com:7810": f"127.0.0.1:{self.port}",
            "PORT 7810": f"PORT {self.port}",
            "ADDRESS 0.0.0.0": "ADDRESS 127.0.0.1",
        }

    def run(self, block: str) -> str:
        """Run a block on the machine that its first line names; returns what it prints."""
        name = re.match(r"# on (\w+)\.example\.com\n", block)
        assert name is not None, block
        for shown, real in self.words.items():
            block = block.replace(shown, real)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "GGSHELL_HOME": str(self.homes[name[1]])}
        command = ["bash", "-c", f"set -e\n{block}"]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
        return ran.stdout

    def close(self) -> None:
        for home in self.homes.values():
            end_processes(home)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    found = Machines(tmp_path)
    yield found
    found.close()


def test_the_steps_replicate_between_two_homes(machines: Machines, north: str, south: str) -> None:
    for name, dsn in (("north", north), ("south", south)):
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(TABLE)
        facts = psycopg.conninfo.conninfo_to_dict(dsn)
        machines.words[f"ggadmin@{name}.example.com:5432/shop"] = (
            f"{facts['user']}@{facts['host']}:{facts['port']}/{facts['dbname']}"
        )
    first, second, *others = blocks("sh", "Two machines, step by step")
    wanted = re.search(r"^ggshell -c \"ADD PEER \w+(, ADDRESS .*)\"$", second, re.MULTILINE)
    assert wanted is not None
    printed = machines.run(first)
    statement = wanted[1]
    for shown, real in machines.words.items():
        statement = statement.replace(shown, real)
    assert statement in printed
    for block in (second, *others):
        machines.run(block)
    with psycopg.connect(north, autocommit=True) as connection:
        connection.execute("INSERT INTO public.people VALUES (1, 'Ada')")
    with psycopg.connect(south, autocommit=True) as target:
        until("the row arrives", lambda: target.execute("SELECT * FROM public.people").fetchall() == [(1, "Ada")])


def test_a_user_with_the_role_distribution_sends_a_trail(homes: TwoHomes) -> None:
    Peers(Home(homes.target.home)).delete("source")
    on_target, on_source = blocks("ggsci", "Users instead of peers")
    homes.target.run(on_target)
    homes.run(on_source.replace("target.example.com:7810", f"127.0.0.1:{homes.target.port}"))
    homes.written = homes.written._replace(prefix="db")
    homes.write(20)
    homes.run("START DISTPATH dp2")
    homes.until_equal()
