"""Sets the sequences of a target: ahead of the source's values, never back, or exactly to them after FLUSH SEQUENCE.

A sequence that is set ahead has is_called false until a value is drawn from it, so that an Extract of this database can see
that the value is not its own (``sequence_watch``): otherwise two directions would push each other ahead forever.
"""

from __future__ import annotations

from ggshell.connectors.postgres.apply_wire import ApplyStep
from ggshell.errors import ApplyError
from ggshell.record.sequences import SequenceValue, decode_sequence
from ggshell.types import TableName, postgres_literal, quote_table

_AHEAD = """
SELECT setval({literal}::regclass, c.value::bigint, c.value = c.last)
  FROM {name} q, pg_catalog.pg_sequence s,
       LATERAL (SELECT CASE WHEN $2::numeric > 0 THEN least($1::numeric + $2::numeric * $3::numeric, s.seqmax)
                            ELSE greatest($1::numeric + $2::numeric * $3::numeric, s.seqmin) END,
                       CASE WHEN $2::numeric > 0 THEN s.seqmax ELSE s.seqmin END) c (value, last)
 WHERE s.seqrelid = {literal}::regclass
   AND (c.value = c.last AND c.value = q.last_value AND NOT q.is_called
        OR CASE WHEN $2::numeric > 0 THEN c.value > q.last_value ELSE c.value < q.last_value END)"""
"""The last value of a sequence counts as drawn, because the source may have drawn it."""
_EXACT = "SELECT setval({literal}::regclass, $1::bigint, $2::boolean)"


def sequence_step(target: TableName, data: bytes | memoryview) -> ApplyStep:
    """The step of a record of a sequence. Raises ApplyError if the record is not complete.

    The effect of setval is permanent even if the transaction is rolled back: the sequence is then ahead, as intended.
    """
    try:
        value = decode_sequence(target, data)
    except ValueError as error:
        raise ApplyError(str(error)) from error
    name = quote_table(target)
    literal = postgres_literal(name)
    text = (_EXACT if value.exact else _AHEAD).format(literal=literal, name=name)
    return ApplyStep(text, _values(value))


def _values(value: SequenceValue) -> list[bytes | None]:
    if value.exact:
        return [str(value.last).encode(), b"t" if value.called else b"f"]
    return [str(number).encode() for number in (value.last, value.increment, value.ahead)]
