"""The bodies of requests about paths, and the words of the statements that they stand for."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ggshell.errors import UsageError
from ggshell.home.checkpoint import GroupOptions
from ggshell.service.answers import Object
from ggshell.service.bodies import Begin, Body, GroupStatus
from ggshell.service.statement_words import quoted, word

_RULE_FIELDS: Final = ("$schema", "name", "description", "passthru", "objectNames", "filters", "action", "relation")


class Endpoint(Body, kw_only=True):
    """An end of a path. ``details``: the size of the target's files, and whether what is sent is compressed."""

    uri: str
    description: str | None = None
    details: Object | None = None
    proxy: Object | None = None
    is_dynamic_ogg_port: bool | None = None
    authentication_method: Any = None


class PathBody(Body):
    """A path, for POST and PATCH."""

    name: str | None = None
    description: str | None = None
    source: Endpoint | None = None
    target: Endpoint | None = None
    begin: Begin = None
    options: Object | None = None
    encryption_profile: str | None = None
    managed_path_settings: str | Object | None = None
    target_initiated: bool | None = None
    ruleset: Object | None = None
    status: GroupStatus | None = None

    def given(self) -> Object:
        """Return the fields that the client sent, except the status and the options, which statements set."""
        fields = _filled(msgspec.to_builtins(self))
        return {name: value for name, value in fields.items() if name not in ("status", "options")}


def _filled(fields: Object) -> Object:
    """Return the fields that have a value, without schemas, also in objects within objects."""
    found = {name: _filled(value) if isinstance(value, dict) else value for name, value in fields.items()}
    return {name: value for name, value in found.items() if value not in (None, "", {}) and name != "$schema"}


def size_of(end: Endpoint | None) -> str:
    """Return the size of the target's files in MB as the client gave it; empty if it did not."""
    trail = ((end.details if end is not None else None) or {}).get("trail") or {}
    size = trail.get("sizeMB") if isinstance(trail, dict) else None
    return str(size) if size is not None else ""


def compression_of(end: Endpoint | None) -> bool | None:
    """Return whether data is to be compressed; None if the client did not say."""
    found = ((end.details if end is not None else None) or {}).get("compression")
    enabled = found.get("enabled") if isinstance(found, dict) else None
    return enabled if isinstance(enabled, bool) else None


def login_of(end: Endpoint) -> str:
    """Return how the path signs in, as statements say it: with the alias of ``authenticationMethod``; empty without one."""
    method = end.authentication_method
    alias = alias_of(end)
    if not alias or not isinstance(method, dict):
        return ""
    domain = method.get("domain")
    return f"USERIDALIAS {word(alias)}" + (f" DOMAIN {word(domain)}" if isinstance(domain, str) and domain else "")


def proxy_of(end: Endpoint | None) -> str:
    """Return the proxy of an end as statements say it: URI url TYPE kind [CSALIAS alias [CSDOMAIN domain]]; empty without one.

    Raises UsageError for a proxy without a URI.
    """
    found = end.proxy if end is not None else None
    if not found:
        return ""
    uri, kind, alias, domain = (found.get(name) or "" for name in ("uri", "type", "csAlias", "csDomain"))
    if not uri:
        raise UsageError("a proxy requires uri", hint='"proxy": {"uri": "http://proxy:3128", "type": "http"}')
    login = f" CSALIAS {word(str(alias))}" if alias else ""
    login += f" CSDOMAIN {word(str(domain))}" if alias and domain else ""
    return f"URI {word(str(uri))} TYPE {'SOCKS' if str(kind).lower().startswith('socks') else 'HTTP'}{login}"


def alias_of(end: Endpoint) -> str:
    method = end.authentication_method
    alias = method.get("alias") if isinstance(method, dict) else None
    return alias if isinstance(alias, str) else ""


def place_of(begin: str | Object | None, *, new: bool = False) -> str:
    """Return a position as ALTER … BEGIN names it; empty for none. A ``new`` path is at the beginning already.

    Raises UsageError.
    """
    if begin is None:
        return ""
    if isinstance(begin, str):
        return "NOW" if begin.lower() == "now" else quoted(begin)
    if "sequence" not in begin:
        raise UsageError("begin must be now, a time, or {sequence, offset}")
    sequence, offset = str(begin["sequence"]), str(begin.get("offset", 0))
    return "" if new and {sequence, offset} == {"0"} else f"SEQNO {word(sequence)} RBA {word(offset)}"


def rule_of(ruleset: Object | None) -> tuple[tuple[str, ...], bool] | None:
    """Return the tables of a ruleset and whether they are excluded; no tables if it sends all; None if it has no rule.

    A ruleset has one rule: ``{"passthru": true}``, or ``objectNames`` with ``action`` include or exclude, also within
    ``filters``. Raises UsageError for anything else, which would change the rows.
    """
    rules = (ruleset or {}).get("rules")
    unknown = [name for name in ruleset or {} if name not in ("$schema", "name", "description", "rules")]
    if unknown:
        raise _unsupported(unknown[0])
    if not rules:
        return None
    if not isinstance(rules, list) or len(rules) > 1 or not isinstance(rules[0], dict):
        raise UsageError("ruleset must be an object whose rules have one rule", hint="a path has one rule")
    rule = rules[0]
    excludes = _action(rule)
    names = _names(rule)
    if bool(names) == (rule.get("passthru") is True):
        raise UsageError("a rule of a ruleset requires passthru or objectNames", hint='"objectNames": ["hr.*"]')
    return names, excludes and bool(names)


def _action(rule: Object) -> bool:
    action = str(rule.get("action") or "include").lower()
    if action not in ("include", "exclude"):
        raise UsageError(f"{action[:80]} is not a valid action of a ruleset", hint="use include or exclude")
    return action == "exclude"


def _names(rule: Object) -> tuple[str, ...]:
    """Return the tables of a rule. Raises UsageError for a field that is not supported."""
    for name in rule:
        if name not in _RULE_FIELDS:
            raise _unsupported(str(name))
    filters = rule.get("filters") or []
    parts = [rule, *(filters if isinstance(filters, list) else [filters])]
    found: list[str] = []
    for part in parts:
        if not isinstance(part, dict):
            raise UsageError("filters of a ruleset must be objects", hint='"filters": [{"objectNames": ["hr.*"]}]')
        if part is not rule and (unknown := [name for name in part if name not in ("$schema", "objectNames")]):
            raise _unsupported(unknown[0])
        names = part.get("objectNames") or []
        found += [names] if isinstance(names, str) else [str(each) for each in names]
    return tuple(found)


def _unsupported(name: str) -> UsageError:
    return UsageError(f"{name[:80]} of a ruleset is not supported", hint="rules select tables: use objectNames")


def rule_words(rule: tuple[tuple[str, ...], bool]) -> str:
    """Return a rule as ALTER DISTPATH names it."""
    names, excludes = rule
    if not names:
        return "RULE PASSTHRU"
    tables = ", ".join(word(each) for each in names)
    return f"RULE FILTER OBJECTNAMES {tables} ACTION {'EXCLUDE' if excludes else 'INCLUDE'}"


def shown_ruleset(options: GroupOptions, given: Object | None) -> Object | None:
    """Return the ruleset of a path: as the client gave it, if it is still the path's rule."""
    rule = (options.rule_objects, options.rule_excludes)
    if given is not None and (rule_of(given) or ((), False)) == rule:
        return given
    if not options.rule_objects:
        return None
    action = "exclude" if options.rule_excludes else "include"
    return {"rules": [{"objectNames": list(options.rule_objects), "action": action}]}
