"""Format Logdump's results as JSON objects, one per line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ggshell.errors import TrailError
from ggshell.logdump.answers import (
    Answer,
    Counted,
    Differences,
    Dumped,
    Facts,
    FilterList,
    LargeTransactions,
    Lines,
    Lost,
    RecordTypes,
    Shown,
    Tally,
    TransactionSize,
)
from ggshell.logdump.filters import Filters
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType
from ggshell.trail import iotypes
from ggshell.trail.record import Columns, Record

_FIELDS = (
    *(
        "hdr_ind",
        "partition",
        "undo_flag",
        "before_after",
        "rec_length",
        "io_type",
        "orig_node",
        "audit_pos",
        "audit_rba",
    ),
    *("trans_ind", "format_type", "syskey_len", "incomplete", "continued", "rec_count"),
)


def json_lines(answer: Answer) -> str:
    """Return a result as JSON lines."""
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in _objects(answer))


def _objects(answer: Answer) -> Iterable[dict[str, Any]]:
    match answer:
        case Shown():
            return [_record(answer)]
        case Lost():
            return [_lost(answer)]
        case Facts():
            return [dict(answer.pairs)]
        case Differences():
            return _differences(answer)
        case Counted():
            return [_counted(answer)]
        case Lines():
            return [{"lines": list(answer.lines)}]
        case LargeTransactions():
            return map(_transaction, answer.transactions)
        case FilterList():
            return [_filters(answer.filters)]
        case RecordTypes():
            return ({"number": number, "name": name} for number, name in answer.types)
        case Dumped():
            return [{"rba": answer.rba, "length": len(answer.data), "data": answer.data.hex()}]


def _differences(answer: Differences) -> Iterator[dict[str, Any]]:
    for what, left, right in answer.found:
        yield {"what": what, "first_rba": answer.first, "first": left, "second_rba": answer.second, "second": right}


def _transaction(found: TransactionSize) -> dict[str, Any]:
    return {"xid": found.xid, "records": found.records, "bytes": found.size, "rba": found.rba}


def _filters(filters: Filters) -> dict[str, Any]:
    sides = (("include", filters.include), ("exclude", filters.exclude))
    return {
        "enabled": filters.enabled,
        **{
            name: {
                "match": "ALL" if side.match_all else "ANY",
                "filters": [{"filter": each.subject, "value": each.more or each.text} for each in side.filters],
            }
            for name, side in sides
        },
    }


def _record(answer: Shown) -> dict[str, Any]:
    seen, record = answer.seen, answer.seen.record
    found: dict[str, Any] = {"file": str(answer.file.path), "rba": seen.rba, "length": seen.size, "fault": seen.fault}
    if seen.is_header:
        tokens = {
            f"{group.name}.{token.name}": token.value.hex() for group in answer.file.groups for token in group.tokens
        }
        return {**found, "record": iotypes.FILE_HEADER, "tokens": tokens}
    if record is None:
        return found
    definition = answer.table.definition if answer.table is not None else None
    found |= {
        "record": iotypes.io_type_name(record.io_type),
        "io_time": record.io_time.isoformat() if record.io_time else None,
        "table": answer.table.name if answer.table is not None else record.name,
        **{name: getattr(record, name) for name in _FIELDS},
        "tokens": {name: value.decode(errors="replace") for name, value in record.tokens.items()},
        "user_tokens": _user_tokens(record),
    }
    try:
        if record.io_type == IoType.DDL:
            return {**found, "ddl": record.ddl()}
        found |= {
            "before": _named(record.before_columns(), definition),
            "columns": _named(record.columns(), definition),
        }
    except TrailError:
        found["data"] = record.data.hex()
    return found


def _user_tokens(record: Record) -> dict[str, str] | str:
    """Return user tokens by name, or in hexadecimal if they cannot be decoded."""
    try:
        return {name: value.decode(errors="replace") for name, value in record.named_user_tokens().items()}
    except TrailError:
        return record.user_tokens.hex()


def _named(columns: Columns, definition: TableDefinition | None) -> dict[str, str | None]:
    """Return values by column name, or by number if the definition is not known, without the inner length of texts."""
    found: dict[str, str | None] = {}
    for index, value in columns:
        known = definition is not None and index < len(definition.columns)
        name = definition.columns[index].name if definition is not None and known else str(index)
        found[name] = None if value is None else _text(value)
    return found


def _text(value: bytes) -> str:
    for size in (2, 4):
        if len(value) >= size and int.from_bytes(value[:size], "little") == len(value) - size:
            return value[size:].decode(errors="replace")
    return value.hex()


def _lost(answer: Lost) -> dict[str, Any]:
    return {"file": str(answer.file.path), "rba": answer.rba, "fault": answer.expected}


def _counted(answer: Counted) -> dict[str, Any]:
    return {
        "files": answer.files,
        **_tally(answer.total),
        "transactions": answer.transactions,
        "tables": {name: _tally(tally) for name, tally in answer.tables.items()},
        "intervals": [
            {"begin": each.begin.isoformat(), "end": each.end.isoformat(), **_tally(each.tally)}
            for each in answer.intervals
        ],
        "damaged": [_lost(each) for each in answer.damaged],
    }


def _tally(tally: Tally) -> dict[str, Any]:
    return {"records": tally.records, "bytes": tally.size, "types": tally.types, "images": tally.images}
