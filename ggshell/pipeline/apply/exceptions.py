"""Exceptions tables: a refused operation becomes a row that describes it (EXCEPTIONSONLY, MAPEXCEPTION, RAISEERROR).

A mapped row still contains the source's columns, because computed columns are only appended. So nothing has to be kept for
the case that a row is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ggshell.errors import ApplyError
from ggshell.pipeline.apply.discard import Discarded, DiscardFile
from ggshell.pipeline.apply.error_rules import Response
from ggshell.pipeline.apply.refusal_isolation import operation_word, row_values
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.row_mapping import RowMapping
from ggshell.pipeline.apply.target import Refusal, TableMapping
from ggshell.pipeline.transform.environment import Environment
from ggshell.pipeline.transform.functions.facts import OPERATION_NAMES
from ggshell.pipeline.transform.stage import Programs, Stage
from ggshell.record.change import ChangeBatch
from ggshell.record.image import decode_image, encode_image, join_key_update
from ggshell.record.operation import TWO_IMAGES
from ggshell.types import TrailPosition

NO_DATA_NUMBER = 1403
"""The LASTERR number for a missing row, for which the database has no error number."""


class RefusedRows:
    """Builds the rows of exceptions tables, and sets the values of LASTERR in ``environment``; thread-safe."""

    def __init__(self, rows: RowMapping, environment: Environment) -> None:
        self._rows = rows
        self._environment = environment
        self._stage = Stage(rows.exceptions)
        self._lock = threading.Lock()

    def operations(
        self, batch: ChangeBatch, row: int, mapping: TableMapping, refusal: Refusal
    ) -> Sequence[tuple[ChangeBatch, TableMapping]]:
        """Return the exceptions rows of a refused operation, each in a separate batch."""
        number = refusal.state or (str(NO_DATA_NUMBER) if refusal.missing else "")
        io_type = int(batch.io_type[row])
        with self._lock:
            self._environment.last_error.update(
                DBERRNUM=int(number) if number.isdigit() else number,
                DBERRMSG=refusal.text,
                OPTYPE=OPERATION_NAMES.get(io_type, f"TYPE {io_type}"),
                ERRTYPE="DB",
            )
            return self._rows_of(self._as_it_came(batch, row))

    def _rows_of(self, alone: ChangeBatch) -> Sequence[tuple[ChangeBatch, TableMapping]]:
        made = self._stage.run(alone)
        found: list[tuple[ChangeBatch, TableMapping]] = []
        if made is alone:
            return found
        for place in range(len(made)):
            table = int(made.table[place])
            mapping = self._rows.mapping_of(made.tables[table]) if table < len(made.tables) else None
            if mapping is not None:
                found.append((made.one(place, int(made.io_type[place]), made.data(place)), mapping))
        return found

    def _as_it_came(self, batch: ChangeBatch, row: int) -> ChangeBatch:
        """Return the row in a separate batch, without the columns that mapping appended."""
        made = batch.tables[int(batch.table[row])]
        source = self._rows.source_of(made)
        io_type, width = int(batch.io_type[row]), len(source.columns)
        before, after = (_cut(image, width) for image in batch.images(row))
        data = join_key_update(before, after) if io_type in TWO_IMAGES else after
        alone = batch.one(row, io_type, data)
        return replace(alone, tables=(source,), table=np.zeros(1, dtype=np.uint16))


class RaisedErrors:
    """Answers FILTER … RAISEERROR by REPERROR's rules for its number; RETRYOP abends, since there is nothing to retry."""

    def __init__(
        self, rows: RowMapping, environment: Environment, responses: Responses, discard: DiscardFile | None
    ) -> None:
        self._rows = rows
        self._environment = environment
        self._responses = responses
        self._discard = discard

    def __call__(self, batch: ChangeBatch, row: int, number: int) -> Programs:
        """Return the programs for a row's exceptions. Raises ApplyError if the response is to abend."""
        source = batch.tables[int(batch.table[row])]
        io_type = int(batch.io_type[row])
        text = f"FILTER of MAP {source.name} refused a row with error {number}"
        self._environment.last_error.update(
            DBERRNUM=number, DBERRMSG=text, OPTYPE=OPERATION_NAMES.get(io_type, f"TYPE {io_type}"), ERRTYPE="MAP"
        )
        response = self._responses.to_state(str(number), self._rows.refusals_of(source)).response
        place = TrailPosition(batch.seqno, int(batch.rba[row]))
        if response is Response.EXCEPTION and (programs := self._rows.exceptions(source)):
            return programs
        if response is Response.DISCARD and self._discard is not None:
            before, after = row_values(batch, row, source)
            word = operation_word(io_type)
            self._discard.write(Discarded(source.name, source.name, word, place, before, after, text))
        if response in (Response.DISCARD, Response.IGNORE):
            return None
        hint = f"REPERROR ({number}, DISCARD) or another response lets Replicat continue"
        raise ApplyError(text, where=f"trail file {place.seqno}, RBA {place.rba}", hint=hint)


def _cut(image: bytes | memoryview, width: int) -> bytes:
    return encode_image([(index, value) for index, value in decode_image(image) if index < width])
