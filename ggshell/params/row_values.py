"""Expressions of TABLE's TOKENS, compiled to what gives their value for a row: texts, numbers, columns, @GETENV.

A value is text in UTF-8; None where it is NULL or missing.  How often it can change (``Scope``) is known at compile time, so
that what is the same for the whole process or a transaction is not asked for again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from ggshell.clock import JULIAN_EPOCH_MICROSECONDS, Clock, local_text
from ggshell.errors import ParameterError
from ggshell.record import IoType, TableDefinition, TransactionHeader
from ggshell.record.image import decode_image, split_key_update
from ggshell.record.operation import TWO_IMAGES
from ggshell.syntax.expression_tree import Call, Column, Expression, Literal, Number

_OPERATIONS: Final = MappingProxyType(
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
_INDICATORS: Final = MappingProxyType(
    {(True, True): "WHOLE", (True, False): "BEGIN", (False, True): "END", (False, False): "MIDDLE"}
)
_PROCESS: Final = frozenset(
    {"DOMAINNAME", "GROUPDESCRIPTION", "GROUPNAME", "GROUPTYPE", "HOSTNAME", "OSUSERNAME", "PROCESSID"}
)
_DATABASE: Final = frozenset({"DBNAME", "DBVERSION", "DBUSER", "SERVERNAME"})
_UNKNOWN_HERE: Final = frozenset({"NAME", "USERID", "USERNAME", "REDOTHREAD", "PLANNAME"})
_ORACLE: Final = frozenset({"USERNAME", "OSUSERNAME", "MACHINENAME", "PROGRAMNAME", "CLIENTIDENTIFIER"})
_UNITS: Final = MappingProxyType({"SEC": 1_000_000, "MSEC": 1000, "MIN": 60_000_000})


class Scope(IntEnum):
    """What a value is the same for."""

    PROCESS = 0
    TRANSACTION = 1
    ROW = 2


class RowView(NamedTuple):
    """A row as an expression sees it; ``before``: it is an update's before image."""

    header: TransactionHeader
    table: TableDefinition
    io_type: int
    data: bytes
    position: int = 0
    begins: bool = False
    ends: bool = False
    before: bool = False


class RowValue(NamedTuple):
    """A compiled expression.  ``of`` raises ParameterError when the row's table has no such column."""

    scope: Scope
    of: Callable[[RowView], bytes | None]


class Surroundings(NamedTuple):
    """What the process knows beside the row: ``fact(information type, detail)`` for GGENVIRONMENT and DBENVIRONMENT."""

    fact: Callable[[str, str], str | None]
    clock: Clock


def compile_value(tree: Expression, around: Surroundings, where: str) -> RowValue:
    """An expression as a function of rows.  Raises ParameterError for what cannot stand in TOKENS."""
    if isinstance(tree, Literal):
        return _constant(tree.text)
    if isinstance(tree, Number):
        return _constant(str(tree.value))
    if isinstance(tree, Column):
        return _column(tree, where)
    if isinstance(tree, Call) and tree.name == "GETENV":
        return _getenv(tree, around, where)
    what = f"@{tree.name}" if isinstance(tree, Call) else "arithmetic"
    raise ParameterError(
        f"{what} is not available in TOKENS in this version",
        code="GGS-00103",
        where=where,
        hint="a token's value is a text, a number, a column or @GETENV; Replicat's side computes",
    )


def _constant(text: str | None) -> RowValue:
    value = None if text is None else text.encode()
    return RowValue(Scope.PROCESS, lambda _: value)


def _column(tree: Column, where: str) -> RowValue:
    if tree.qualifier not in ("", "BEFORE", "AFTER"):
        raise ParameterError(f"{tree.qualifier}.{tree.name} is no column: TOKENS knows no queries", where=where)
    places: dict[TableDefinition, int] = {}

    def of(row: RowView) -> bytes | None:
        if row.table not in places:
            places[row.table] = _place(row.table, tree, where)
        return dict(decode_image(_image(row, tree.qualifier))).get(places[row.table])

    return RowValue(Scope.ROW, of)


def _place(table: TableDefinition, tree: Column, where: str) -> int:
    names = [column.name for column in table.columns]
    if tree.name in names:
        return names.index(tree.name)
    found = [index for index, name in enumerate(names) if name.lower() == tree.name.lower()]
    if tree.quoted or len(found) != 1:
        hint = "a text stands in single quotes" if tree.quoted else "correct TOKENS"
        raise ParameterError(
            f"TOKENS names column {tree.name}, which {table.name} does not have", where=where, hint=hint
        )
    return found[0]


def _image(row: RowView, qualifier: str) -> bytes:
    """The image that a column is looked for in: of a delete, and of a before image, what the record holds."""
    if row.io_type in TWO_IMAGES:
        before, after = split_key_update(row.data)
        return bytes(before if qualifier == "BEFORE" else after)
    is_old = row.before or row.io_type == IoType.DELETE
    return row.data if qualifier in ("", "BEFORE" if is_old else "AFTER") else b""


def _getenv(tree: Call, around: Surroundings, where: str) -> RowValue:
    words = [_word(argument, where) for argument in tree.arguments]
    kind, detail = words[0].upper(), words[1] if len(words) > 1 else ""
    row_values: Mapping[str, Callable[[RowView], str | None]] = _ROW_VALUES.get(kind, {})
    name = detail.upper()
    if name in row_values:
        scope, value = Scope.TRANSACTION if kind == "TRANSACTION" else Scope.ROW, row_values[name]
        return RowValue(scope, lambda row: _encoded(value(row)))
    if kind == "OSVARIABLE" and detail:
        return _constant(os.environ.get(detail))
    if (kind, name) in _KNOWN:
        return RowValue(Scope.PROCESS, lambda _: _encoded(around.fact(kind, name)))
    if (kind, name) in _MISSING:
        return _constant(None)
    if kind in ("JULIANTIMESTAMP", "JULIANTIMESTAMP_PRECISE"):
        return RowValue(Scope.ROW, lambda _: str(around.clock.now() + JULIAN_EPOCH_MICROSECONDS).encode())
    if kind == "LAG" and (not name or name in _UNITS):
        unit = _UNITS[name or "SEC"]
        return RowValue(Scope.ROW, lambda row: str((around.clock.now() - row.header.commit_time) // unit).encode())
    text = ", ".join(f"'{word}'" for word in words)
    raise ParameterError(
        f"@GETENV ({text}) is not available in TOKENS",
        code="GGS-00103",
        where=where,
        hint="HELP @GETENV lists what there is",
    )


def _word(tree: Expression, where: str) -> str:
    if isinstance(tree, Literal):
        return tree.text
    if isinstance(tree, Column):
        return tree.name
    raise ParameterError("the arguments of @GETENV are texts in quotes", where=where)


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _moment(row: RowView) -> str:
    return local_text(row.header.commit_time, "%Y-%m-%d %H:%M:%S.%f")


def _name(row: RowView) -> str:
    return f"{row.table.name.owner}.{row.table.name.name}"


def _transaction_id(row: RowView) -> str:
    return row.header.xid


def _log_bsn(row: RowView) -> str | None:
    header = row.header
    return str(header.csn._replace(value=header.restart)) if header.restart else None


def _before_after(row: RowView) -> str:
    return "BEFORE" if row.before or row.io_type == IoType.DELETE else "AFTER"


_ROW_VALUES: Final[Mapping[str, Mapping[str, Callable[[RowView], str | None]]]] = MappingProxyType(
    {
        "GGHEADER": {
            "BEFOREAFTERINDICATOR": _before_after,
            "COMMITTIMESTAMP": _moment,
            "LOGPOSITION": lambda row: str(row.position),
            "LOGRBA": lambda row: "0",
            "OBJECTNAME": _name,
            "TABLENAME": _name,
            "OPTYPE": lambda row: _OPERATIONS.get(row.io_type, f"TYPE {row.io_type}"),
            "RECORDLENGTH": lambda row: str(len(row.data)),
            "TRANSACTIONINDICATOR": lambda row: _INDICATORS[row.begins, row.ends],
        },
        "TRANSACTION": {
            "TRANSACTIONID": _transaction_id,
            "XID": _transaction_id,
            "CSN": lambda row: str(row.header.csn),
            "TIMESTAMP": _moment,
            "LOGBSN": _log_bsn,
        },
        "RECORD": {"TIMESTAMP": _moment},
    }
)
_KNOWN: Final = frozenset(
    {("GGENVIRONMENT", name) for name in _PROCESS} | {("DBENVIRONMENT", name) for name in _DATABASE}
)
_MISSING: Final = frozenset(
    {("TRANSACTION", name) for name in _UNKNOWN_HERE}
    | {(name, "") for name in _ORACLE}
    | {("RECORD", "ROWID"), ("RECORD", "APPNAME")}
)
