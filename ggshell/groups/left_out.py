"""Reports what a Replicat does not apply to its tables, each only once per run."""

from __future__ import annotations

from collections.abc import Callable

from ggshell.groups.report import Report
from ggshell.home.events import Severity
from ggshell.pipeline.apply.target import GroupTarget, TableMapping
from ggshell.pipeline.heartbeat.hops import ARRIVED_NAME
from ggshell.types import TableName


class LeftOut:
    """The warnings of one run about rows, columns and values that are not applied."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._reported: set[str] = set()

    def warn(self, code: str, text: str) -> None:
        """Report a text, unless it was already reported in this run."""
        if text not in self._reported:
            self._reported.add(text)
            self._report.event(Severity.WARNING, code, text)

    def truncate(self, text: str) -> None:
        """Report that a TRUNCATE is not applied."""
        self.warn("GGS-00574", text)

    def mapping(self, mapping: TableMapping, text: str) -> None:
        """Report what a mapping does not apply."""
        if mapping.source.columns and mapping.source.name != ARRIVED_NAME:  # a truncation has no columns
            self.warn("GGS-00572", text)

    def missing(self, source: TableName, target: TableName) -> None:
        """Report a target table that does not exist."""
        text = f"Target table {target} does not exist: the rows of {source} are skipped (IGNOREMISSINGOBJECTS)."
        self.warn("GGS-00584", text)

    def sequences_of(self, target: GroupTarget) -> Callable[[TableName], bool]:
        """Return a function that returns whether the target takes the values of a sequence, and reports it if not."""

        def takes(name: TableName) -> bool:
            if not target.takes_sequences:
                text = f"The values of sequence {name} are not applied: the target database does not take them."
                self.warn("GGS-00599", text)
            return target.takes_sequences

        return takes
