"""Where Spark creates files, and the warning of START SPARK for a cluster without a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.query.cluster import ask_spark
from ggshell.query.driver import exposes, java_process
from ggshell.query.session import WarmSession
from ggshell.query.settings import QuerySettings


def test_spark_creates_files_only_in_dirtmp_of_the_home(warm: WarmSession) -> None:
    spark = warm.get()
    (folder,) = (Path(warm.facts().log).parent.parent / "dirtmp").iterdir()
    assert ask_spark(warm, "SELECT id % 7 AS n, count(*) FROM range(9999) GROUP BY 1 ORDER BY 1", []).num_rows == 7
    jvm, context = spark.sparkContext._jvm, spark.sparkContext
    assert jvm is not None
    assert jvm.java.lang.System.getProperty("java.io.tmpdir") == str(folder)
    assert Path(str(context._temp_dir)).is_relative_to(folder)
    assert len(list(folder.glob("blockmgr-*"))) == 1
    process = java_process(spark).pid
    environment = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    assert f"TMPDIR={folder}".encode() in environment
    assert list(Path("/", "tmp").glob(f"hsperfdata_*/{process}")) == []
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("master", "options", "exposed"),
    [
        ("spark://north:7077", {}, True),
        ("spark://north:7077", {"spark.authenticate": "false"}, True),
        ("spark://north:7077", {"spark.authenticate": "true"}, False),
        ("spark://localhost:7077", {}, False),
        ("local[*]", {}, False),
        ("yarn", {}, False),
    ],
)
def test_a_remote_standalone_master_without_a_secret_is_recognized(
    master: str, options: dict[str, str], exposed: bool
) -> None:
    assert exposes(QuerySettings(master=master, options=options)) is exposed
