"""The large engine: Spark, with the data source ``ggtrail``."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ggshell.errors import DatabaseError, GgsError, StatementError, TrailError
from ggshell.query.dialect import COMMENTS, for_spark, literal, pieces, spelled
from ggshell.query.local import LocalEngine, answered
from ggshell.query.pushdown import conditions_text
from ggshell.query.session import WarmSession, out_of_memory
from ggshell.query.slices import in_task, sliced
from ggshell.query.trail_read import HomeKeys, spark_ddl
from ggshell.query.views import PARTS, ConnectorView, FirstHalf, ParquetView, RowsView, View
from ggshell.types import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS_A_CORE = 4
"""Each task costs some tenths of a second, and no task should hold up all others."""
_NUMBERS = itertools.count(1)
_TRAIL_FAULT = re.compile(r"ggshell\.errors\.\w+: ([^\n]*)")
_STATE = re.compile(r"\s*SQLSTATE: (\w{5})")
_ASKED_WRONGLY = frozenset({"0A", "21", "22", "42", "54"})
"""SQLSTATE classes that blame the statement: not supported, cardinality, data, syntax and names, limits."""
_CAUSE = re.compile(r"^(?:Caused by|): [\w.$]+: ([^\n]+)", re.MULTILINE)


def ask_spark(
    session: WarmSession,
    sql: str,
    views: Sequence[View],
    on_progress: Callable[[str], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> pa.Table:
    """Run a query on Spark.

    Raises StatementError for invalid SQL, TrailError for damage, StateError if it was stopped, DatabaseError for any other
    failure.
    """
    names = {view.name.lower(): f"ggshell_{view.name}_{next(_NUMBERS)}" for view in views}
    text = for_spark(_renamed(spelled(sql), names))

    def work(spark: SparkSession) -> pa.Table:
        for view in views:
            frame = _data_frame(spark, view, once=scans_once(text, names[view.name.lower()]))
            frame.createOrReplaceTempView(names[view.name.lower()])
        return _answer(spark, text, names)

    return _run(session, work, sql, names, on_progress, stopped)


def ask_in_parts(
    session: WarmSession,
    parts: Sequence[FirstHalf],
    schema: pa.Schema,
    sql: str,
    on_progress: Callable[[str], None] | None = None,
) -> pa.Table:
    """Run a query over ``parts``, the results of the first halves, each computed slice by slice in separate tasks.

    Raises the same errors as ``ask_spark``.
    """
    names = {PARTS: f"ggshell_{PARTS}_{next(_NUMBERS)}"}
    text = for_spark(_renamed(spelled(sql), names))
    at_hand = [answered(LocalEngine(), part, schema) for part in parts if isinstance(part.view, RowsView)]
    slices = [each for part in parts if not isinstance(part.view, RowsView) for each in sliced(part)]

    def work(spark: SparkSession) -> pa.Table:
        frames = [spark.createDataFrame(table) for table in at_hand]
        if slices:
            tasks = min(len(slices), TASKS_A_CORE * session.cores(spark) or len(slices))
            numbers = spark.range(0, len(slices), 1, tasks)
            frames.append(numbers.mapInArrow(in_task(slices, schema), spark_ddl(schema)))
        frame = functools.reduce(lambda one, other: one.unionAll(other), frames)
        if not scans_once(text, names[PARTS]):
            frame = frame.cache()
        try:
            frame.createOrReplaceTempView(names[PARTS])
            return _answer(spark, text, names)
        finally:
            frame.unpersist()

    return _run(session, work, sql, names, on_progress)


def _answer(spark: SparkSession, text: str, names: Mapping[str, str]) -> pa.Table:
    """Run a statement and drop its views afterwards."""
    try:
        return spark.sql(text).toArrow()
    finally:
        for name in names.values():
            spark.catalog.dropTempView(name)


def _run(
    session: WarmSession,
    work: Callable[[SparkSession], pa.Table],
    sql: str,
    names: Mapping[str, str],
    on_progress: Callable[[str], None] | None,
    stopped: Callable[[], bool] = lambda: False,
) -> pa.Table:
    try:
        return session.run(work, on_progress, stopped)
    except (GgsError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise refusal(error, sql, names, session.last_lines()) from error


def _renamed(sql: str, names: dict[str, str]) -> str:
    """Replace view names by unique ones, so that concurrent queries do not collide. The original names stay as aliases.

    A name that the statement defines itself (WITH) is not replaced.
    """
    found = pieces(sql)
    words = [place for place, piece in enumerate(found) if not piece.isspace() and not piece.startswith(COMMENTS)]
    plain = [found[place].lower() for place in words]
    own = _own_names(plain)
    for number in _view_places(plain):
        name, place = plain[number].strip('"'), words[number]
        if name not in names or name in own:
            continue
        after = plain[number + 1] if number + 1 < len(plain) else ""
        alone = not after or not re.match(r"[\w\"]", after) or after in _CLAUSES
        found[place] = names[name] + (f" AS {quote(name)}" if alone else "")
    return "".join(found)


def _own_names(words: Sequence[str]) -> set[str]:
    """The names defined by WITH: ``name AS (``, or ``name (columns) AS (`` for the first one."""
    return {
        word.strip('"')
        for before, word, *after in zip(words, words[1:], words[2:], words[3:], strict=False)
        if (before in _WITH and after[0] == "(") or (before in (*_WITH, ",") and after == ["as", "("])
    }


def _view_places(words: Sequence[str]) -> Iterator[int]:
    """The indexes of words that name a view: after FROM and JOIN, and after commas in such a list."""
    lists, named = [False], False
    for number, word in enumerate(words):
        if named and word not in ("(", ")", ","):
            yield number
        named = word in ("from", "join") or (word == "," and lists[-1])
        if word == "(":
            lists.append(False)
        elif word == ")" and len(lists) > 1:
            lists.pop()
        elif word in ("from", "join"):
            lists[-1] = True
        elif word in _ENDS:
            lists[-1] = False


_WITH = ("with", "recursive")
_ENDS = frozenset(
    re.findall(r"\w+", "select where group order having limit union intersect except window qualify offset lateral")
)
"""Words that end a list of views."""
_CLAUSES = _ENDS | frozenset(
    re.findall(r"\w+", "join inner left right full cross on using pivot unpivot tablesample natural semi anti")
)


def scans_once(sql: str, name: str) -> bool:
    """Whether a statement certainly scans a view only once. With WITH it can scan it again for each reference."""
    words = [piece.strip('"').lower() for piece in pieces(sql)]
    return words.count(name.lower()) == 1 and "with" not in words


def _data_frame(spark: SparkSession, view: View, *, once: bool) -> DataFrame:
    if isinstance(view, RowsView):
        return spark.createDataFrame(view.table)
    if isinstance(view, ConnectorView):
        return view.frame(spark)
    if isinstance(view, ParquetView):
        return spark.read.option("mergeSchema", "true").parquet(*view.files)
    keys = view.keys or HomeKeys("")
    return (
        spark.read.format("ggtrail")
        .option("columns", ",".join(view.columns))
        .option("files", json.dumps(view.files))
        .option("home", keys.home)
        .option("wallet", keys.wallet)
        .option("mode", view.on_damage.value)
        .option("upToCut", "true")  # the caller reports where the file is cut
        .option("conditions", conditions_text(view.conditions))
        .option("pushdown", str(once).lower())
        .load()
        .where(for_spark(_where(view.conditions)))
    )


def _where(conditions: Sequence[Any]) -> str:
    said = ["1 = 1"]
    for each in conditions:
        values = each.value if each.comparison == "in" else (each.value,)
        texts = [
            f"timestamp_micros({value.timestamp() * 1e6:.0f})" if hasattr(value, "timestamp") else literal(value)
            for value in values
        ]
        right = f"({', '.join(texts)})" if each.comparison == "in" else texts[0]
        said.append(f"{quote(each.column)} {each.comparison} {right}")
    return " AND ".join(said)


def refusal(
    error: BaseException, sql: str, names: Mapping[str, str] | None = None, log: Sequence[str] = ()
) -> GgsError:
    """Spark's error message, without the stack traces of Java and Python.

    ``names`` maps the views' original names to their names in the engine; ``log``: the last lines of the log, which name the
    host of a failed task where the error does not.
    """
    text = str(error)
    for asked, name in (names or {}).items():
        text = text.replace(f"`{name}`", f"`{asked}`").replace(name, asked)
    fault = _TRAIL_FAULT.findall(text)
    if fault:
        return TrailError(fault[-1].strip())
    if "OutOfMemoryError" in text or "Java heap space" in text:
        return out_of_memory()
    lacks = _lacks(text, log)
    if lacks is not None:
        return lacks
    state = _STATE.search(text)
    if state is not None and state[1][:2] in _ASKED_WRONGLY:
        return StatementError(_flat(text[: state.start()]), code="GGS-00703", source=" ".join(sql.split()))
    causes = _CAUSE.findall(text)
    short = text[: state.start()] if state is not None else causes[-1] if causes else text.partition("\n")[0]
    return DatabaseError(f"Spark: {_flat(short)}", code="GGS-00709", hint="see dirrpt/spark.log for the full error")


def _lacks(text: str, log: Sequence[str]) -> GgsError | None:
    """The error for a host of the cluster that lacks what tasks need; None for other errors."""
    host = _HOST.search(text) or next((found for line in reversed(log) if (found := _HOST.search(line))), None)
    where = f"host {host[1]} of the cluster" if host else "a host of the cluster"
    for pattern, what, hint in _LACKS:
        match = pattern.search(text)
        if match:
            return DatabaseError(f"{where} {what.format(*match.groups())}", code="GGS-00717", hint=hint)
    return None


_HOST = re.compile(r"\((\S+) executor \w+\)")
_INSTALL = "install it there for the Python that spark.pyspark.python in dirprm/spark.conf names (docs/clusters.md)"
_LACKS = (
    (re.compile(r"ModuleNotFoundError: No module named '(\w+)"), "lacks the Python library {}", _INSTALL),
    (re.compile(r"\[PACKAGE_NOT_INSTALLED\] (\w+)"), "lacks the Python library {}", _INSTALL),
    (
        re.compile(r"different(?: minor)? version:? ([\d.]+\d),? than that in driver:? ([\d.]+\d)"),
        "runs Python {}, but the driver runs {}",
        "set spark.pyspark.python in dirprm/spark.conf to a Python of the driver's version on every host",
    ),
    (
        re.compile(r"Cannot run program \"([^\"]+)\""),
        "cannot run {}",
        "set spark.pyspark.python in dirprm/spark.conf to a Python that every host has",
    ),
)
"""What the text of an error shows that a host lacks."""


def _flat(text: str) -> str:
    return " ".join(text.split())
