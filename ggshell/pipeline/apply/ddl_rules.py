"""What a delivery asks about a DDL statement: whether to execute it, with which text, and what follows a refusal."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol

from ggshell.record.ddl import DdlStatement
from ggshell.types import TableName


class DdlResponse(StrEnum):
    """The responses of DDLERROR."""

    ABEND = "ABEND"
    DISCARD = "DISCARD"
    IGNORE = "IGNORE"


class DdlAnswer(NamedTuple):
    """A statement is tried again ``retries`` times after ``delay`` seconds, and then answered with ``response``."""

    response: DdlResponse = DdlResponse.ABEND
    retries: int = 0
    delay: float = 0.0


class DdlChoices(Protocol):
    """The parameters; ``mapped``: whether a MAP takes the object, None if it has no name; ``target``: its target name."""

    def takes(self, statement: DdlStatement, mapped: bool | None, target: TableName) -> bool:
        """Whether to execute a statement (DDL)."""
        ...

    def changed(self, statement: DdlStatement, mapped: bool | None, target: TableName) -> DdlStatement:
        """Return a statement with the text to execute (DDLSUBST)."""
        ...

    def answer(self, state: str, statement: DdlStatement, mapped: bool | None, target: TableName) -> DdlAnswer:
        """Return the answer to the refusal of a statement with an SQLSTATE (DDLERROR)."""
        ...


class _ApplyAll:
    def takes(self, statement: DdlStatement, mapped: bool | None, target: TableName) -> bool:
        return True

    def changed(self, statement: DdlStatement, mapped: bool | None, target: TableName) -> DdlStatement:
        return statement

    def answer(self, state: str, statement: DdlStatement, mapped: bool | None, target: TableName) -> DdlAnswer:
        return DdlAnswer()


APPLY_ALL = _ApplyAll()
