"""REPERROR, HANDLECOLLISIONS and related parameters: how a Replicat responds to operations that the target refuses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ggshell.errors import StatementError
from ggshell.parameters.lines import Parameter, located
from ggshell.pipeline.apply.error_rules import DEFAULT, DEFAULT2, Switches

RESPONSES = frozenset(
    ("ABEND", "DISCARD", "EXCEPTION", "IGNORE", "RETRYOP", "TRANSABORT", "TRANSDISCARD", "TRANSEXCEPTION")
)
OPERATION_RETRIES = 10
ABORT_SECONDS = 60.0
"""Default delay of TRANSABORT. Without MAXRETRIES it retries forever."""
_SWITCHES = {
    "HANDLECOLLISIONS": "collisions",
    "OVERRIDEDUPS": "override_duplicates",
    "INSERTMISSINGUPDATES": "insert_missing",
}
_RULE = re.compile(r"\(\s*(?P<error>[-\w]+)\s*,\s*(?P<response>\w+)\s*(?P<options>[^()]*)\)", re.IGNORECASE)
_ERROR = re.compile(r"DEFAULT2?|-?\d{1,9}|(?=\w*\d)[0-9A-Z]{5}", re.IGNORECASE)
_OPTION = re.compile(r",?\s*(?P<name>MAXRETRIES|DELAYSECS|DELAYCSECS)\s+(?P<number>\d{1,9})(?!\d)\s*", re.IGNORECASE)
_OPTIONS = {"RETRYOP": ({"MAXRETRIES"},), "TRANSABORT": ({"MAXRETRIES", "DELAYSECS"}, {"MAXRETRIES", "DELAYCSECS"})}
"""The sets of options that each response allows."""


class ReperrorRule(NamedTuple):
    """One REPERROR rule.

    ``error``: SQLSTATE, number or DEFAULT; ``retries``: how often RETRYOP and TRANSABORT retry (None: forever); ``delay``:
    the seconds before TRANSABORT retries.
    """

    error: str
    response: str
    retries: int | None = OPERATION_RETRIES
    delay: float = 0.0


class RefusalRules(NamedTuple):
    """The settings for refused operations at the end of a file. They apply to what does not belong to a MAP."""

    rules: tuple[ReperrorRule, ...] = ()
    switches: Switches = Switches()


def refusal_rules(parameters: Iterable[Parameter]) -> RefusalRules:
    """The rules among parsed parameters. Raises ParameterError for a rule that is not valid or not supported."""
    result = RefusalRules()
    for item in parameters:
        result = RefusalRules(_rules_after(result.rules, item), _after(result.switches, item))
    return result


def with_rules(found: Sequence[Parameter]) -> Iterator[tuple[Parameter, tuple[ReperrorRule, ...]]]:
    """Each MAP with its rules: those of the lines above it, and its own. Empty if they are those at the end of the file.

    Raises ParameterError.
    """
    last, above = refusal_rules(found).rules, tuple[ReperrorRule, ...]()
    for item in found:
        above = _rules_after(above, item)
        if item.name == "MAP":
            yield item, _in_effect(rules_of_map(item), above, last)


def _in_effect(
    own: tuple[ReperrorRule, ...], above: tuple[ReperrorRule, ...], last: tuple[ReperrorRule, ...]
) -> tuple[ReperrorRule, ...]:
    """All rules of a MAP, without those at the end of the file; empty if both are the same."""
    default = any(rule.error == DEFAULT for rule in own)  # it replaces all rules of the lines above
    found = (*(rule for rule in above if not default or rule.error == DEFAULT2), *own)
    if found == last:
        return ()
    open_errors = {DEFAULT, *(rule.error for rule in last if rule.error == DEFAULT2)} - {rule.error for rule in found}
    return (*(ReperrorRule(error, "ABEND") for error in sorted(open_errors)), *found)


def _rules_after(rules: tuple[ReperrorRule, ...], item: Parameter) -> tuple[ReperrorRule, ...]:
    """The rules in effect below a line."""
    if item.name != "REPERROR":
        return rules
    given = "body" in item.args or "error" in item.args  # else RESET
    return (*rules, rule_of(item)) if given else ()


def with_switches(found: Iterable[Parameter]) -> Iterator[tuple[Parameter, Switches]]:
    """Each MAP with the switches in effect for it: those of the lines above it, and its own [NO]HANDLECOLLISIONS."""
    switches = Switches()
    for item in found:
        switches = _after(switches, item)
        if item.name == "MAP":
            own = "handlecollisions" in item.args or ("nohandlecollisions" not in item.args and switches.collisions)
            yield item, switches._replace(collisions=own)


def _after(switches: Switches, item: Parameter) -> Switches:
    """The switches in effect below a line."""
    switch = _SWITCHES.get(item.name.removeprefix("NO"))
    return switches if switch is None else switches._replace(**{switch: not item.name.startswith("NO")})


def rules_of_map(item: Parameter) -> tuple[ReperrorRule, ...]:
    """The REPERROR rules within a MAP. Raises ParameterError."""
    return tuple(read_rule(body, item, column) for body, column in item.bodies("reperror"))


def rule_of(item: Parameter) -> ReperrorRule:
    """A REPERROR line, with or without parentheses. Raises ParameterError."""
    if "body" in item.args:
        return read_rule(str(item.args["body"]), item, item.column("body"))
    text = item.text.rstrip(" ;")[len("REPERROR") :].strip(" ,\t")
    return read_rule(f"({text})", item, item.column("error"))


def read_rule(body: str, item: Parameter, column: int) -> ReperrorRule:
    """Read one ``(error, response)``. Raises ParameterError at a column of the statement."""
    match = _RULE.fullmatch(body.strip())
    response = match["response"].upper() if match else ""
    options = _options(match["options"]) if match else None
    allowed = _OPTIONS.get(response, (set(),))
    if match is None or options is None or not any(set(options) <= each for each in allowed):
        what = f"REPERROR {body.strip()} is not a valid rule"
    elif response not in RESPONSES:
        what = f"{response} is not a valid REPERROR response; valid responses are {', '.join(sorted(RESPONSES))}"
    elif not _ERROR.fullmatch(match["error"]):
        what = f"{match['error']} is not a valid error number, SQLSTATE, DEFAULT or DEFAULT2"
    else:
        return _rule(match["error"].upper(), response, options)
    hint = "write, for example, REPERROR (DEFAULT, DISCARD), REPERROR (60, TRANSABORT, MAXRETRIES 3, DELAYSECS 10)"
    raise located(StatementError(what, column=column, hint=hint, page="reperror"), item.raw)


def _rule(error: str, response: str, options: dict[str, int]) -> ReperrorRule:
    if response != "TRANSABORT":
        return ReperrorRule(error, response, options.get("MAXRETRIES", OPERATION_RETRIES))
    delay = options["DELAYCSECS"] / 100 if "DELAYCSECS" in options else float(options.get("DELAYSECS", ABORT_SECONDS))
    return ReperrorRule(error, response, options.get("MAXRETRIES"), delay)


def _options(text: str) -> dict[str, int] | None:
    """The options after a response. None if one is not valid or is repeated."""
    found: dict[str, int] = {}
    place = 0
    while place < len(text):
        match = _OPTION.match(text, place)
        if match is None or match["name"].upper() in found:
            return None
        found[match["name"].upper()] = int(match["number"])
        place = match.end()
    return found
