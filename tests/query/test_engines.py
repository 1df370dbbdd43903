"""Choice of the engine by size and settings; the log of queries; when Spark is started in advance."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from trail_samples import random_transactions, trail_in, write_trail

from ggshell.clock import FakeClock
from ggshell.errors import ParameterError, UsageError
from ggshell.quantities import read_size
from ggshell.query.engines import KEPT, Engines
from ggshell.query.session import WarmSession
from ggshell.query.settings import EngineChoice, QuerySettings, load_settings
from ggshell.query.trail_read import TrailView
from ggshell.query.views import RowsView

ROWS = RowsView("rows", pa.table({"id": [1, 2, 3], "t": ["a", None, "ü"]}))


@pytest.mark.parametrize(
    ("choice", "size", "engine"),
    [
        (EngineChoice.AUTO, 999, "local"),
        (EngineChoice.AUTO, 1000, "spark"),
        (EngineChoice.LOCAL, 1 << 40, "local"),
        (EngineChoice.SPARK, 0, "spark"),
    ],
)
def test_the_engine_depends_on_size_and_settings(tmp_path: Path, choice: EngineChoice, size: int, engine: str) -> None:
    engines = Engines(QuerySettings(engine=choice, threshold=1000), tmp_path / "spark.log")
    assert engines.choose(size) == engine


def test_small_queries_never_start_spark(tmp_path: Path) -> None:
    engines = Engines(QuerySettings(), tmp_path / "spark.log", warm_early=True, clock=FakeClock())
    answer = engines.ask("numbers", "SELECT sum(id) AS n, count(t) AS m FROM rows", [ROWS])
    assert (answer.columns, answer.rows, answer.engine) == (("n", "m"), [(6, 2)], "local")
    assert dict(engines.facts())["State"] == "not started"
    assert not (tmp_path / "spark.log").exists()


def test_spark_is_started_in_the_background_from_a_quarter_of_the_threshold_on(tmp_path: Path, port: int) -> None:
    """Nothing listens at that port, so the start fails at once, and the query is still answered."""
    name = trail_in(tmp_path)
    write_trail(name, random_transactions(1, 30))
    view = TrailView("trail", (str(name.file(0)),), ("op",))
    for share, started in ((5, False), (3, True)):
        settings = QuerySettings(threshold=view.size * share, master=f"sc://localhost:{port}")
        engines = Engines(settings, tmp_path / "spark.log", warm_early=True)
        assert engines.ask("count", "SELECT count(*) AS n FROM trail", [view]).engine == "local"
        thread = engines.session._thread
        assert (thread is not None) is started
        if thread is not None:
            thread.join()


def test_a_large_query_runs_on_spark_and_returns_the_same_rows(tmp_path: Path, warm: WarmSession) -> None:
    name = trail_in(tmp_path)
    write_trail(name, random_transactions(1, 60))
    view = TrailView("trail", (str(name.file(0)),), ("op", "table"))
    engines = Engines(QuerySettings(threshold=view.size), tmp_path / "spark.log")
    engines._session = warm
    sql = "SELECT op, table, count(*) AS n FROM trail GROUP BY op, table ORDER BY op, table"
    large = engines.ask("large", sql, [view])
    engines.settings = engines.settings._replace(threshold=view.size + 1)
    small = engines.ask("small", sql, [view])
    assert (large.engine, small.engine) == ("spark", "local")
    assert large.rows == small.rows
    assert [(ran.query, ran.engine, ran.rows) for ran in engines.ran] == [
        ("large", "spark", len(large.rows)),
        ("small", "local", len(large.rows)),
    ]


def test_the_last_queries_are_logged(tmp_path: Path) -> None:
    engines = Engines(QuerySettings(), tmp_path / "spark.log")
    for number in range(KEPT + 3):
        engines.ask(f"q{number}", "SELECT 1 AS n", [])
    assert [ran.query for ran in engines.ran] == [f"q{number}" for number in range(3, KEPT + 3)]


@pytest.mark.parametrize(
    "sql",
    [
        *("DROP TABLE x", "INSERT INTO trail VALUES (1)", "COPY rows TO 'x'", "", "PRAGMA x", ";", "-- SELECT 1"),
        *("SELECT 1; SELECT 2", "SELECT 1; COPY rows TO 'x'", "/* ; */ SELECT 1; -- ;\nSELECT 2"),
    ],
)
def test_only_a_single_query_is_accepted(tmp_path: Path, sql: str) -> None:
    engines = Engines(QuerySettings(), tmp_path / "spark.log")
    with pytest.raises(UsageError, match="accepts only SELECT and WITH"):
        engines.ask("bad", sql, [ROWS])


@pytest.mark.parametrize(
    "sql", ["SELECT ';' AS n; ; ", "/* a; 'b */ SELECT ';' AS n -- ; SELECT 2", "\n(SELECT ';' AS n);"]
)
def test_a_semicolon_within_one_statement_is_accepted(tmp_path: Path, sql: str) -> None:
    engines = Engines(QuerySettings(), tmp_path / "spark.log")
    assert engines.ask("one", sql, []).rows == [(";",)]


def test_settings_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "spark.conf"
    assert load_settings(file) == QuerySettings()
    file.write_text(
        "# ours\n\nengine = SPARK\nthreshold 3G\nmaster spark://host:7077\nspark.executor.memory  4g\nspark.x=-Da=b\n"
    )
    found = load_settings(file)
    assert (found.engine, found.threshold, found.master) == (EngineChoice.SPARK, 3 << 30, "spark://host:7077")
    assert dict(found.options) == {"spark.executor.memory": "4g", "spark.x": "-Da=b"}
    for line, message in (
        ("engine quick", "engine must be auto, local or spark, not quick"),
        ("threshold some", "some is not a valid size"),
        ("memory", "memory has no value"),
        ("memory lots", "lots is not a valid memory size for Java"),
        ("colour blue", "unknown setting colour"),
        ("= 3", "unknown setting "),
    ):
        file.write_text(f"engine auto\n{line}\n")
        with pytest.raises(ParameterError, match=message) as caught:
            load_settings(file)
        assert caught.value.where == f"{file}:2"


@pytest.mark.parametrize(("text", "size"), [("4096", 4096), ("2K", 2048), ("256MB", 256 << 20), ("1g", 1 << 30)])
def test_sizes_with_units_are_parsed(text: str, size: int) -> None:
    assert read_size(text) == size


def test_invalid_settings_are_a_settings_error(tmp_path: Path) -> None:
    file = tmp_path / "spark.conf"
    file.write_bytes(b"\xff\xfeengine\0")
    with pytest.raises(ParameterError, match="not UTF-8 text"):
        load_settings(file)
    with pytest.raises(ParameterError, match="Is a directory"):
        load_settings(tmp_path)


def test_tokens_are_not_shown() -> None:
    settings = QuerySettings(master="sc://host:15002/;token=geheim;user_id=x")
    assert settings.shown_master == "sc://host:15002"
    assert QuerySettings(master="k8s://https://host").shown_master == "k8s://https://host"
