"""The loader of parameter files for all processes. It runs before they connect to a database.

``ggshell check`` calls the same functions. A file that the check accepts is also accepted at START, and a file that START
would refuse because of its own content is refused by the check with the same code and message.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ggshell.errors import GgsError, ParameterError, StatementError
from ggshell.parameters.access_rules import access_rule
from ggshell.parameters.ddl_rules import check_ddl
from ggshell.parameters.lake_tables import table_layout
from ggshell.parameters.lines import Parameter, ParameterStatement, file_text, first_of, located, statements
from ggshell.parameters.process_parameters import (
    ExtractParameters,
    Globals,
    ManagerParameters,
    ReplicatParameters,
    extract_parameters,
    globals_parameters,
    manager_parameters,
    replicat_parameters,
)
from ggshell.parameters.reperror import RefusalRules, refusal_rules, rules_of_map
from ggshell.parameters.row_clauses import clauses_of
from ggshell.parameters.service_parameters import ServiceParameters, service_parameters
from ggshell.parameters.source_lines import Reader
from ggshell.parameters.trail_statements import encryption_of
from ggshell.pipeline.heartbeat.names import heartbeat_names
from ggshell.pipeline.transform.clauses import Clauses
from ggshell.trail.name import TrailName
from ggshell.trail.releases import compatibility_of
from ggshell.types import TableName, split_name

KINDS = ("Extract", "Replicat", "Manager", "Service", "GLOBALS")


class LoadedParameters(NamedTuple):
    """A parameter file as its process reads it.

    ``statements``: the statements in order, each with its error if it has one. ``errors``: errors in INCLUDEs, macros and
    statement ends. ``whole``: the error of the file as a whole. ``typed``: the parameters, or None if there is any error.
    """

    statements: tuple[ParameterStatement, ...]
    errors: tuple[ParameterError, ...] = ()
    whole: ParameterError | None = None
    typed: Any = None

    @property
    def parameters(self) -> list[Parameter]:
        return [each.parameter for each in self.statements if each.parameter is not None]

    @property
    def refusals(self) -> list[ParameterError]:
        """All errors, in the order of the file."""
        found = [*self.errors, *(each.error for each in self.statements if each.error is not None)]
        return sorted(found, key=lambda error: error.line) or ([self.whole] if self.whole is not None else [])


def examine(
    text: str, path: Path, process: str, read: Reader | None = None, group: str | None = None
) -> LoadedParameters:
    """Parse a file's text for one of ``KINDS``; errors are returned in the result, not raised.

    ``read``: reads the included files, if not as a process does. ``group``: the group that the EXTRACT or REPLICAT line must
    name, by default that of a file in dirprm; empty for any.
    """
    parsed, errors = statements(text, path, process, read)
    found = tuple(_verified(each) for each in parsed)
    loaded = LoadedParameters(found, tuple(errors))
    if loaded.refusals:
        return loaded
    try:
        typed = _BUILDERS[process](loaded.parameters, path)
        _require_group(loaded.parameters, process, _group_of(path) if group is None else group)
        return loaded._replace(typed=typed)
    except ParameterError as error:
        return loaded._replace(whole=error)


def _group_of(path: Path) -> str:
    """Return the group that a parameter file belongs to by its name, empty outside dirprm."""
    return path.stem if path.parent.name.lower() == "dirprm" else ""


def _require_group(found: list[Parameter], process: str, group: str) -> None:
    """Raise ParameterError if the EXTRACT or REPLICAT line names another group than the one that the file belongs to."""
    line = next((item for item in found if item.name == process.upper() and "group_name" in item.args), None)
    if not group or line is None or str(line.args["group_name"]).upper() == group.upper():
        return
    raise line.wrong(
        f"Group name [{line.args['group_name']}] in parameter file does not match with specified PROCESSID [{group.upper()}]",
        "group_name",
        code="OGG-02288",
        hint=f"write {line.name} {group.lower()}, or rename the file to {str(line.args['group_name']).lower()}.prm",
    )


def load(path: Path, process: str, group: str | None = None) -> LoadedParameters:
    """Read a parameter file that must be valid. ``group``: see ``examine``.

    Raises ParameterError for the first error, with the others in its hint, and StoreError if the file cannot be read.
    """
    loaded = examine(file_text(path), path, process, group=group)
    if loaded.refusals:
        raise first_of(loaded.refusals)
    return loaded


def load_extract(path: Path, group: str | None = None) -> ExtractParameters:
    """Load the parameters of an Extract or a pump. ``group``: see ``examine``. Raises ParameterError, StoreError."""
    found: ExtractParameters = load(path, "Extract", group).typed
    return found


def load_replicat(path: Path, group: str | None = None) -> ReplicatParameters:
    """Load the parameters of a Replicat. ``group``: see ``examine``. Raises ParameterError, StoreError."""
    found: ReplicatParameters = load(path, "Replicat", group).typed
    return found


def load_refusal_rules(path: Path, group: str | None = None) -> RefusalRules:
    """Load the error-handling rules (REPERROR) of a Replicat's file. ``group``: see ``examine``.

    Raises ParameterError, StoreError.
    """
    return refusal_rules(load(path, "Replicat", group).parameters)


def load_manager(path: Path) -> ManagerParameters:
    """Load Manager's parameters, or the defaults if there is no file. Raises ParameterError, StoreError."""
    found: ManagerParameters = load(path, "Manager").typed if path.exists() else ManagerParameters()
    return found


def load_service(path: Path) -> ServiceParameters:
    """Load the service's parameters, or the defaults if there is no file. Raises ParameterError, StoreError."""
    found: ServiceParameters = load(path, "Service").typed if path.exists() else ServiceParameters()
    return found


def load_globals(path: Path) -> Globals:
    """Load the GLOBALS file, or the defaults if there is none. Raises ParameterError, StoreError."""
    found: Globals = load(path, "GLOBALS").typed if path.exists() else Globals()
    return found


_BUILDERS: dict[str, Callable[[list[Parameter], Path], Any]] = {
    "Extract": extract_parameters,
    "Replicat": replicat_parameters,
    "Manager": lambda found, _: manager_parameters(found),
    "Service": service_parameters,
    "GLOBALS": lambda found, _: globals_parameters(found),
}


def _verified(statement: ParameterStatement) -> ParameterStatement:
    """Parse a statement's values with the code that uses them; return the statement, with the error if there is one."""
    item = statement.parameter
    read = _READERS.get(item.name) if item is not None else None
    if item is None or read is None:
        return statement
    try:
        read(item)
    except ParameterError as error:
        return statement._replace(parameter=None, error=error)
    except StatementError as error:
        return statement._replace(parameter=None, error=located(error, statement.raw))
    except GgsError as error:
        wrong = item.wrong(error.message, code=error.code, hint=error.hint)
        return statement._replace(parameter=None, error=wrong)
    return statement


def _refusals(item: Parameter) -> None:
    refusal_rules([item])


def _map(item: Parameter) -> None:
    _table(item, "source_table")
    _table(item, "target")
    _clauses(item)
    rules_of_map(item)
    thread, threadrange = item.args.get("thread", ""), item.args.get("threadrange", "")
    if not (thread or threadrange):
        return
    from ggshell.pipeline.apply.threads import MOST_THREADS, thread_rule  # imports numpy, which most files do not need

    thread_rule(thread, threadrange, MOST_THREADS, barrier=False, where=item.place)


def _captured(item: Parameter) -> None:
    _table(item, "table")
    if "target" in item.args:
        _table(item, "target")
    _clauses(item)


def _clauses(item: Parameter) -> None:
    found = clauses_of(item, frozenset())
    _compile(found)
    if found.exception_target is not None:
        _inner(item, found.exception_target.clauses)


def _inner(item: Parameter, clauses: Clauses) -> None:
    """Compile the clauses of MAPEXCEPTION; their errors are reported at the column of MAPEXCEPTION."""
    try:
        _compile(clauses)
    except StatementError as error:
        error.column = item.column("mapexception")
        raise


def _compile(clauses: Clauses) -> None:
    if clauses.column_map or clauses.filters or clauses.where or clauses.tokens or clauses.queries:
        from ggshell.pipeline.transform.program import verify  # imports numpy, which most files do not need

        verify(clauses)


def _table(item: Parameter, argument: str) -> None:
    """Check the name of a table or a table pattern: schema and name, optionally preceded by a catalog."""
    text = str(item.args[argument])
    try:
        parts = len(split_name(text))
    except ValueError:
        parts = 0
    if parts not in (2, 3):
        raise item.wrong(f"{text} is not a valid table name", argument, hint="write schema.table")


def _excluded(item: Parameter) -> None:
    _table(item, "table")


def _lake_table(item: Parameter) -> None:
    _table(item, "table")
    table_layout(item)


def _trail(item: Parameter) -> None:
    if "trail" in item.args:
        TrailName.parse(str(item.args["trail"]), Path())
    release = str(item.args.get("format", ("", ""))[1])
    try:
        if release:
            compatibility_of(release)
    except ValueError as error:
        raise item.wrong(f"FORMAT RELEASE {release}: {error}", "format") from None


def _heartbeat_table(item: Parameter) -> None:
    try:
        heartbeat_names("any", str(item.args.get("table", "")))
    except ValueError as error:
        raise item.wrong(str(error), "table") from None


def _schema(item: Parameter) -> None:
    try:
        heartbeat_names(str(item.args["schema"]))
    except ValueError as error:
        raise item.wrong(str(error), "schema") from None


def _checkpoint_table(item: Parameter) -> None:
    try:
        TableName.parse(str(item.args["checkpoint_table"]))
    except ValueError as error:
        raise item.wrong(str(error), "checkpoint_table") from None


_READERS: dict[str, Callable[[Parameter], object]] = {
    "MAP": _map,
    "TABLE": _captured,
    "SEQUENCE": lambda item: _table(item, "sequence"),
    "TABLEEXCLUDE": _excluded,
    "MAPEXCLUDE": _excluded,
    "LAKETABLE": _lake_table,
    "REPERROR": _refusals,
    "ENCRYPTTRAIL": encryption_of,
    "EXTTRAIL": _trail,
    "RMTTRAIL": _trail,
    "EXTFILE": _trail,
    "RMTFILE": _trail,
    "HEARTBEATTABLE": _heartbeat_table,
    "GGSCHEMA": _schema,
    "CHECKPOINTTABLE": _checkpoint_table,
    "ACCESSRULE": access_rule,
    "DDL": check_ddl,
    "DDLERROR": check_ddl,
    "DDLOPTIONS": check_ddl,
    "DDLSUBST": check_ddl,
}
"""The parsers, by parameter, of the values that the grammar does not define."""
