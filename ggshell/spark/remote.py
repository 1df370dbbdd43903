"""A Spark Connect server somewhere (``sc://host:port``): no Java here, the session is a connection."""

from __future__ import annotations

import re
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ggshell.errors import ConnectionLostError
from ggshell.spark.driver import session_builder
from ggshell.spark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PORT: Final = 15002
RETRIES: Final = 4
"""PySpark's own 15 would keep somebody waiting for ten minutes for a server that is gone."""
REACH_SECONDS: Final = 10.0
_REMOTE = re.compile(r"sc://(\[[^\]]+\]|[^:/;]+)(?::(\d+))?")


class Remote:
    """Connects, and hears from the server how far it is."""

    java = ""

    def __init__(self, settings: Settings, log: Path) -> None:
        self._settings = settings
        self._log = log
        self._done = self._whole = 0

    def start(self) -> SparkSession:
        """The session.  Raises NotFoundError without pyspark, ConnectionLostError when nobody listens there."""
        builder = session_builder(self._log)
        self._reach()
        from pyspark.sql.connect.client.retries import DefaultPolicy

        builder = builder.remote(self._settings.effective_master)
        for key, value in self._settings.options.items():
            builder = builder.config(key, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the server's words about settings that only it can change
            spark: Any = builder.create()
        spark.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES)])
        spark.registerProgressHandler(self._hear)
        return spark  # type: ignore[no-any-return]

    def _reach(self) -> None:
        where = self._settings.shown_master
        match = _REMOTE.match(self._settings.effective_master)
        if match is None:
            raise ConnectionLostError(f"{where} is no Spark Connect server", hint="sc://host:15002", code="GGS-00705")
        try:
            with socket.create_connection((match[1].strip("[]"), int(match[2] or PORT)), REACH_SECONDS):
                return
        except OSError as error:
            raise ConnectionLostError(
                f"Spark ({where}) cannot be reached: {error.strerror or error}",
                code="GGS-00705",
                hint="is the server there?",
            ) from error

    def _hear(self, stages: Any, inflight_tasks: int, operation_id: Any, done: bool) -> None:
        self._whole = 0 if done else sum(stage.num_tasks for stage in stages)
        self._done = 0 if done else sum(stage.num_completed_tasks for stage in stages)

    def cores(self, spark: SparkSession) -> int:
        """Only the server knows."""
        return 0

    def make_active(self, spark: SparkSession) -> None:
        """Sessions of a server belong to no thread."""

    @contextmanager
    def tagged(self, spark: SparkSession, tag: str) -> Iterator[None]:
        """What this thread asks runs under a tag."""
        spark.addTag(tag)
        try:
            yield
        finally:
            spark.removeTag(tag)

    def interrupt(self, spark: SparkSession, tag: str) -> None:
        """End what runs under a tag."""
        spark.interruptTag(tag)

    def tasks(self, spark: SparkSession) -> tuple[int, int]:
        """How many tasks of the running stages are done, and how many there are."""
        return self._done, self._whole

    def is_gone(self, spark: SparkSession) -> bool:
        """Only asking it would tell."""
        return False

    def has_ended(self, spark: SparkSession, error: BaseException, *, expected: bool = False) -> bool:
        """Whether a failure says that the server does not answer, or has forgotten us."""
        text = f"{type(error).__name__} {error}"
        return any(word in text for word in ("UNAVAILABLE", "RetriesExceeded", "SESSION_CLOSED", "SESSION_NOT_FOUND"))

    def close(self, spark: SparkSession | None) -> None:
        if spark is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a server that has gone
                spark.stop()
