"""An archive of Spark's classes: a Java that maps it starts with half of the CPU time.

It is made once for each environment of Python, by a Spark that runs a query and ends; this takes as long as three starts. A
Java that it does not fit, or one that does not find it, starts without it.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ggshell.query.driver import Java


def _pyspark() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "none"  # the tests that need it are skipped


FILE = Path(sys.prefix) / "var" / f"spark-{_pyspark()}.jsa"
OPTIONS = f"-XX:SharedArchiveFile={FILE} -Xlog:cds=off -Xlog:cds+dynamic=off"
"""Options of Java that use the archive and say nothing if it does not fit."""
_PROGRAM = """
import sys
from pathlib import Path
from ggshell.query.cluster import ask_spark
from ggshell.query.session import WarmSession
from ggshell.query.settings import QuerySettings

session = WarmSession(QuerySettings(master="local[2]", memory="500m"), Path(sys.argv[1]))
ask_spark(session, "SELECT id % 3 AS n, count(*) FROM range(10) GROUP BY 1 ORDER BY 1", [], None)
session.close()
"""


def ensure_archive(java: Java, options: str) -> None:
    """Make the archive unless there is one. ``options``: Java's other options, which the archive must fit."""
    FILE.parent.mkdir(exist_ok=True)
    with FILE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be making it
        if FILE.exists() and FILE.stat().st_mtime >= java.program.resolve().stat().st_mtime:
            return
        new = FILE.with_suffix(".new")
        new.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix="ggs-spark-") as folder:
            subprocess.run(
                [sys.executable, "-c", _PROGRAM, str(Path(folder, "spark.log"))],
                env={**os.environ, "JDK_JAVA_OPTIONS": f"{options} -XX:ArchiveClassesAtExit={new} -Xlog:disable"},
                check=True,
                stdout=subprocess.DEVNULL,
                timeout=600,
            )
        new.replace(FILE)
