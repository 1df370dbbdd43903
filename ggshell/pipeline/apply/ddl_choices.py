"""What the parameter file of a Replicat says about DDL statements."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.pipeline.apply.object_names import BY_MAP, NameOptions
from ggshell.pipeline.apply.target import Noted
from ggshell.record.ddl_responses import DdlErrors, DdlSubstitutions
from ggshell.record.ddl_rules import ALL_DDL, DdlRules


def _not_noted(code: str, text: str) -> None:
    """Ignore what is to be reported."""


class DdlChoices(NamedTuple):
    """The parameters DDL, DDLERROR, DDLSUBST and DDLOPTIONS.

    ``names``: how MAP renames objects; ``reports``: each statement is reported; ``noted`` and ``warned`` report
    texts with their codes.
    """

    rules: DdlRules = ALL_DDL
    errors: DdlErrors = DdlErrors()
    substitutions: DdlSubstitutions = DdlSubstitutions()
    names: NameOptions = BY_MAP
    reports: bool = False
    noted: Noted = _not_noted
    warned: Noted = _not_noted


ALL_AS_THEY_ARE = DdlChoices()
