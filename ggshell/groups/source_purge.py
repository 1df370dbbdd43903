"""PURGEOLDEXTRACTS in the file of a Replicat or a pump: the files of its source trail are removed once they have been read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ggshell.errors import GgsError
from ggshell.groups.purge import purge
from ggshell.home.events import Severity
from ggshell.parameters.process_parameters import PurgeRule
from ggshell.types import TrailPosition

if TYPE_CHECKING:
    from ggshell.groups.lifecycle import GroupContext

CHECK_SECONDS: Final = 1.0


class SourcePurge:
    """Purges the trail that a group reads each time that the group's checkpoint is in a new file.

    A file that another reader still needs is kept until the group begins a later file.
    """

    def __init__(self, context: GroupContext) -> None:
        self._context = context
        self._seqno = -1
        context.runner.every(CHECK_SECONDS, self._check)

    def _check(self) -> None:
        read = self._context.checkpoint.read
        if not read.trail or not isinstance(read.current, TrailPosition) or read.current.seqno == self._seqno:
            return
        self._seqno = read.current.seqno
        report = self._context.report
        try:
            removed = purge(self._context.home, PurgeRule(read.trail), self._context.clock.now())
        except GgsError as error:
            report.event(Severity.WARNING, error.code, error.message)
            return
        for path in removed:
            report.event(Severity.INFO, "OGG-00957", f"Purged old trail file {path}.")
