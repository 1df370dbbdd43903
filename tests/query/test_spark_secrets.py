"""No Spark setting is visible on a command line, where every user of the machine could read it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

MARKER = r"zq7 marker=#1:\Z"
ASKS = """
import sys
from pathlib import Path
from ggshell.query.session import WarmSession
from ggshell.query.settings import load_settings

session = WarmSession(load_settings(Path(sys.argv[1])), Path(sys.argv[2]))
context = session.get().sparkContext
hadoop = context._jsc.hadoopConfiguration()
for name in ("secret.key", "plain", "default"):
    print(hadoop.get(f"ggs.{name}"))
print(context.getConf().get("spark.sql.shuffle.partitions"), flush=True)
sys.stdin.read()
session.close()
"""
SETTINGS = f"""
master local[1]
memory 500m
spark.hadoop.ggs.secret.key {MARKER}
spark.hadoop.ggs.plain yes
spark.sql.shuffle.partitions 3
"""


def command_lines() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # It has ended.
            yield path.read_bytes().decode(errors="replace")


@pytest.fixture
def folder(java: None, tmp_path: Path) -> Path:
    """A home with settings, and Spark's own defaults beside it."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    for name in ("dirrpt", "dirtmp", "conf"):
        (tmp_path / name).mkdir()
    (tmp_path / "spark.conf").write_text(SETTINGS)
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.hadoop.ggs.default ours\nspark.hadoop.ggs.plain no\n")
    return tmp_path


def test_no_setting_is_visible_on_a_command_line_and_all_take_effect(folder: Path) -> None:
    """Neither while Java starts, which takes three programs, nor while it runs."""
    settings, log = folder / "spark.conf", folder / "dirrpt" / "spark.log"
    over, seen = threading.Event(), set[str]()

    def watch() -> None:
        while not over.wait(0.005):
            seen.update(command_lines())

    thread = threading.Thread(target=watch)
    with subprocess.Popen(
        [sys.executable, "-c", ASKS, str(settings), str(log)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SPARK_CONF_DIR": str(folder / "conf")},
    ) as asking:
        assert asking.stdin is not None
        assert asking.stdout is not None
        thread.start()
        try:
            answers = [asking.stdout.readline().rstrip("\n") for _ in range(4)]
        finally:
            over.set()
            thread.join()
        settings.unlink()
        held = [path for path in folder.rglob("*") if path.is_file() and b"zq7" in path.read_bytes()]
        seen.update(command_lines())
        asking.stdin.close()
    assert answers == [MARKER, "yes", "ours", "3"], log.read_text()
    assert held == []
    assert any("settings.properties" in line for line in seen), "the start was not seen"
    assert [line for line in seen if "zq7" in line] == []
