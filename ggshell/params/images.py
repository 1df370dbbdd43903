"""COMPRESSUPDATES, COMPRESSDELETES, GETUPDATEBEFORES, LOGALLSUPCOLS, UPDATERECORDFORMAT: what they say of each TABLE line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ggshell.params.lines import Parameter
from ggshell.record.image_rules import ImageRules, Unified

_SWITCHES: dict[str, dict[str, Any]] = {
    "COMPRESSUPDATES": {"whole_updates": False},
    "NOCOMPRESSUPDATES": {"whole_updates": True},
    "COMPRESSDELETES": {"whole_deletes": False},
    "NOCOMPRESSDELETES": {"whole_deletes": True},
    "GETUPDATEBEFORES": {"befores": True},
    "IGNOREUPDATEBEFORES": {"befores": False},
}


def image_rules(found: Iterable[Parameter]) -> list[ImageRules]:
    """The rules of each TABLE line, in their order.

    The switches count for the lines below them, LOGALLSUPCOLS and UPDATERECORDFORMAT for the whole file; LOGALLSUPCOLS without
    the other means UPDATERECORDFORMAT COMPACT.
    """
    parameters = list(found)
    names = {item.name for item in parameters}
    formats = [item.args for item in parameters if item.name == "UPDATERECORDFORMAT"]
    supplemental = "LOGALLSUPCOLS" in names
    unified = Unified.COMPACT if supplemental else None
    if formats:
        unified = Unified.FULL if "full" in formats[-1] else Unified.COMPACT
    rules = ImageRules(supplemental=supplemental, unified=unified)
    result: list[ImageRules] = []
    for item in parameters:
        rules = rules._replace(**_SWITCHES.get(item.name, {}))
        if item.name == "TABLE":
            result.append(rules)
    return result
