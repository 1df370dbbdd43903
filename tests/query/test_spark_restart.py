"""A Java process that is killed or runs out of memory: one line reports it, and the next query succeeds again.

It runs in a process of its own, as a process has at most one Spark session and the other tests share theirs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import json, sys, threading
from pathlib import Path
from ggshell.errors import GgsError
from ggshell.query.cluster import ask_spark
from ggshell.query.driver import java_process
from ggshell.query.session import WarmSession
from ggshell.query.settings import QuerySettings

session = WarmSession(QuerySettings(master="local[2]", memory="500m"), Path(sys.argv[1]))

def ask(sql, told=None):
    try:
        print(json.dumps(ask_spark(session, sql, [], told).to_pylist()), flush=True)
    except GgsError as error:
        print(json.dumps([error.code, error.message]), flush=True)

def kill(*_):
    java_process(session._spark).kill()

ask("SELECT 1 AS n")
kill()
java_process(session._spark).wait()
ask("SELECT 2 AS n")
ask("SELECT count(*) AS n FROM range(1000000000000) a WHERE hash(id) % 7 = 3", kill)
ask("SELECT collect_list(repeat(CAST(id AS STRING), 1000000)) AS n FROM range(4000)")
ask("SELECT 3 AS n")
session.close()
"""


def test_spark_is_started_again_after_java_has_ended(java: None, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "spark.log")],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert answers[0] == [{"n": 1}]
    assert answers[1] == [{"n": 2}]  # It ended between two queries: started again silently.
    assert answers[2] == ["GGS-00704", "Spark ended while it was working"]
    assert answers[3] == ["GGS-00708", "Spark ran out of memory"]
    assert answers[4] == [{"n": 3}]
    assert run.stderr == ""
