"""Encodings and collations. Indexes are built again at the target, but order, uniqueness and partition bounds may differ."""

from __future__ import annotations

from collections.abc import Iterator

from ggshell.connectors.move_facts import CollationFacts, Locale
from ggshell.move.checks.sides import Sides
from ggshell.move.findings import ERROR, WARNING, Finding, listed, subject_of

_UNICODE = "UTF8"
_UNCHECKED = "SQL_ASCII"


def encoding(sides: Sides) -> Iterator[Finding]:
    """The encodings of the two databases."""
    here, there = sides.source.locale.encoding, sides.target.locale.encoding
    if _UNCHECKED in (here, there) and here != there:
        text = f"the source has encoding {here}, the target {there}: {_UNCHECKED} does not define the characters"
        yield Finding(ERROR, "GGS-01067", "encoding", text, "create the target with the encoding that the bytes have")
    elif here != there:
        severity = WARNING if there == _UNICODE else ERROR
        text = f"the source has encoding {here}, the target {there}"
        lost = "" if there == _UNICODE else f": characters that {there} does not have are refused"
        action = f"create the target with ENCODING '{here}', or with UTF8"
        yield Finding(severity, "GGS-01067", "encoding", text + lost, action)


def default_collation(sides: Sides) -> Iterator[Finding]:
    """The collation of columns that name none."""
    here, there = sides.source.locale, sides.target.locale
    if _collation(here) != _collation(there):
        text = f"the database sorts with {_collation(here)} in the source and with {_collation(there)} in the target:"
        text = f"{text} order, uniqueness of case variants, and partition bounds of text may differ"
        action = "create the target with the same LOCALE_PROVIDER, LC_COLLATE and LC_CTYPE"
        yield Finding(WARNING, "GGS-01068", "default collation", text, action)
    elif here.actual != there.actual and here.actual and there.actual:
        yield _other_version(("default",), here.provider, here.actual, there.actual)


def _collation(locale: Locale) -> str:
    words = [locale.provider, *dict.fromkeys(each for each in (locale.rules, locale.collate, locale.ctype) if each)]
    return " ".join(words)


def _other_version(names: tuple[str, ...], provider: str, here: str, there: str) -> Finding:
    """The finding for collations whose library has another version at the target."""
    text = f"{listed(names)}: {provider} has version {here} in the source and {there} in the target; the order of text"
    text = (
        f"{text} may differ. Indexes are built again, but unique and exclusion constraints or partition bounds can fail"
    )
    action = "none if the load succeeds; test the sort order of the application with the target"
    return Finding(WARNING, "GGS-01069", subject_of(names, "collation"), text, action, names)


def collations(sides: Sides) -> Iterator[Finding]:
    """The collations that columns and indexes name."""
    used = sides.source.facts.collations()
    there = {each.name: each for each in sides.target.facts.system_collations([each.name for each in used])}
    missing = tuple(each.name for each in used if not each.own and each.name not in there)
    missing += tuple(each.name for each in used if each.own and not _creatable(each, sides))
    if missing:
        text = f"columns or indexes use collations that the target's server does not have: {listed(missing)}"
        action = "install the locales on the target's machine and run SELECT pg_import_system_collations('pg_catalog')"
        yield Finding(ERROR, "GGS-01070", subject_of(missing, "collation"), text, action, missing)
    groups: dict[tuple[str, str, str], list[str]] = {}
    for each in (each for each in used if not each.own and each.name in there):
        versions = (each.provider, each.actual, there[each.name].actual)
        if each.actual != there[each.name].actual:
            groups.setdefault(versions, []).append(each.name)
    for versions, names in groups.items():
        yield _other_version(tuple(names), *versions)


def _creatable(collation: CollationFacts, sides: Sides) -> bool:
    return sides.target.facts.knows_locale(collation.provider, collation.rules)


def changed_library(sides: Sides) -> Iterator[Finding]:
    """Collations of the source whose library has changed since their indexes were built."""
    locale = sides.source.locale
    found = [] if not locale.recorded or locale.recorded == locale.actual else ["default"]
    found += [each.name for each in sides.source.facts.collations() if each.recorded not in ("", each.actual)]
    if found:
        names = tuple(found)
        text = (
            f"the library of {listed(names)} has changed since the source was created: its indexes may be damaged, and"
        )
        text = f"{text} its tables may violate their unique constraints"
        action = "REINDEX the source and ALTER … REFRESH COLLATION VERSION before the move"
        yield Finding(WARNING, "GGS-01071", subject_of(names, "collation"), text, action, names)
