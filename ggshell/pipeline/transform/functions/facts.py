"""@GETENV, @GETVAL, @TOKEN: values that are not columns of the row."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS, local_text
from ggshell.language.expressions import Call, ColumnReference, Expression, Literal
from ggshell.pipeline.transform import nodes
from ggshell.pipeline.transform.compiler import Maker, Scope
from ggshell.pipeline.transform.nodes import Node
from ggshell.pipeline.transform.rows import Rows
from ggshell.pipeline.transform.values import State, Value
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionPiece


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MOMENT = "%Y-%m-%d %H:%M:%S.%f"
OPERATION_NAMES: Final = MappingProxyType(
    {
        int(IoType.INSERT): "INSERT",
        int(IoType.DELETE): "DELETE",
        int(IoType.UPDATE): "UPDATE",
        int(IoType.UNIFIED_UPDATE): "UPDATE",
        int(IoType.FIELD_COMP): "SQL COMPUPDATE",
        int(IoType.KEY_FIELD_COMP): "PK UPDATE",
        int(IoType.UNIFIED_KEY_UPDATE): "PK UPDATE",
        int(IoType.PURGE_DATA): "TRUNCATE",
    }
)
"""The values of OPTYPE."""

_UNITS: Final = MappingProxyType({"SEC": 1_000_000, "MSEC": 1000, "MIN": 60_000_000})
_STATISTICS: Final = _words(
    "INSERTS UPDATES BEFORES DELETES DISCARDS IGNORES TRUNCATES OPERATIONS DBOPERATIONS CDR_CONFLICTS "
    "CDR_RESOLUTIONS_SUCCEEDED CDR_RESOLUTIONS_FAILED"
)
_OF_PROCESS: Final = {
    "GGENVIRONMENT": _words("DOMAINNAME GROUPDESCRIPTION GROUPNAME GROUPTYPE HOSTNAME OSUSERNAME PROCESSID"),
    "DBENVIRONMENT": _words("DBNAME DBVERSION DBUSER SERVERNAME"),
}
_OF_FILE: Final = _words(
    "COMPATIBILITY CREATETIMESTAMP FILENAME FILETYPE FILESEQNO FILESIZE FIRSTRECCSN LASTRECCSN "
    "FIRSTRECIOTIME LASTRECIOTIME URI URIHISTORY GROUPNAME DATASOURCE GGMAJORVERSION GGMINORVERSION "
    "GGMAINTENANCELEVEL GGBUGFIXLEVEL GGBUILDNUMBER GGVERSIONSTRING HOSTNAME OSTYPE OSVERSION OSRELEASE "
    "HARDWARETYPE DBTYPE DBNAME DBINSTANCE DBCHARSET DBMAJORVERSION DBMINORVERSION DBVERSIONSTRING "
    "DBCLIENTCHARSET DBCLIENTVERSIONSTRING RECOVERYMODE LASTCOMPLETECSN LASTCOMPLETEXIDS LASTCSN LASTXID "
    "LASTCSNTS"
)
_ERROR: Final = frozenset({"DBERRNUM", "DBERRMSG", "OPTYPE", "ERRTYPE"})
_UNKNOWN: Final = frozenset(
    {("TRANSACTION", name) for name in ("NAME", "USERID", "USERNAME", "REDOTHREAD", "PLANNAME")}
    | {("RECORD", "ROWID"), ("RECORD", "APPNAME")}
    | {(name, "") for name in ("USERNAME", "OSUSERNAME", "MACHINENAME", "PROGRAMNAME", "CLIENTIDENTIFIER")}
)
"""Facts of other databases: always missing."""


def _getenv(call: Call, scope: Scope) -> Node:
    kind = _word(call.arguments[0], scope).upper()
    if kind == "TLFKEY":
        return nodes.constant(State.MISSING)
    words = [_word(tree, scope) for tree in call.arguments[1:]]
    detail = words[0].upper() if words else ""
    if kind == "OSVARIABLE" and words:
        return nodes.constant(os.environ.get(words[0], State.MISSING))
    per_row = _PER_ROW.get(kind, {}).get(detail) if len(words) == 1 else None
    if per_row is not None:
        return Node(per_row, textual=True)
    if (kind, detail) in _UNKNOWN:
        return nodes.constant(State.MISSING)
    found = _of_process(kind, detail, words, scope)
    if found is None:
        shown = ", ".join(f"'{word}'" for word in (kind, *words))
        scope.refuse(
            f"@GETENV does not support ({shown})", call, "HELP @GETENV lists the supported arguments", "getenv"
        )
    return found


def _word(tree: Expression, scope: Scope) -> str:
    if isinstance(tree, Literal):
        return tree.text
    if isinstance(tree, ColumnReference) and not tree.qualifier:
        return tree.name
    return scope.refuse("the arguments of @GETENV must be texts in quotes", tree, page="getenv")


def _of_process(kind: str, detail: str, words: list[str], scope: Scope) -> Node | None:
    """A fact that is not in the record."""
    environment = scope.environment
    if kind in ("JULIANTIMESTAMP", "JULIANTIMESTAMP_PRECISE") and not words:
        return _everywhere(lambda: environment.clock.now() + JULIAN_EPOCH_MICROSECONDS)
    if kind == "LAG" and (not words or detail in _UNITS):
        return _lag(_UNITS[detail or "SEC"], scope)
    if kind == "LASTERR" and detail in _ERROR:
        return _everywhere(lambda: environment.last_error.get(detail, State.MISSING))
    if kind in ("STATS", "DELTASTATS"):
        return _count(kind == "DELTASTATS", words, scope)
    if kind == "RECSOUTPUT" and not words:
        return _everywhere(lambda: _or_missing(environment.count("", "OPERATIONS")))
    if kind == "GGENVIRONMENT" and detail in _OF_PROCESS[kind]:
        return nodes.constant(environment.process.get(detail, State.MISSING))
    if kind == "DBENVIRONMENT" and detail in _OF_PROCESS[kind]:
        return _everywhere(lambda: environment.database().get(detail, State.MISSING))
    if kind == "SOURCEDATABASEINFO" and not words:
        return Node(lambda rows: [environment.file(rows.batch.seqno).get("DBNAME", State.MISSING)] * len(rows))
    if kind == "GGFILEHEADER" and detail in _OF_FILE:
        return Node(lambda rows: [environment.file(rows.batch.seqno).get(detail, State.MISSING)] * len(rows))
    return None


def _everywhere(fact: Callable[[], Value]) -> Node:
    """A fact that is the same for all rows that are processed together."""
    return Node(lambda rows: [fact()] * len(rows))


def _or_missing(count: int | None) -> Value:
    return State.MISSING if count is None else count


def _lag(unit: int, scope: Scope) -> Node:
    clock = scope.environment.clock

    def evaluate(rows: Rows) -> list[Value]:
        now = clock.now()
        return [(now - piece.header.commit_time) // unit for piece in rows.pieces]

    return Node(evaluate)


def _count(delta: bool, words: list[str], scope: Scope) -> Node | None:
    table = ""
    if len(words) == 3 and words[0].upper() == "TABLE":
        table, words = words[1], words[2:]
    if len(words) != 1 or words[0].upper() not in _STATISTICS:
        return None
    environment, statistic = scope.environment, words[0].upper()

    def fact() -> Value:
        count = environment.count(table, statistic)
        if count is None or not delta:
            return _or_missing(count)
        before = environment.reported_counts.get((table, statistic), 0)
        environment.reported_counts[table, statistic] = count
        return count - before

    return _everywhere(fact)


def _of_transaction(fact: Callable[[TransactionPiece], Value]) -> Callable[[Rows], list[Value]]:
    return lambda rows: [fact(piece) for piece in rows.pieces]


def _of_all(fact: Callable[[Rows], Value]) -> Callable[[Rows], list[Value]]:
    return lambda rows: [fact(rows)] * len(rows)


def _indicator(rows: Rows) -> list[Value]:
    found: list[Value] = []
    for number, piece in zip(rows.numbers.tolist(), rows.pieces, strict=True):
        begins = piece.begins and number == piece.first
        ends = piece.ends and number == piece.first + piece.count - 1
        found.append(("WHOLE" if ends else "BEGIN") if begins else "END" if ends else "MIDDLE")
    return found


def _numbers_within(rows: Rows) -> list[Value]:
    """The number of each record in its transaction, if the batch contains the transaction's begin; else missing."""
    pairs = zip(rows.numbers.tolist(), rows.pieces, strict=True)
    return [number - piece.first + 1 if piece.begins else State.MISSING for number, piece in pairs]


def _restart(piece: TransactionPiece) -> Value:
    header = piece.header
    return str(header.csn._replace(value=header.restart)) if header.restart else State.MISSING


def _before_or_after(rows: Rows) -> Value:
    return "BEFORE" if rows.io_type == IoType.DELETE or rows.is_before else "AFTER"


def _table(rows: Rows) -> Value:
    name = rows.table.name
    return f"{name.owner}.{name.name}"


def _commit_time(piece: TransactionPiece) -> Value:
    return local_text(piece.header.commit_time, MOMENT)


_PER_ROW: Final[Mapping[str, Mapping[str, Callable[[Rows], list[Value]]]]] = {
    "GGHEADER": {
        "BEFOREAFTERINDICATOR": _of_all(_before_or_after),
        "COMMITTIMESTAMP": _of_transaction(_commit_time),
        "LOGPOSITION": lambda rows: list(rows.batch.position[rows.numbers].tolist()),
        "LOGRBA": _of_all(lambda rows: 0),
        "OBJECTNAME": _of_all(_table),
        "TABLENAME": _of_all(_table),
        "OPTYPE": _of_all(lambda rows: OPERATION_NAMES.get(rows.io_type, f"TYPE {rows.io_type}")),
        "RECORDLENGTH": lambda rows: list(rows.batch.length[rows.numbers].tolist()),
        "TRANSACTIONINDICATOR": _indicator,
    },
    "TRANSACTION": {
        "TRANSACTIONID": _of_transaction(lambda piece: piece.header.xid),
        "XID": _of_transaction(lambda piece: piece.header.xid),
        "CSN": _of_transaction(lambda piece: str(piece.header.csn)),
        "TIMESTAMP": _of_transaction(_commit_time),
        "LOGBSN": _of_transaction(_restart),
    },
    "RECORD": {
        "FILESEQNO": _of_all(lambda rows: rows.batch.seqno),
        "FILERBA": lambda rows: list(rows.batch.rba[rows.numbers].tolist()),
        "RSN": _numbers_within,
        "TIMESTAMP": _of_transaction(_commit_time),
    },
}


def _getval(call: Call, scope: Scope) -> Node:
    name = call.arguments[0]
    if not isinstance(name, ColumnReference) or not name.qualifier:
        scope.refuse("@GETVAL requires the name of a query, a dot and the name of a result", name, page="getval")
    return scope.result(name)


def _token(call: Call, scope: Scope) -> Node:
    name = _word(call.arguments[0], scope).upper()
    return Node(lambda rows: rows.tokens(name), textual=True)


def _ddl(call: Call, scope: Scope) -> Node:
    return nodes.constant(State.MISSING)


FUNCTIONS: dict[str, Maker] = {"GETENV": _getenv, "GETVAL": _getval, "TOKEN": _token, "DDL": _ddl}
