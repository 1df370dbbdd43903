"""Errors of Spark that a user can act on: a host of the cluster lacks something."""

from __future__ import annotations

import pytest

from ggshell.query.cluster import refusal

pytest.importorskip("pyspark", reason="pyspark is not installed")
FAILED = "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in stage 1.0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot",
            "host 10.0.0.7 of the cluster runs Python 3.12, but the driver runs 3.11",
        ),
        (
            "ModuleNotFoundError: No module named 'pyarrow.lib'",
            "host 10.0.0.7 of the cluster lacks the Python library pyarrow",
        ),
        (
            "[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed; however, it was not found.",
            "host 10.0.0.7 of the cluster lacks the Python library PyArrow",
        ),
        (
            'java.io.IOException: Cannot run program "/opt/python": error=2, No such file or directory',
            "host 10.0.0.7 of the cluster cannot run /opt/python",
        ),
    ],
)
def test_what_a_host_lacks_is_told_with_the_host_and_a_remedy(text: str, message: str) -> None:
    error = refusal(RuntimeError(f"{FAILED} (TID 3) (10.0.0.7 executor 1): {text}"), "select 1")
    assert (error.code, error.message) == ("GGS-00717", message)
    assert "spark.pyspark.python" in error.hint
