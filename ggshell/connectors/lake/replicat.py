"""The process of a Replicat that delivers to a lake.

Spark Structured Streaming reads the trail; this process controls it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.connectors.lake.accepted_parameters import require_accepted
from ggshell.connectors.lake.commits import CommitLog, LakeCommit, require_lake
from ggshell.connectors.lake.credentials import lake_environment
from ggshell.connectors.lake.delivery import LakeDelivery
from ggshell.connectors.lake.forms import open_tables
from ggshell.connectors.lake.outages import Outage, errors_by_cause
from ggshell.connectors.lake.part_exchange import THROUGH_SPARK, PartExchange
from ggshell.connectors.lake.slices import on_spark
from ggshell.connectors.lake.target import index_cache, lake_target
from ggshell.connectors.lake.unmaintained import UNMAINTAINED, UnmaintainedLake
from ggshell.errors import ConnectionLostError, GgsError, StateError, TrailError
from ggshell.files import read_json
from ggshell.groups.home_wallet import wallet_of
from ggshell.groups.lifecycle import GroupContext, run_group
from ggshell.groups.progress import ReadingProgress
from ggshell.groups.reconnecting import attempt
from ggshell.groups.start_position import StartPosition
from ggshell.home.checkpoint import GroupKind
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.home.maintenance import MaintenanceFiles
from ggshell.links import LINKS, Link, Seen
from ggshell.parameters.loading import load_replicat
from ggshell.parameters.table_patterns import TableFilter
from ggshell.query.batch_timing import LOOK_SECONDS
from ggshell.query.driver import is_local, java_process
from ggshell.query.session import WarmSession, java_ended, out_of_memory
from ggshell.query.settings import QuerySettings, load_settings
from ggshell.query.trail_read import HomeKeys
from ggshell.trail.misplaced import require_placed
from ggshell.trail.name import TrailName
from ggshell.trail.reach import require_reachable
from ggshell.trail.reader import VisibleEnd
from ggshell.trail.rows_between import has_rows
from ggshell.types import Csn, TableName, TrailPosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHECK_SECONDS = 0.5
BATCH_BYTES = "64MB"
SPLIT_BYTES = "32MB"
"""A batch has two tasks, which end at about the same time."""
BATCH_SECONDS: Final = 1
"""The shortest time between the beginnings of two small batches: a table with few changes gets few files."""
_JAVA_OPTIONS: Final = " ".join(
    [
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-Xms128m",
        "-XX:MaxNewSize=128m",
        "-XX:MinHeapFreeRatio=10",
        "-XX:MaxHeapFreeRatio=30",
    ]
)
"""Java has little to do here: its second compiler takes more time than it saves. By default it takes all memory that it may
have before it collects garbage."""
_NO_MEMORY = ("OutOfMemoryError", "Java heap space", "TaskResultLost")
_RAISED = re.compile(r"^[ \t]+\S.*\n((?:\w+\.)*\w+(?:: [^\n]*\S)?)[ \t]*$", re.MULTILINE)
"""The line after the frames of a traceback of Python: the class, which can have any name, and its text."""
_CAUSE = re.compile(r"^(?:Caused by: |: )[\w.$]+: ([^\n]*\S)", re.MULTILINE)


def run(home: Home, group: str) -> int:
    """Run a lake Replicat until it is stopped. Returns the exit code."""
    return run_group(home, group, GroupKind.REPLICAT, _body)


def _body(context: GroupContext) -> None:
    replicat = LakeReplicat(context)
    if attempt(context, replicat.open):
        replicat.run()


class LakeReplicat:
    """One run. ``MAP`` lines select the tables, which keep their names in the lake."""

    def __init__(self, context: GroupContext) -> None:
        self._context = context
        parameters = load_replicat(context.home.parameters(context.group), context.group)
        require_accepted(parameters, context.home.parameters(context.group))
        self._wanted = TableFilter([each.source for each in parameters.maps], parameters.excludes)
        checkpoint = context.checkpoint
        self._trail = TrailName.parse(checkpoint.read.trail, context.home.root)
        self._progress = ReadingProgress(
            context.clock, checkpoint.record_time, checkpoint.caught_up, lambda: context.ahead
        )
        self._target = lake_target(context.home, checkpoint.options.target)
        os.environ.update(lake_environment(context.home, parameters.login, self._target))
        self._parameters = parameters
        self._held = contextlib.ExitStack()
        self._outage = Outage(context, self._target)
        self._keys = HomeKeys.of(context.home, wallet_of(context.home))
        self._latency = parameters.latency
        self._saved: LakeCommit | None = None
        self._without_rows: tuple[TrailPosition, TrailPosition] | None = None
        self._refused: GgsError | None = None
        self._end = VisibleEnd(self._trail)
        self._link = SparkLink(f"Spark, lake {self._target.location}", self._progress_text, self._is_silent)
        LINKS.enter(self, self._link)
        settings = _delivery_settings(load_settings(context.home.root / "dirprm" / "spark.conf"))
        self._is_remote = settings.is_remote
        parts = context.home.root.absolute() / "dirtmp" / f"{context.group}.parts"
        self._exchange = PartExchange(str(parts)) if is_local(settings.effective_master) else THROUGH_SPARK
        self._session = WarmSession(settings, context.home.root / "dirrpt" / "spark.log")
        self._spark: SparkSession | None = None
        self._began = 0.0
        context.verb("GETLAG", lambda _: self._no_lag(), live=lambda _: self._no_lag())
        context.verb("STATUS", lambda _: self._waiting(), live=lambda _: self._waiting())

    def open(self) -> bool:
        """Open the lake. Raises ConnectionLostError if its store or its catalog does not answer. Returns True."""
        context, layouts = self._context, self._parameters.layouts
        with self._outage.noted(), errors_by_cause(self._target), contextlib.ExitStack() as held:
            self._log = CommitLog(self._target, context.group)
            require_lake(self._log, context.checkpoint)
            self._log.claim()
            held.enter_context(self._log.held())
            tables = open_tables(self._target, context.group, index_cache(context.home, context.group), layouts)
            asked = StartPosition.of(context.checkpoint.options)
            least = asked.least if asked is not None and asked.csn else None
            self._delivery = LakeDelivery(
                tables,
                self._log,
                self._wanted,
                self._counted,
                self._warn,
                self._keys,
                least,
                layouts,
                self._trail.prefix,
            )
            done = self._delivery.committed
            self._unmaintained = UnmaintainedLake(
                context.group,
                self._target,
                context.checkpoint.options.maintenance,
                MaintenanceFiles(context.home.root, context.group),
                context.clock,
                done.batch if done is not None else -1,
            )
            self._exchange.open()
            held.callback(self._exchange.close)
            self._held = held.pop_all()
        context.verb("GETLAG", lambda _: self._lag(), live=lambda _: self._lag(busy=True))
        context.verb("STATUS", lambda _: self._status(), live=lambda _: self._status(busy=True))
        return True

    def run(self) -> None:
        """Deliver until stopped. Raises the error of a batch, or ConnectionLostError if Spark has ended."""
        runner, session = self._context.runner, self._session
        try:
            session.warm()
            while session.is_starting and not runner.stop_requested:
                runner.wait([], CHECK_SECONDS)  # requests are answered meanwhile
            if runner.stop_requested:
                return
            self._spark = spark = session.get()
            self._began = self._context.clock.steady()
            self._link.process = None if self._is_remote else java_process(spark)
            failure = self._deliver(spark)
            if self._link.canceled and runner.stop_requested:
                self._warn(
                    "Spark or the lake's disk did not respond after STOP, so Java was killed."
                    " START delivers uncommitted changes again."
                )
                return
            if isinstance(self._refused, ConnectionLostError) and runner.stop_requested:
                self._warn("The lake did not respond after STOP. START delivers uncommitted changes again.")
                return
            if self._refused is not None:
                raise self._by_cause(self._refused)
            if failure is not None:
                raise self._failure(spark, failure)
        finally:
            self._end.close()
            session.close()
            self._held.close()

    def _failure(self, spark: SparkSession, failure: BaseException) -> GgsError:
        """The error of a stream that has ended."""
        if self._session.lacked_memory:
            return out_of_memory()
        if self._session.has_ended(spark, failure):
            return java_ended()
        return self._by_cause(stream_failure(failure))

    def _by_cause(self, error: GgsError) -> GgsError:
        """The error for a lake that no longer contains the last commit, which other errors follow from; else the error."""
        done = self._delivery.committed
        try:
            with errors_by_cause(self._target):
                if done is not None:
                    self._log.require_there(done)
        except StateError as gone:
            return gone
        except GgsError:
            return error  # The store does not answer.
        return error

    def _deliver(self, spark: Any) -> BaseException | None:
        """Run the stream until stopped. Returns the error if the stream ended before that."""
        runner = self._context.runner
        try:
            query = self._start(spark)
            while not runner.stop_requested and query.isActive:
                runner.wait([], CHECK_SECONDS)
                self._follow()
            if query.isActive:
                self._finish(query)
                self._outage.give_up()
                query.stop()
            self._follow()
            return query.exception()  # type: ignore[no-any-return]
        except GgsError:
            raise
        except Exception as error:  # noqa: BLE001 - Py4J raises arbitrary exceptions when Java has gone
            return error

    def _progress_text(self) -> str:
        done = self._delivery.committed
        return f"batch {done.batch}" if done is not None else "no batch"

    def _is_silent(self) -> bool:
        return self._context.answering.busy_seconds >= SILENCE_SECONDS

    def _finish(self, query: Any) -> None:
        """Deliver what the trail contained when the stop was requested.

        Later records are not included: an active writer would delay the stop forever.
        """
        runner, end = self._context.runner, self._end.read()
        idle = threading.Thread(target=_wait_for_stream, args=(query,), name="lake-wait", daemon=True)
        idle.start()
        while idle.is_alive() and query.isActive and not (runner.forced or self._refused or self._outage.waits):
            self._follow()
            done = self._delivery.committed
            if end is None or (done is not None and done.position >= end):
                return
            idle.join(CHECK_SECONDS)
            runner.wait([], 0)

    def _start(self, spark: Any) -> Any:
        """Start the stream, from its own checkpoint, or after the last commit if the checkpoint is lost."""
        done = self._delivery.committed
        begin = done.position if done is not None else self._context.checkpoint.read.current
        if isinstance(begin, TrailPosition):
            require_reachable(self._trail, begin)
            if done is not None and done.csn:
                name, remedy = (
                    f"REPLICAT {self._context.group}",
                    "restore the trail, or ADD REPLICAT with another folder",
                )
                require_placed(self._trail, begin, Csn.parse(done.csn), name, remedy)
        memory = stream_memory(self._stream_root(), done)
        reader = (
            spark.readStream.format("ggtrail")
            .option("path", str(self._trail))
            .option("contents", "splits")
            .option("maxBytesPerTrigger", BATCH_BYTES)
            .option("splitBytes", SPLIT_BYTES)
            .option("interval", BATCH_SECONDS)
            .option("latency", self._latency)
        )
        if isinstance(begin, TrailPosition) and begin != TrailPosition(0, 0):
            reader = reader.option("startingSeqno", begin.seqno).option("startingRba", begin.rba)
        place = f"after batch {done.batch}" if done is not None else "with the first batch"
        text = f"Delivery to {self._target.location} ({self._target.form}) begins {place}."
        self._context.report.event(Severity.INFO, "GGS-00730", text)
        return (
            reader.load()
            .writeStream.foreachBatch(lambda rows, number: self._batch(rows, number + memory.first))
            .option("checkpointLocation", str(memory.folder))
            .start()
        )

    def _stream_root(self) -> Path:
        """The folder for the state of Spark's stream: in the lake, or, for an object store, in the home."""
        if self._target.folder is not None:
            return self._target.folder / self._log.root
        return self._context.home.root / "dirchk" / f"{self._context.group}.stream"

    def _batch(self, rows: DataFrame, number: int) -> None:
        try:
            run = partial(on_spark, rows, exchange=self._exchange)
            self._outage.run(partial(self._delivery.write, run, number))
        except GgsError as error:
            self._refused = error
            raise

    def _follow(self) -> None:
        """Update checkpoint, lag and statistics to the last commit."""
        done = self._delivery.committed
        if done is not None and done is not self._saved:
            self._saved = done
            self._progress.processed(done.commit_time)
            self._save(done)
            text = self._unmaintained.warning(done.batch)
            if text:
                self._context.report.event(Severity.WARNING, UNMAINTAINED, text)
        if self._at_end():
            self._progress.reached_end()
        else:
            self._progress.behind()

    def _at_end(self) -> bool:
        end, done = self._end.read(), self._delivery.committed
        begin = done.position if done is not None else self._context.checkpoint.read.current
        if end is None or not isinstance(begin, TrailPosition):
            return end is None
        if begin < end and self._without_rows != (begin, end) and not has_rows(self._trail, begin, end):
            self._without_rows = (begin, end)
        return begin >= end or self._without_rows == (begin, end)

    def _save(self, done: LakeCommit) -> None:
        context = self._context
        context.save(
            context.checkpoint._replace(
                read=context.checkpoint.read.reached(done.position, done.commit_time),
                record_time=done.commit_time,
                caught_up=self._progress.caught_up,
                latest_csn=done.csn,
                latest_xid=done.xid,
            )
        )

    def _counted(self, table: TableName, io_type: int, number: int) -> None:
        self._context.statistics.add(table, table, io_type, number)

    def _warn(self, text: str) -> None:
        self._context.report.event(Severity.WARNING, "GGS-00731", text)

    def _lag(self, *, busy: bool = False) -> dict[str, Any]:
        """``busy``: the worker does not answer, so nothing is read."""
        if not busy and not self._at_end():
            self._progress.behind()
        return self._progress.lag_answer(busy=busy)

    def _status(self, *, busy: bool = False) -> dict[str, Any]:
        done = self._delivery.committed
        place = done.position if done is not None else TrailPosition(0, 0)
        read = self._progress.read_answer(str(self._trail), place)
        status = self._outage.status or ("" if busy else self._first_batch()) or self._progress.reading
        return {"status": status, "read": read, "write": []}

    def _no_lag(self) -> dict[str, Any]:
        """The lag before the lake is open."""
        return {"lag_seconds": None, "at_eof": False}

    def _waiting(self) -> dict[str, Any]:
        """The status before the lake is open."""
        place = self._context.checkpoint.read.current
        read = self._progress.read_answer(
            str(self._trail), place if isinstance(place, TrailPosition) else TrailPosition(0, 0)
        )
        return {"status": self._outage.status or "Starting", "read": read, "write": []}

    def _first_batch(self) -> str:
        """What the first batch waits for, or how far it is; empty after its commit, and at the end of the trail."""
        if self._delivery.committed is not None:
            return ""
        if self._spark is None:
            return "Spark is starting"
        tasks = self._session.progress(self._spark, self._context.clock.steady() - self._began)
        return f"Delivering the first batch: {tasks}" if tasks else ""


def _delivery_settings(settings: QuerySettings) -> QuerySettings:
    """The settings of queries, for a delivery: a small driver, and looks for rows at intervals, unless they say otherwise."""
    ours = {"spark.sql.streaming.pollingDelay": f"{LOOK_SECONDS * 1000:.0f}ms"}
    if not settings.is_remote:
        ours["spark.driver.extraJavaOptions"] = _JAVA_OPTIONS
    if is_local(settings.effective_master):
        ours["spark.python.daemon.module"] = "ggshell.connectors.lake.worker_daemon"
    return settings._replace(options={**ours, **settings.options})


class StreamMemory(NamedTuple):
    """The folder with the state of Spark's stream, and the number of the first batch that it includes."""

    folder: Path
    first: int


def stream_memory(root: Path, done: LakeCommit | None) -> StreamMemory:
    """The existing state of the stream, if it is that of the lake; else a new one that begins after the last commit.

    The state for an object store is in the home, so it can be that of an earlier group of this name.
    """
    first = done.batch + 1 if done is not None else 0
    for folder in sorted(root.glob("stream*")):
        found = StreamMemory(folder, int(folder.name.partition("-")[2] or 0))
        if done is not None and _contains(found, done):
            return found
        shutil.rmtree(folder)
    return StreamMemory(root / f"stream-{first}" if first else root / "stream", first)


def _contains(memory: StreamMemory, done: LakeCommit) -> bool:
    """Whether the state of a stream has the last batch of a lake: a commit ends within the batch of its number."""
    before, end = (_planned_end(memory, done.batch - memory.first - back) for back in (1, 0))
    return end is not None and done.position <= end and (before is None or before <= done.position)


def _planned_end(memory: StreamMemory, number: int) -> TrailPosition | None:
    """The end of a batch in Spark's own log; None if it is not there."""
    try:
        place = read_json((memory.folder / "offsets" / str(number)).read_text().splitlines()[-1])
        return TrailPosition(int(place["seqno"]), int(place["rba"]))
    except (OSError, ValueError, KeyError, IndexError):
        return None


def _wait_for_stream(query: Any) -> None:
    """Wait until a stream has read all available data."""
    with contextlib.suppress(Exception):  # the stream reports its own error
        query.processAllAvailable()


def stream_failure(failure: BaseException) -> GgsError:
    """The error of a failed stream in one line: trail damage, lack of memory, or else the last cause."""
    text = str(failure)
    line = next((line.strip() for line in text.splitlines() if "TrailError" in line), "")
    if line:
        return TrailError(line.partition("TrailError:")[2].strip() or line)
    if any(word in text for word in _NO_MEMORY):
        return out_of_memory()
    causes = _CAUSE.findall(text) or _RAISED.findall(text) or text.splitlines()[:1] or ["see dirrpt/spark.log"]
    return ConnectionLostError(
        f"the Spark stream ended: {causes[-1].strip()[:300]}", hint="see dirrpt/spark.log for the full error"
    )


PATIENCE_SECONDS: Final = 30.0
"""How long after a stop a running batch can take. A batch that is killed counts as never begun."""
SILENCE_SECONDS: Final = 10.0
"""How long after a stop a single call to Java can take."""


class SparkLink:
    """One Java process. Killing it loses nothing: data without a commit is delivered again."""

    observable = False

    def __init__(self, place: str, progress: Callable[[], str], is_silent: Callable[[], bool]) -> None:
        """``progress`` returns a new text after each batch; ``is_silent``: a call to Java has not returned for some time."""
        self.canceled = False
        self.process: Any = None
        """The process of Java; None if there is none."""
        self._place = place
        self._progress = progress
        self._is_silent = is_silent

    @property
    def patience(self) -> float:
        return SILENCE_SECONDS if self._is_silent() else PATIENCE_SECONDS

    @property
    def waits(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def address(self) -> str:
        return self._place

    def observe(self, links: Sequence[Link]) -> Mapping[Link, Seen]:
        return {link: Seen(self._progress()) for link in links}

    def cancel(self) -> None:
        """Kill Java now."""
        self.canceled = True
        self.process.kill()

    def break_off(self) -> None:
        self.cancel()
