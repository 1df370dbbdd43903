"""Finds and reports the tables that an Extract should capture but cannot, at the start and periodically.

A table that appears later under a wildcard, is dropped and created again, or loses its TRANDATA must not stop the capture of
other tables: it is reported, and capture continues without it. With DDLOPTIONS ADDTRANDATA, Extract adds TRANDATA to the
table; with ABEND, Extract ends if that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ggshell.clock import Clock
from ggshell.connectors.postgres import describe, schema_trandata_sql, trandata
from ggshell.connectors.postgres.relations import TableObserver
from ggshell.errors import NO_TABLE, ConnectionLostError, DatabaseError, GgsError, NotFoundError
from ggshell.home.events import ReportEvent, Severity
from ggshell.record.name_patterns import matches
from ggshell.types import TableName, split_name

CHECK_SECONDS = 10.0
SHARE = 50
"""The pause after a check, as a multiple of the time that the check took."""
NAMED = 50
"""The maximum number of tables with their own line in the report; INFO EXTRACT, DETAIL shows all of them."""
_NAMES = 5
NEVER_ADDED = "it has no TRANDATA"
NOT_FOUND = "it does not exist"
UNLOGGED = "it is UNLOGGED, so its changes are not in the log"


class TableWatch(TableObserver):
    """Watches the tables of an Extract's TABLE lines. ``missed``: the tables that are not captured, with the reason."""

    def __init__(
        self,
        patterns: Sequence[str],
        wanted: Callable[[TableName], bool],
        report_event: ReportEvent,
        clock: Clock,
        *,
        adds: bool = False,
        abends: bool = False,
        truncates: bool = False,
    ) -> None:
        """``adds``, ``abends``: DDLOPTIONS ADDTRANDATA and ABEND. ``truncates``: GETTRUNCATES."""
        self._patterns = patterns
        self._wanted = wanted
        self._report_event = report_event
        self._clock = clock
        self._adds = adds
        self._abends = abends
        self._truncates = truncates
        self._silent: set[TableName] = set()
        self._warned: set[TableName] = set()
        self._noted: set[str] = set()
        self._next = self._soonest = 0.0
        self._left_out: set[TableName] = set()
        self._partitions: Mapping[str, str] = {}
        self._unlogged: Mapping[str, str] = {}
        self.missed: Mapping[str, str] = {}

    @property
    def shown(self) -> dict[str, str]:
        """What is not captured, for INFO EXTRACT, DETAIL and STATS: tables, partitions, and TRUNCATE of a single one."""
        return {**self._partitions, **self._unlogged, **self.missed}

    def described(self, table: TableName, *, wanted: bool) -> None:
        """Schedule a check soon, because the table may be a new partition whose TRUNCATE is not captured."""
        if self._truncates and (not wanted or self._warned):
            self._next = min(self._next, self._soonest)

    def truncated(self, partition: TableName, root: TableName | None) -> None:
        """Report once that the TRUNCATE of a partition was not captured."""
        if not self._truncates or root is None or not self._wanted(root) or partition in self._left_out:
            return
        self._left_out.add(partition)
        text = f"TRUNCATE of {partition}, a partition of {root}, is not in the trail: no TABLE parameter includes {partition}."
        hint = f"Its rows remain in the targets: delete them there, and add TABLE {partition}"
        self._report_event(Severity.WARNING, "GGS-00547", f"{text} {hint}.")

    def begin(self, connection: Any) -> dict[TableName, trandata.Trandata]:
        """Check the tables before capture begins; return their TRANDATA settings.

        Raises NotFoundError or DatabaseError if no table can be captured.
        """
        found = self.check(connection)
        if not any(state.enabled for state in found.values()) and not self._covered(connection):
            for state in found.values():
                trandata.require_capturable(state)
            first = self._patterns[0] if self._patterns else "*.*"
            raise NotFoundError(f"no table matches {first}", code=NO_TABLE, hint="check schema, spelling and case")
        return found

    def _covered(self, connection: Any) -> bool:
        """Whether new tables would be captured automatically."""
        return bool(schema_trandata_sql.schemas(connection))

    def check_again(self, connection: Any) -> None:
        """Check the tables if it is time."""
        if self._clock.steady() >= self._next:
            self.check(connection)

    def check(self, connection: Any) -> dict[TableName, trandata.Trandata]:
        """Compare the tables to capture with those that can be captured; return their TRANDATA settings.

        With DDLOPTIONS ADDTRANDATA ABEND, raises DatabaseError if any table cannot be captured.
        """
        began = self._clock.steady()
        names, missed = self._names(connection)
        found = trandata.info_all(connection, names)
        if self._adds:
            missed |= self._add(connection, found)
        for state in found.values():
            if not state.enabled:
                missed.setdefault(str(state.table), state.reason)
        self._report(missed, {state.table for state in found.values() if state.enabled})
        self._report_later(found.values())
        self._report_generated(found.values())
        self._report_unlogged(found.values())
        if self._truncates:
            self._report_partitions(found.values())
        now = self._clock.steady()
        self._soonest = now + SHARE * (now - began)
        self._next = max(self._soonest, now + CHECK_SECONDS)
        return found

    def _add(self, connection: Any, found: dict[TableName, trandata.Trandata]) -> dict[str, str]:
        """Add TRANDATA to the tables that lack it; return the failures by table."""
        failed: dict[str, str] = {}
        lacking = [state for state in found.values() if not state.enabled]
        self.missed = {**self.missed, **{str(state.table): state.reason for state in lacking}}
        for state in lacking:
            try:
                found[state.table] = trandata.add(connection, state.table)
            except ConnectionLostError:
                raise
            except GgsError as error:
                failed[str(state.table)] = f"ADD TRANDATA failed: {error.message}"
        return failed

    def _names(self, connection: Any) -> tuple[list[TableName], dict[str, str]]:
        """Return the wanted tables that the log can contain, and the other ones with the reason why it cannot."""
        there = describe.all_tables(connection)
        named = {(table.owner, table.name): table for table in there}
        names: dict[TableName, None] = {}
        missed: dict[str, str] = {}
        for pattern in self._patterns:
            if set(pattern) & set("*?"):
                here = [table for table in there if table.owner != describe.OWN_SCHEMA and matches(pattern, table)]
            else:
                one = named.get(tuple(split_name(pattern)[-2:]))  # type: ignore[arg-type]
                here = [one] if one else []
                if one is None:
                    missed[pattern] = NOT_FOUND
            names.update(dict.fromkeys(table for table in here if self._wanted(table)))
        missed |= {str(table): UNLOGGED for table in names if not there[table]}
        return [table for table in names if there[table]], missed

    def _report(self, missed: dict[str, str], captured: set[TableName]) -> None:
        before, self.missed = self.missed, missed
        new = {name: reason for name, reason in missed.items() if before.get(name) != reason}
        for number, (name, reason) in enumerate(new.items()):
            if number < NAMED:
                self._report_event(Severity.WARNING, *_line(name, reason))
        if len(new) > NAMED:
            text = f"{len(new) - NAMED} more tables are not captured: use INFO EXTRACT group, DETAIL to list them."
            self._report_event(Severity.WARNING, "OGG-05700", text)
        for table in sorted(captured):
            if str(table) in before:
                text = f"Table {table} is now captured. Changes made before its ADD TRANDATA are not in the trail"
                self._report_event(
                    Severity.WARNING, "GGS-00534", f"{text}: load the table as described in HELP LOADING."
                )
        if missed and self._abends:
            name, reason = next(iter(missed.items()))
            raise DatabaseError(
                f"changes of table {name} cannot be captured: {reason}",
                code="OGG-10004",
                hint=f"ADD TRANDATA {name}, or remove DDLOPTIONS ADDTRANDATA ABEND",
            )

    def _report_later(self, found: Iterable[trandata.Trandata]) -> None:
        """Report once each table whose partitions need a statement whenever one is created."""
        for state in found:
            harmless = state.later is trandata.Later.UNNOTED and not self._truncates
            if not state.later or harmless or state.table in self._warned or not state.published:
                continue
            self._warned.add(state.table)
            self._report_event(Severity.WARNING, "GGS-00421", state.warning)

    def _report_generated(self, found: Iterable[trandata.Trandata]) -> None:
        """Report once the columns that the log does not contain."""
        for state in found:
            if state.enabled and state.note and state.note not in self._noted:
                self._noted.add(state.note)
                self._report_event(Severity.INFO, "GGS-00422", state.note)

    def _report_unlogged(self, found: Iterable[trandata.Trandata]) -> None:
        """Report each partition whose rows are not in the log."""
        before, self._unlogged = self._unlogged, {str(name): UNLOGGED for state in found for name in state.unlogged}
        for name in self._unlogged.keys() - before.keys():
            self._report_event(Severity.WARNING, "GGS-00533", f"Partition {name} is not captured: {UNLOGGED}.")

    def _report_partitions(self, found: Iterable[trandata.Trandata]) -> None:
        """Report once the partitions for which TRUNCATE of a single one cannot be captured; keep them for ``shown``."""
        shown: dict[str, str] = {}
        for state in found:
            unwanted = {name for name in state.partitions if not self._wanted(name)}
            lacking = unwanted | set(state.unnoted)
            if lacking:
                needs = "a TABLE parameter that includes them" if unwanted else f"ADD TRANDATA {state.table}"
                shown[str(state.table)] = f"TRUNCATE of a single partition, {_names(lacking, NAMED)}: requires {needs}"
            new = lacking - self._silent
            self._silent |= new
            if new:
                needs = "a TABLE parameter that includes them" if unwanted & new else f"ADD TRANDATA {state.table}"
                text = f"TRUNCATE of a single partition of {state.table} is not captured for {_names(new, _NAMES)}"
                self._report_event(Severity.WARNING, "GGS-00535", f"{text}: requires {needs}.")
        self._partitions = shown


def _names(tables: Collection[TableName], most: int) -> str:
    """Format the first ``most`` tables and the number of further ones."""
    rest = len(tables) - most
    return ", ".join(map(str, sorted(tables)[:most])) + (f" and {rest} more" if rest > 0 else "")


def _line(name: str, reason: str) -> tuple[str, str]:
    """Return the code and the text of a warning."""
    if reason == NEVER_ADDED:
        text = f"The ADD TRANDATA command was not issued for table {name}. No records will be processed for this table."
        return "OGG-05700", f"{text} ADD TRANDATA {name}, or ADD SCHEMATRANDATA for its schema."
    return "GGS-00533", f"Table {name} is not captured: {reason}."
