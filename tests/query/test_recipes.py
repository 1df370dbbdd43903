"""The recipes of ``ggshell.query``, run as they are written there: in a classic session and over Spark Connect."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from trail_samples import BEGIN, random_transactions, trail_in, write_trail

from ggshell.clock import to_datetime
from ggshell.home.home import Home
from ggshell.query import RECIPES
from ggshell.query.server import find_server, start_server, stop_server
from ggshell.trail.columnar import read_columnar
from ggshell.trail.name import TrailName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def names_of(spark: object, folder: Path, trail: TrailName) -> dict[str, Any]:
    """The names that the recipes use."""
    return {
        "spark": spark,
        "trail": str(trail),
        "other": str(trail_in(folder, "eb")),
        "table": "hr.employees",
        "since": to_datetime(BEGIN + 10_000),
        "lake": str(folder / "lake"),
    }


def run_recipes(names: dict[str, Any]) -> dict[str, Any]:
    """Run every recipe; return their results as plain values."""
    for text in RECIPES.values():
        exec(text, names)  # noqa: S102 - our own text
        if "query" in names:
            names.pop("query").awaitTermination(120)
        names.setdefault("answers", []).append(names.pop("answer", None))
    spark = names["spark"]
    counts, own, later, *_ = names["answers"]
    return {
        "counts": sorted(map(list, counts.collect())),
        "own": [list(map(str, row)) for row in own.orderBy("csn", "id").collect()],
        "later": later.count(),
        "lake": spark.read.parquet(names["lake"]).count(),
        "back": spark.read.format("ggtrail").load(names["other"]).count(),
    }


@pytest.fixture
def trail(tmp_path: Path) -> TrailName:
    name = trail_in(tmp_path)
    write_trail(name, random_transactions(7, 40))
    return name


def test_recipes(spark: SparkSession, tmp_path: Path, trail: TrailName) -> None:
    found = run_recipes(names_of(spark, tmp_path, trail))
    rows = [row for batch in read_columnar(trail.file(0)) for row in batch.to_pylist()]
    inserts = [row for row in rows if row["op"] == "Insert"]
    assert found["later"] == sum(row["commit_ts"] >= to_datetime(BEGIN + 10_000) for row in inserts) > 0
    assert found["lake"] == len(rows) == sum(row[-1] for row in found["counts"])
    assert found["back"] == len(inserts)
    assert found["own"]


PROGRAM = """
import json, os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[4:]
from test_recipes import names_of, run_recipes
from trail_samples import trail_in
from ggshell.query.cluster import ask_spark
from ggshell.query.session import WarmSession
from ggshell.query.settings import QuerySettings

session = WarmSession(QuerySettings(master=sys.stdin.read()), Path(sys.argv[1]))
folder = Path(sys.argv[2])
print(json.dumps(run_recipes(names_of(session.get(), folder, trail_in(folder, sys.argv[3])))))
signal.signal(signal.SIGINT, signal.default_int_handler)
endless = "SELECT count(*) AS n FROM range(1000000000000) a WHERE hash(id) % 7 = 3"
try:
    ask_spark(session, endless, [], lambda bar: os.kill(os.getpid(), signal.SIGINT) if bar else None)
except KeyboardInterrupt:
    print(json.dumps(ask_spark(session, "SELECT 'interrupted' AS n", []).to_pylist()))
session.close()
"""


def test_recipes_over_spark_connect(spark: SparkSession, tmp_path: Path, trail: TrailName) -> None:
    """In a process of its own: one process cannot have both kinds of session."""
    here = names_of(spark, tmp_path / "here", trail)
    home = Home(tmp_path / "home")
    server = start_server(home)
    try:
        run = subprocess.run(
            [
                *(sys.executable, "-c", PROGRAM, str(tmp_path / "spark.log"), str(tmp_path), trail.prefix),
                *(str(Path(__file__).parent), str(Path(__file__).parents[1])),
            ],
            input=server.remote,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    finally:
        stop_server(home)
    assert find_server(home) is None
    assert run.returncode == 0, run.stderr
    recipes, interrupted = map(json.loads, run.stdout.splitlines())
    assert recipes == run_recipes(here)
    assert interrupted == [{"n": "interrupted"}]
