"""MariaDB or MySQL as an Extract's source: the settings that it needs, the position in its log, and what it still keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ggshell.clock import SystemClock
from ggshell.connectors.ddl_choice import DdlChoice
from ggshell.connectors.mysql.ddl_capture import DdlCapture
from ggshell.connectors.mysql.file_events import LogReader
from ggshell.connectors.mysql.gtid_search import GtidSearch
from ggshell.connectors.mysql.gtids import parse_position
from ggshell.connectors.mysql.log import LastRead, MysqlLog, TableRules
from ggshell.connectors.mysql.log_files import base_of, file_number, log_end, log_files, value_of
from ggshell.connectors.mysql.login import parse_login
from ggshell.connectors.mysql.requirements import (
    require_captured,
    require_named_types,
    require_no_versions,
    server_identity,
)
from ggshell.connectors.mysql.session import ServerVersion, connect, server_version, variables
from ggshell.connectors.mysql.start_position import ReadFrom, Sought, last_read, read_from
from ggshell.connectors.mysql.unlogged_changes import CASCADES, cascades_text, cascading_tables
from ggshell.connectors.mysql.wire import ReplicationWire, server_number
from ggshell.connectors.source import Places, SourceDatabase, SourceProcess
from ggshell.home.checkpoint import GroupOptions
from ggshell.home.events import Severity
from ggshell.home.shown_place import PlacePart, ShownPlace
from ggshell.parameters.process_parameters import ExtractParameters
from ggshell.parameters.table_patterns import images_of, keycols_of
from ggshell.pipeline.capture.cache import OpenTransaction
from ggshell.pipeline.capture.source import LogState
from ggshell.record.transaction import Completed
from ggshell.trail.fileheader import Producer
from ggshell.types import Csn, CsnForm, LogPosition, TableName

if TYPE_CHECKING:
    from pymysql.connections import Connection

_POSITION = 0xFFFFFFFF
_FOLDS = "lower_case_table_names"
_FEW_FILES = 2
"""With so few files left before the one that is read, the server may soon purge it."""


class MysqlSource(SourceDatabase):
    """A server whose binary log is captured."""

    def __init__(
        self, context: SourceProcess, parameters: ExtractParameters, wanted: Callable[[TableName], bool], login: str
    ) -> None:
        self._context = context
        self._parameters = parameters
        self._login = login
        self._rules = TableRules(
            wanted,
            lambda name: keycols_of(parameters.tables, name),
            lambda name: images_of(parameters.tables, name),
            parameters.replicates,
            self._ddl(wanted),
        )
        self._log: MysqlLog | None = None
        self._control: Connection[Any] | None = None
        self._version = ServerVersion(True, (0, 0, 0), "")
        self._server = context.checkpoint.options.log_server
        self._last = LastRead(*(context.checkpoint.options.log_last or ()))
        self._base = 0
        self._facts: dict[str, str] = {}
        self._warned = ""
        self._cascading: list[TableName] = []

    def _ddl(self, wanted: Callable[[TableName], bool]) -> DdlCapture | None:
        """How DDL is captured; None without the parameter DDL."""
        parameters, context = self._parameters, self._context
        if parameters.ddl is None:
            return None
        choice = DdlChoice(parameters, wanted, context.statistics, context.report.event)
        return DdlCapture(choice, parameters.ddl_options.replicates)

    def noted(self, options: GroupOptions) -> GroupOptions:
        return options._replace(
            source_kind="mysql", log_server=self._server, log_last=(self._last.csn, self._last.gtid)
        )

    @property
    def end(self) -> int:
        return self._log.end if self._log is not None else 0

    def producer(self, group: str) -> Producer:
        address = parse_login(self._login)
        with connect(self._login) as connection:
            self._version = server_version(connection)
        self._facts = {"DBNAME": address.database, "DBUSER": address.user, "DBVERSION": self._version.text}
        return Producer(group, "ggshell Capture", "MySQL", address.database or address.shown, self._version.text)

    @property
    def bounded_recovery_refusal(self) -> str:
        return "transactions are in a binary log as a whole"

    def database_fact(self, detail: str) -> str | None:
        return self._facts.get(detail)

    def open(self, after: Completed, begin: Csn, start: LogPosition | None = None) -> MysqlLog:
        """Check the server, and start reading after the last transaction in the trail."""
        process = self._context
        number = server_number((str(process.home.root), process.group))
        with connect(self._login) as connection:
            self._version = server_version(connection)
            require_captured(connection, self._version)
            require_named_types(connection, self._rules.wanted)
            require_no_versions(connection, self._rules.wanted)
            self._report_cascades(connection)
            rules = self._rules._replace(folds=variables(connection, _FOLDS).get(_FOLDS) == "1")
            server = server_identity(connection, self._version)
            search = None if self._version.mariadb else GtidSearch(connection, LogReader(self._login, number))
            found = read_from(connection, self._sought(after, begin), server, search)
        wire = ReplicationWire.open(self._login, number, found.at, f"ggshell extract {process.group}")
        position = parse_position(found.gtid) if self._version.mariadb else {}
        last = LastRead(self._last.csn, found.gtid) if self._last.csn else LastRead(max(found.csn - 1, 0), found.gtid)
        self._log = MysqlLog(wire, rules, SystemClock(), found.base, found.csn, last, position, self._warn)
        self._base, self._server = found.base, server
        self._report_start(after, found)
        return self._log

    def _report_cascades(self, connection: Connection[Any]) -> None:
        """Report, once a process, the tables whose foreign keys change rows that the server does not log."""
        tables = cascading_tables(connection, self._rules.wanted)
        if tables and tables != self._cascading:
            self._warn(CASCADES, cascades_text(tables))
        self._cascading = tables

    def _sought(self, after: Completed, begin: Csn) -> Sought:
        """The last transaction that was read: in the trail or, later in the log, one of which nothing was captured."""
        options, read = self._context.checkpoint.options, self._context.checkpoint.read
        recovery, current = (each.csn if isinstance(each, LogPosition) else 0 for each in (read.recovery, read.current))
        gtid = next(iter(after.xids or ()), "")
        trail = LastRead(after.csn.value, gtid if "-" in gtid else "")
        self._last = last_read(LastRead(*(options.log_last or (begin.value, ""))), trail)
        return Sought(self._last, recovery, current, options.log_server)

    def _report_start(self, after: Completed, found: ReadFrom) -> None:
        text = f"Capture begins after CSN {after.csn}, {found.at.file or 'GTID'} {found.at.gtid or found.at.position}."
        self._context.report.event(Severity.INFO, "OGG-01515", text)
        if found.moved:
            text = f"The login connects to a different server than before: capture continues after GTID {found.gtid}."
            self._context.report.event(Severity.WARNING, "GGS-00480", text)

    def check(self) -> str | None:
        """Check the end of the log, and whether the server still keeps what is being read; return a warning, or None."""
        log = self._log
        if log is None:
            return None
        if self._control is None:
            self._control = connect(self._login, program=f"ggshell extract {self._context.group}")
        end = log_end(self._control, self._version)
        log.end = value_of(self._base, file_number(end.file), end.position)
        current = (log.state.safe >> 32) - self._base
        files = log_files(self._control)
        newer = file_number(end.file) - current
        warning = ""
        if newer > _FEW_FILES and files and current - files[0].number < 1:
            warning = (
                f"Extract reads the oldest log file that the server keeps ({files[0].name}): it may be purged before it is"
                f" captured. {newer} newer files exist."
            )
        told, self._warned = self._warned, warning
        return warning if warning and not told else None

    def places(self, state: LogState, oldest: OpenTransaction | None) -> Places:
        if self._log is not None:
            self._last = self._log.last_read(state.safe)
        current = self._position(state.safe)
        return Places(self._position(oldest.begin) if oldest is not None and oldest.begin else current, current)

    def _position(self, value: int) -> LogPosition:
        return LogPosition((value >> 32) - base_of(value >> 32), value & _POSITION, value)

    def shown(self, place: int) -> ShownPlace:
        found, csn = self._position(place), str(Csn(place, CsnForm.LOG))
        file = (PlacePart("seqno", "LogNum", found.sequence), PlacePart("rba", "LogPos", found.rba))
        return ShownPlace(csn, file, (PlacePart("csn", "CSN", csn),))

    def read_position(self, place: int) -> ShownPlace:
        shown, log = self.shown(place), self._log
        gtid = log.last_read(place).gtid if log is not None else ""
        return shown._replace(after=(*shown.after, PlacePart("gtid", "GTID", gtid))) if gtid else shown

    def restart_text(self, oldest: int, persisted: LogPosition | None) -> str:
        place = self._position(oldest)
        return (
            "Oldest log file necessary to restart Extract is:\n"
            f"LogNum: {place.sequence}, LogPos: {place.rba}, CSN {Csn(oldest, CsnForm.LOG)}"
        )

    def close(self) -> None:
        control, self._control = self._control, None
        if control is not None and control.open:
            control.close()
        self._log = None

    def _warn(self, code: str, text: str) -> None:
        self._context.report.event(Severity.WARNING, code, text)
