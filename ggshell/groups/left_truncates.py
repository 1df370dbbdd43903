"""Reports TRUNCATE records that a Replicat does not apply, once per table and run, with the reason."""

from __future__ import annotations

from collections.abc import Callable

from ggshell.pipeline.apply.mapping import Mapper
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import TableDefinition
from ggshell.record.operation import IoType


class LeftTruncates:
    """Reports TRUNCATE records that are not applied; ``tell`` receives one sentence per table."""

    def __init__(self, mapper: Mapper, tell: Callable[[str], None], *, applies: bool) -> None:
        """``applies``: whether GETTRUNCATES is in effect."""
        self._mapper = mapper
        self._tell = tell
        self._applies = applies
        self._seen: set[TableDefinition] = set()

    def check(self, batch: ChangeBatch) -> None:
        """Report the tables of a batch whose TRUNCATE is not applied; a batch without TRUNCATE costs one comparison."""
        truncates = batch.io_type == IoType.PURGE_DATA
        if not truncates.any():
            return
        for number in sorted({int(number) for number in batch.table[truncates]}):
            table = batch.tables[number]
            if table not in self._seen:
                self._seen.add(table)
                text = self._reason(table)
                if text:
                    self._tell(text)

    def _reason(self, table: TableDefinition) -> str:
        """Return why a TRUNCATE of a table is not applied; empty if it is applied or if the table is not replicated."""
        mapped = bool(self._mapper.rules_of(table))
        if mapped and not self._applies:
            return (
                f"TRUNCATE of {table.name} is not applied: IGNORETRUNCATES is in effect. To apply it, use GETTRUNCATES."
            )
        if mapped or not self._applies or not self._mapper.maps_beside(table.name):
            return ""
        return (
            f"TRUNCATE of {table.name} is not applied: no MAP includes the table. If a single partition is truncated,"
            f" the trail contains its own name: use MAP {table.name} or MAPEXCLUDE {table.name}."
        )
