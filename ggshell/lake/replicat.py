"""The process of a Replicat that delivers to a lake: Spark's Structured Streaming reads the trail, this answers for it."""

from __future__ import annotations

import contextlib
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ggshell.errors import ConnectionLostError, GgsError, ParameterError, StateError, TrailError
from ggshell.lake.commits import Commit, CommitLog
from ggshell.lake.delivery import LakeDelivery
from ggshell.lake.forms import open_tables
from ggshell.lake.target import lake_target
from ggshell.params.files import load_replicat
from ggshell.process.home_wallet import wallet_of
from ggshell.process.lifecycle import GroupContext, run_group
from ggshell.process.progress import Progress
from ggshell.process.tables import TableFilter
from ggshell.spark.session import WarmSession, out_of_memory
from ggshell.spark.settings import load_settings
from ggshell.spark.trail_keys import HomeKeys
from ggshell.store.checkpoint import Checkpoint, GroupType
from ggshell.store.events import Severity
from ggshell.store.home import Home
from ggshell.trail.name import TrailName
from ggshell.trail.visible import VisibleEnd
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOOK_SECONDS = 0.5
BATCH_BYTES = "64MB"
_NO_MEMORY = ("OutOfMemoryError", "Java heap space", "TaskResultLost")
_CAUSE = re.compile(r"^(?:Caused by: |: )[\w.$]+: ([^\n]*\S)", re.MULTILINE)


def run(home: Home, group: str) -> int:
    """Run a lake Replicat until it is told to stop; the exit code."""
    return run_group(home, group, GroupType.REPLICAT, _body)


def _body(context: GroupContext) -> None:
    LakeReplicat(context).run()


class LakeReplicat:
    """One run.  ``MAP`` lines say which tables go to the lake, under their own names."""

    def __init__(self, context: GroupContext) -> None:
        self._context = context
        parameters = load_replicat(context.home.parameters(context.group))
        for each in parameters.maps:
            if each.clauses.active or each.target.replace("*", "") not in ("", ".", each.source.replace("*", "")):
                raise ParameterError(
                    f"MAP {each.source}, TARGET {each.target}: tables go to a lake under their own names, whole",
                    where=f"{context.home.parameters(context.group)}:{each.line}",
                    hint=f"MAP {each.source}, TARGET {each.source};",
                )
        self._wanted = TableFilter([each.source for each in parameters.maps], parameters.excludes)
        checkpoint = context.checkpoint
        self._trail = TrailName.parse(checkpoint.read.trail, context.home.root)
        self._progress = Progress(context.clock, checkpoint.record_time, checkpoint.caught_up)
        self._target = lake_target(context.home, str(checkpoint.options["target"]))
        self._log = CommitLog(self._target, context.group)
        require_lake(self._log, checkpoint)
        self._log.claim()
        self._held = contextlib.ExitStack()
        self._held.enter_context(self._log.held())
        tables = open_tables(self._target, context.group, self._warn)
        self._delivery = LakeDelivery(tables, self._trail, self._log, self._wanted, self._counted, self._warn)
        self._saved: Commit | None = None
        self._refused: GgsError | None = None
        self._end = VisibleEnd(self._trail)
        context.verb("GETLAG", lambda _: self._lag())
        context.verb("STATUS", lambda _: self._status())

    def run(self) -> None:
        """Deliver until stopped.  Raises what a batch raised; ConnectionLostError when Spark has ended."""
        home, runner = self._context.home, self._context.runner
        session = WarmSession(load_settings(home.root / "dirprm" / "spark.conf"), home.root / "dirrpt" / "spark.log")
        try:
            session.warm()
            while session.is_starting and not runner.stop_requested:
                runner.wait([], LOOK_SECONDS)  # requests are answered meanwhile
            if runner.stop_requested:
                return
            failure = self._deliver(session.get())
            if self._refused is not None:
                raise self._refused
            if failure is not None:
                raise out_of_memory() if session.lacked_memory else stream_failure(failure)
        finally:
            self._end.close()
            session.close()
            self._held.close()

    def _deliver(self, spark: Any) -> BaseException | None:
        """Until stopped; what ended the stream before that."""
        runner = self._context.runner
        try:
            query = self._start(spark)
            while not runner.stop_requested and query.isActive:
                runner.wait([], LOOK_SECONDS)
                self._follow()
            if query.isActive:
                self._finish(query)
                query.stop()
            self._follow()
            return query.exception()  # type: ignore[no-any-return]
        except GgsError:
            raise
        except Exception as error:  # noqa: BLE001 - Py4J raises what it likes when Java has gone
            return error

    def _finish(self, query: Any) -> None:
        """Deliver what the trail held when the stop was asked for.

        Not all that comes: whoever goes on writing would hold the stop up for ever.
        """
        runner, end = self._context.runner, self._end.read()
        idle = threading.Thread(target=_settle, args=(query,), name="lake-settle", daemon=True)
        idle.start()
        while idle.is_alive() and query.isActive and not runner.forced and self._refused is None:
            self._follow()
            done = self._delivery.committed
            if end is None or (done is not None and done.position >= end):
                return
            idle.join(LOOK_SECONDS)
            runner.wait([], 0)

    def _start(self, spark: Any) -> Any:
        """The stream: where its own checkpoint stands, or behind the last commit where that is lost."""
        done = self._delivery.committed
        begin = done.position if done is not None else self._context.checkpoint.read.current
        memory = stream_memory(self._log.root, done)
        keys = HomeKeys.of(self._context.home, wallet_of(self._context.home))
        reader = (
            spark.readStream.format("ggtrail")
            .option("path", str(self._trail))
            .option("home", keys.home)
            .option("wallet", keys.wallet)
            .option("maxBytesPerTrigger", BATCH_BYTES)
        )
        if isinstance(begin, TrailPosition) and begin != TrailPosition(0, 0):
            reader = reader.option("startingSeqno", begin.seqno).option("startingRba", begin.rba)
        behind = done.batch if done is not None else "none"
        text = f"Delivery to {self._target.folder} ({self._target.form}) begins behind batch {behind}."
        self._context.report.event(Severity.INFO, "GGS-00730", text)
        return (
            reader.load()
            .writeStream.foreachBatch(lambda rows, number: self._batch(rows, number + memory.first))
            .option("checkpointLocation", str(memory.folder))
            .trigger(processingTime="1 second")
            .start()
        )

    def _batch(self, rows: DataFrame, number: int) -> None:
        try:
            self._delivery.write(rows.sparkSession, rows, number)
        except GgsError as error:
            self._refused = error
            raise

    def _follow(self) -> None:
        """Have checkpoint, lag and statistics follow what is committed."""
        done = self._delivery.committed
        if done is not None and done is not self._saved:
            self._saved = done
            self._progress.processed(done.commit_time)
            self._save(done)
        if self._at_end():
            self._progress.reached_end()
        else:
            self._progress.behind()

    def _at_end(self) -> bool:
        end, done = self._end.read(), self._delivery.committed
        return end is None or (done is not None and done.position >= end)

    def _save(self, done: Commit) -> None:
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

    def _lag(self) -> dict[str, Any]:
        if not self._at_end():
            self._progress.behind()
        return self._progress.lag_answer()

    def _status(self) -> dict[str, Any]:
        done = self._delivery.committed
        place = done.position if done is not None else TrailPosition(0, 0)
        read = self._progress.read_answer(str(self._trail), place)
        return {"status": self._progress.reading, "read": read, "write": []}


def require_lake(log: CommitLog, checkpoint: Checkpoint) -> None:
    """Raises StateError where a group has delivered to a lake that holds nothing of it: a folder was moved, or is not mounted,
    and going on there would leave out all that came before."""
    if checkpoint.latest_csn and log.latest() is None:
        folder, group = log.root.parents[1], log.root.name
        raise StateError(
            f"lake {folder} holds nothing of {group}, which has delivered up to CSN {checkpoint.latest_csn}",
            code="GGS-00734",
            hint=f"put the folder back; or ALTER REPLICAT {group}, EXTSEQNO n, EXTRBA n says where to begin anew",
        )


class StreamMemory(NamedTuple):
    """A folder in which Spark keeps what its stream has done, and the number of the first batch that it knows of."""

    folder: Path
    first: int


def stream_memory(root: Path, done: Commit | None) -> StreamMemory:
    """Spark's memory of a stream: the one that there is, or a new one from behind the last commit."""
    if (root / "stream").is_dir():
        return StreamMemory(root / "stream", 0)
    numbers = [int(folder.name.removeprefix("stream-")) for folder in root.glob("stream-*")]
    if numbers or done is not None:
        first = max(numbers, default=done.batch + 1 if done is not None else 0)
        return StreamMemory(root / f"stream-{first}", first)
    return StreamMemory(root / "stream", 0)


def _settle(query: Any) -> None:
    """Wait until a stream has read all that there is."""
    with contextlib.suppress(Exception):  # what ended the stream, it tells itself
        query.processAllAvailable()


def stream_failure(failure: BaseException) -> GgsError:
    """A stream's failure in one line: damage of a trail and a lack of memory are told as such, all else by its last cause."""
    text = str(failure)
    line = next((line.strip() for line in text.splitlines() if "TrailError" in line), "")
    if line:
        return TrailError(line.partition("TrailError:")[2].strip() or line)
    if any(word in text for word in _NO_MEMORY):
        return out_of_memory()
    causes = _CAUSE.findall(text) or text.splitlines()[:1] or ["see dirrpt/spark.log"]
    return ConnectionLostError(
        f"Spark's stream has ended: {causes[-1].strip()[:300]}", hint="dirrpt/spark.log has it whole"
    )
