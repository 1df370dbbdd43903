"""REPERROR, HANDLECOLLISIONS and their kin: what a Replicat's file says about refused operations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import ParameterError
from ggshell.params.lines import Parameter, read_parameters

CARRIED_OUT = ("ABEND", "DISCARD", "EXCEPTION", "IGNORE", "RETRYOP", "TRANSDISCARD")
KNOWN = (*CARRIED_OUT, "TRANSABORT", "TRANSEXCEPTION")
_RULE = re.compile(
    r"\(\s*(?P<error>[-\w]+)\s*,\s*(?P<response>\w+)\s*,?\s*(?:MAXRETRIES\s+(?P<retries>\d+)\s*)?\)", re.IGNORECASE
)


class ReperrorRule(NamedTuple):
    """One REPERROR: the error (SQLSTATE, number, DEFAULT), the response, and how often RETRYOP tries again."""

    error: str
    response: str
    retries: int = 10


class RefusalRules(NamedTuple):
    """Everything that a file says about refusals; of switches the last one counts."""

    rules: tuple[ReperrorRule, ...] = ()
    collisions: bool = False
    override_duplicates: bool = False
    insert_missing: bool = False


def load_refusal_rules(path: Path) -> RefusalRules:
    """The rules of a Replicat's file.  Raises ParameterError, StoreError."""
    return refusal_rules(read_parameters(path, "Replicat"), path)


def refusal_rules(parameters: Iterable[Parameter], path: Path) -> RefusalRules:
    """The rules among parsed parameters.  Raises ParameterError for a rule that is none, or is not carried out."""
    result = RefusalRules()
    for item in parameters:
        if item.name == "REPERROR":
            rules = () if "body" not in item.args else (*result.rules, _rule(item, path))
            result = result._replace(rules=rules)
        on = not item.name.startswith("NO")
        match item.name.removeprefix("NO"):
            case "HANDLECOLLISIONS":
                result = result._replace(collisions=on)
            case "OVERRIDEDUPS":
                result = result._replace(override_duplicates=on)
            case "INSERTMISSINGUPDATES":
                result = result._replace(insert_missing=on)
    return result


def _rule(item: Parameter, path: Path) -> ReperrorRule:
    where = f"{path}:{item.line}"
    match = _RULE.fullmatch(str(item.args["body"]).strip())
    response = match["response"].upper() if match else ""
    if match is None or response not in KNOWN:
        raise ParameterError("this is no REPERROR rule", where=where, hint="for example REPERROR (DEFAULT, DISCARD)")
    if response not in CARRIED_OUT:
        raise ParameterError(
            f"REPERROR's response {response} is not available in this version",
            code="GGS-00103",
            where=where,
            hint=f"one of {', '.join(CARRIED_OUT)}",
        )
    return ReperrorRule(match["error"].upper(), response, int(match["retries"] or 10))
