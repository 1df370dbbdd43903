"""Which DDL statements an Extract captures, and with which text: DDL, DDLSUBST, DDLERROR and DDLOPTIONS REPORT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from ggshell.errors import CaptureError
from ggshell.home.events import ReportEvent, Severity
from ggshell.parameters.process_parameters import ExtractParameters
from ggshell.record.ddl import DdlStatement
from ggshell.record.ddl_responses import DdlResponse
from ggshell.record.ddl_rules import DdlRules, DdlScope, scope_of
from ggshell.types import TableName

UNDETERMINED: Final = "GGS-00583"
"""The code of a statement whose text cannot be determined."""
LONGEST_TEXT = 200
"""How many characters of a statement a message shows."""


def described(statement: DdlStatement) -> str:
    """A statement without its text: its command, and the kind and name of its object."""
    return f"{statement.tag} on {statement.main.kind} {statement.main.name}"


class DdlCounter(Protocol):
    """Counts DDL statements."""

    def ddl(self, scope: DdlScope, count: int = 1, *, excluded: bool = False) -> None: ...


class DdlChoice:
    """Chooses statements in the order of their capture; it counts and reports those that are left out."""

    def __init__(
        self,
        parameters: ExtractParameters,
        selects: Callable[[TableName], bool],
        counter: DdlCounter,
        report_event: ReportEvent,
    ) -> None:
        """``selects``: whether TABLE selects a name."""
        self._rules = parameters.ddl or DdlRules()
        self._substitutions = parameters.ddl_substitutions
        self._reports = parameters.ddl_options.report
        self._errors = parameters.ddl_errors
        self._skips = parameters.ddl_errors.skips_at_start
        self._selects = selects
        self._counter = counter
        self._report_event = report_event

    def takes(self, statement: DdlStatement) -> bool:
        """Whether the parameter DDL selects a statement; it is neither counted nor reported."""
        return self._rules.takes(statement, scope_of(statement, self._selects))

    def __call__(self, statement: DdlStatement) -> DdlStatement | None:
        """Return a statement with the text to capture; None if it is left out.

        Raises CaptureError for a statement whose text cannot be determined, if DDLERROR DEFAULT ABEND is for it.
        """
        scope = scope_of(statement, self._selects)
        if not self._rules.takes(statement, scope):
            self._counter.ddl(scope, excluded=True)
            self._report(statement, scope, "is excluded")
            return None
        if self._skips:
            self._skips -= 1
            self._counter.ddl(scope, excluded=True)
            self._report(statement, scope, "is skipped by DDLERROR RESTARTSKIP", always=True)
            return None
        answer = None if statement.text else self._errors.given("", statement, scope)
        if answer is not None and answer.response is DdlResponse.ABEND:
            raise CaptureError(
                f"the text of {described(statement)} cannot be determined",
                code=UNDETERMINED,
                hint="run the statement on the targets, and set DDLERROR DEFAULT IGNORE until the group has processed it",
            )
        found = self._substitutions.of(statement, scope)
        self._report(found, scope, "is captured")
        return found

    def _report(self, statement: DdlStatement, scope: DdlScope, what: str, *, always: bool = False) -> None:
        if self._reports or always:
            text = " ".join(statement.text.split())
            shown = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
            self._report_event(Severity.INFO, "GGS-00585", f"{statement.tag}, scope {scope}, {what}: {shown}")
