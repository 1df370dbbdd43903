"""REPERROR, HANDLECOLLISIONS and their kin: what a Replicat's file says about refused operations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import ParameterError
from ggshell.params.lines import Parameter, read_parameters

RESPONSES = frozenset(
    ("ABEND", "DISCARD", "EXCEPTION", "IGNORE", "RETRYOP", "TRANSABORT", "TRANSDISCARD", "TRANSEXCEPTION")
)
OPERATION_RETRIES = 10
ABORT_SECONDS = 60.0
"""TRANSABORT's delay where the file says none; without MAXRETRIES it goes on for ever."""
_RULE = re.compile(r"\(\s*(?P<error>[-\w]+)\s*,\s*(?P<response>\w+)\s*(?P<options>[^()]*)\)", re.IGNORECASE)
_OPTION = re.compile(r",?\s*(?P<name>MAXRETRIES|DELAYSECS|DELAYCSECS)\s+(?P<number>\d+)\s*", re.IGNORECASE)
_OPTIONS = {"RETRYOP": ({"MAXRETRIES"},), "TRANSABORT": ({"MAXRETRIES", "DELAYSECS"}, {"MAXRETRIES", "DELAYCSECS"})}
"""The options that each response may have together."""


class ReperrorRule(NamedTuple):
    """One REPERROR: the error (SQLSTATE, number, DEFAULT), the response, how often RETRYOP and TRANSABORT try again (None:
    without end), and the seconds before TRANSABORT does."""

    error: str
    response: str
    retries: int | None = OPERATION_RETRIES
    delay: float = 0.0


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


def rules_of_map(item: Parameter, path: Path) -> tuple[ReperrorRule, ...]:
    """REPERROR within a MAP.  Raises ParameterError."""
    given = item.args.get("reperror", ())
    return tuple(read_rule(body, f"{path}:{item.line}") for body in ((given,) if isinstance(given, str) else given))


def _rule(item: Parameter, path: Path) -> ReperrorRule:
    return read_rule(str(item.args["body"]), f"{path}:{item.line}")


def read_rule(body: str, where: str) -> ReperrorRule:
    """One ``(error, response)``.  Raises ParameterError."""
    match = _RULE.fullmatch(body.strip())
    response = match["response"].upper() if match else ""
    options = _options(match["options"]) if match else None
    allowed = _OPTIONS.get(response, (set(),))
    if (
        match is None
        or options is None
        or response not in RESPONSES
        or not any(set(options) <= each for each in allowed)
    ):
        hint = "for example REPERROR (DEFAULT, DISCARD), REPERROR (60, TRANSABORT, MAXRETRIES 3, DELAYSECS 10)"
        raise ParameterError("this is no REPERROR rule", where=where, hint=hint)
    error = match["error"].upper()
    if response != "TRANSABORT":
        return ReperrorRule(error, response, options.get("MAXRETRIES", OPERATION_RETRIES))
    delay = options["DELAYCSECS"] / 100 if "DELAYCSECS" in options else float(options.get("DELAYSECS", ABORT_SECONDS))
    return ReperrorRule(error, response, options.get("MAXRETRIES"), delay)


def _options(text: str) -> dict[str, int] | None:
    """The options behind a response; None for what is none, or stands there twice."""
    found: dict[str, int] = {}
    place = 0
    while place < len(text):
        match = _OPTION.match(text, place)
        if match is None or match["name"].upper() in found:
            return None
        found[match["name"].upper()] = int(match["number"])
        place = match.end()
    return found
