"""A pipeline that replicates DDL from a schema to another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pipelines import ALL_APPLIERS, Pipeline
from processes import until

EXTRACT = "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nDDL INCLUDE ALL\nTABLE a.*;\n"
KINDS = {"classic": "", "parallel": "PARALLEL, ", "coordinated": "COORDINATED, MAXTHREADS 3, "}


@pytest.fixture
def replicating(tmp_path: Path, north: str, south: str, request: pytest.FixtureRequest) -> Iterator[Pipeline]:
    kind = getattr(request, "param", "classic")
    pipeline = Pipeline(tmp_path / "home", north, south)
    pipeline.write("ext1", EXTRACT)
    threads = ", THREADRANGE (1-3)" if kind == "coordinated" else ""
    pipeline.write("rep1", f"REPLICAT rep1\nUSERIDALIAS south\n{ALL_APPLIERS}MAP a.*, TARGET b.*{threads};\n")
    pipeline.run("DBLOGIN USERIDALIAS north", "ADD SCHEMATRANDATA a")
    pipeline.add(kind=KINDS[kind])
    pipeline.start()
    yield pipeline
    pipeline.close()


def rows(pipeline: Pipeline, table: str) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    return pipeline.in_north(f"SELECT * FROM a.{table} ORDER BY 1"), pipeline.in_south(
        f"SELECT * FROM b.{table} ORDER BY 1"
    )


def wait_until_done(pipeline: Pipeline, number: int) -> None:
    pipeline.in_north(f"INSERT INTO a.items (id) VALUES ({1_000_000 + number})")
    wanted = f"SELECT count(*) FROM b.items WHERE id = {1_000_000 + number}"
    until("the last row arrives", lambda: pipeline.in_south(wanted)[0][0] == 1)
