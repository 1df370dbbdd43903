"""DDL, DDLOPTIONS, DDLERROR and DDLSUBST: which DDL statements a process takes, and what it does with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ggshell.language.unsupported import CODE
from ggshell.parameters.lines import Parameter
from ggshell.pipeline.apply.error_rules import states
from ggshell.record.ddl_responses import (
    Comments,
    DdlAnswer,
    DdlErrorRule,
    DdlErrors,
    DdlResponse,
    DdlSubstitution,
    DdlSubstitutions,
)
from ggshell.record.ddl_rules import DdlCondition, DdlRules, DdlScope
from ggshell.record.name_patterns import is_name_pattern
from ggshell.types import split_name

RETRIES = 10
"""How often RETRYOP retries without MAXRETRIES."""
RETRY_SECONDS = 60
_CLAUSES = ("INCLUDE", "EXCLUDE")
_TEXTS = {
    "OPTYPE": "operation",
    "OBJTYPE": "object_type",
    "OBJNAME": "object_name",
    "INSTR": "text",
    "INSTRWORDS": "words",
    "INSTRCOMMENTS": "comment",
    "INSTRCOMMENTSWORDS": "comment_words",
}
"""The options with a text, with the field of the condition."""
_FLAGS = {"ALLOWEMPTYOBJECT": "empty_object", "ALLOWEMPTYOWNER": "empty_owner"}
_ELSEWHERE = {
    "SOURCECATALOG": "names in trails have no containers",
    "ALLCATALOGS": "names in trails have no containers",
    "EVENTACTIONS": "records cannot trigger actions",
}
"""Options that would select other statements, or do something that this version does not do, with the reason."""
_IDLE = frozenset({"ALL", "STAYMETADATA"})
_WORDS = re.compile(r"\"([^\"]+)\"|(\S+)")
_ERROR = re.compile(r"(?:ORA)?-?\d{1,9}|(?=\w*\d)[0-9A-Z]{5}", re.IGNORECASE)


class DdlOptions(NamedTuple):
    """DDLOPTIONS.

    ``report``: each statement is written to the report (REPORT); ``maps``: false with IGNOREMAPPING; ``maps_derived``: false
    with NOMAPDERIVED; ``session_schemas``: pairs of MAPSESSIONSCHEMA; ``maps_schemas``: MAPSCHEMAS;
    ``replicates``: an Extract captures statements of a Replicat too (GETREPLICATES).
    """

    report: bool = False
    maps: bool = True
    maps_derived: bool = True
    session_schemas: tuple[tuple[str, str], ...] = ()
    maps_schemas: bool = False
    replicates: bool = False


class _Part(NamedTuple):
    """An option of an INCLUDE or EXCLUDE with its value, empty if it has none."""

    word: str
    value: str = ""


def ddl_rules(found: Iterable[Parameter]) -> DdlRules | None:
    """Return the rules of the file's DDL line, None if it has none. Raises ParameterError, also for a second line."""
    lines = [item for item in found if item.name == "DDL"]
    if len(lines) > 1:
        raise lines[1].wrong(f"a file can have only one DDL; the first one is on line {lines[0].line}", page="ddl")
    return rules_of(lines[0]) if lines else None


def ddl_errors(found: Iterable[Parameter]) -> DdlErrors:
    """Return the rules of the DDLERROR lines. Raises ParameterError."""
    lines = [item for item in found if item.name == "DDLERROR"]
    missing = [
        word for item in lines for word in ("ignoremissingobjects", "abendonmissingobjects") if word in item.args
    ]
    skips = [int(item.args["restartskip"]) for item in lines if "restartskip" in item.args]
    return DdlErrors(
        tuple(error_rule(item) for item in lines if "default" in item.args or "error" in item.args),
        missing[-1:] == ["ignoremissingobjects"],
        skips[-1] if skips else 0,
    )


def ddl_substitutions(found: Iterable[Parameter]) -> DdlSubstitutions:
    """Return the DDLSUBST lines in their order, with REMOVECOMMENTS. Raises ParameterError."""
    parameters = list(found)
    given = [item.args["removecomments"] for item in parameters if "removecomments" in item.args]
    lines = (item for item in parameters if item.name == "DDLSUBST")
    return DdlSubstitutions(tuple(map(substitution, lines)), Comments(given[-1].upper()) if given else Comments.KEEP)


def ddl_options(found: Iterable[Parameter]) -> DdlOptions:
    """Return the options of the DDLOPTIONS lines; later ones override earlier ones."""
    result = DdlOptions()
    for item in found:
        if item.name == "DDLOPTIONS":
            result = _with_options(result, item.args)
    return result


_SWITCHES: dict[str, dict[str, bool]] = {
    "report": {"report": True},
    "noreport": {"report": False},
    "ignoremapping": {"maps": False},
    "mapderived": {"maps_derived": True},
    "nomapderived": {"maps_derived": False},
    "mapschemas": {"maps_schemas": True},
    "getreplicates": {"replicates": True},
    "ignorereplicates": {"replicates": False},
}


def _with_options(options: DdlOptions, given: dict[str, Any]) -> DdlOptions:
    for name, change in _SWITCHES.items():
        if name in given:
            options = options._replace(**change)  # type: ignore[arg-type]  # the values are all switches
    if "mapsessionschema" in given:
        source, _, target = given["mapsessionschema"]
        pair = (split_name(source)[-1], split_name(target)[-1])
        options = options._replace(session_schemas=(*options.session_schemas, pair))
    return options


def check_ddl(item: Parameter) -> object:
    """Read the values of one line of these parameters. Raises ParameterError."""
    match item.name:
        case "DDL":
            return rules_of(item)
        case "DDLERROR":
            return ddl_errors([item])
        case "DDLSUBST":
            return substitution(item)
    return ddl_options([item])


def error_rule(item: Parameter) -> DdlErrorRule:
    """One DDLERROR with a response. Raises ParameterError."""
    error = str(item.args.get("error", ""))
    if error and not _ERROR.fullmatch(error):
        raise item.wrong(f"{error} is not a valid SQLSTATE, error number or DEFAULT", "error", page="ddlerror")
    response = next(each for each in DdlResponse if each.lower() in item.args)
    retries = int(item.args.get("maxretries", RETRIES)) if "retryop" in item.args else 0
    delay = float(item.args.get("retrydelay", RETRY_SECONDS)) if retries else 0.0
    return DdlErrorRule(states(error) if error else (), DdlAnswer(response, retries, delay), rules_of(item))


def substitution(item: Parameter) -> DdlSubstitution:
    """One DDLSUBST. Raises ParameterError."""
    search = str(item.args["search_text"])
    if not search:
        raise item.wrong("the text to replace is empty", "search_text", page="ddlsubst")
    return DdlSubstitution(search, str(item.args["replacement"]), rules_of(item))


def rules_of(item: Parameter) -> DdlRules:
    """The INCLUDE and EXCLUDE parts of a line. Raises ParameterError."""
    conditions = tuple(_condition(parts, item) for parts in _clauses(item))
    everything = conditions == (DdlCondition(False),)
    if conditions and not everything and not any(each.includes for each in conditions):
        hint = f"write {item.name} … INCLUDE ALL, EXCLUDE …"
        raise item.wrong("EXCLUDE requires an INCLUDE", "exclude", hint=hint, page=item.name.lower())
    return DdlRules(conditions)


def _clauses(item: Parameter) -> Iterator[list[_Part]]:
    """The options of each INCLUDE and EXCLUDE, which come first."""
    given: Sequence[str] = item.args.get("include") or item.args.get("exclude") or ()
    words = iter((given,) if isinstance(given, str) else given)
    parts: list[_Part] = []
    for word in words:
        if word in _CLAUSES and parts:
            yield parts
            parts = []
        valued = word in _TEXTS or (word in _ELSEWHERE and word != "ALLCATALOGS")
        parts.append(_Part(word, str(next(words)) if valued else ""))
    if parts:
        yield parts


def _condition(parts: list[_Part], item: Parameter) -> DdlCondition:
    fields: dict[str, Any] = {}
    for word, value in parts[1:]:
        if word in _ELSEWHERE:
            what = f"{word} of {item.name} is not supported: {_ELSEWHERE[word]}"
            raise item.wrong(what, _argument(item), code=CODE, hint="leave it out", page=item.name.lower())
        if word in _FLAGS:
            fields[_FLAGS[word]] = True
        elif word in _TEXTS:
            fields[_TEXTS[word]] = _value(word, value, item)
        elif word not in _IDLE:
            fields["scope"] = DdlScope(word)
    return DdlCondition(parts[0].word == "INCLUDE", **fields)


def _value(word: str, value: str, item: Parameter) -> str | tuple[str, ...]:
    if not value.strip():
        raise item.wrong(f"the text of {word} is empty", _argument(item), page=item.name.lower())
    if word.endswith("WORDS"):
        return tuple(phrase or single for phrase, single in _WORDS.findall(value))
    if word == "OBJNAME":
        return _name(value, item)
    return " ".join(value.upper().split()) if word in ("OPTYPE", "OBJTYPE") else value


def _name(value: str, item: Parameter) -> str:
    """A pattern of names of one or two quoted parts. Raises ParameterError."""
    if not is_name_pattern(value):
        what = f"OBJNAME {value} is not a valid name"
        raise item.wrong(what, _argument(item), hint="write schema.name; * and ? are wildcards", page=item.name.lower())
    return value


def _argument(item: Parameter) -> str:
    return "include" if "include" in item.args else "exclude"
