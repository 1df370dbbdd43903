"""Ranges and rules between options, as stated in the pages."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ggshell.durations import read_interval
from ggshell.errors import StatementError
from ggshell.language import grammar, pages
from ggshell.language.values import check_values, rules_of
from ggshell.quantities import read_size


def page(folder: Path, *lines: str) -> Path:
    path = folder / "thing.md"
    path.write_text("# THING\n\n## Values\n" + "".join(f"    {line}\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("rule", "args", "message"),
    [
        ("BRINTERVAL: 20M to 96H", {"brinterval": (4, "H")}, ""),
        ("BRINTERVAL: 20M to 96H", {"brinterval": read_interval("20m")}, ""),
        ("BRINTERVAL: 20M to 96H", {"brinterval": (19, "M")}, "is not in the range 20M to 96H"),
        ("BRINTERVAL: 20M to 96H", {"brinterval": read_interval("97H")}, "is not in the range 20M to 96H"),
        ("CACHESIZE: 64MB to 8GB", {"cachesize": read_size("32M")}, "is not in the range 64MB to 8GB"),
        ("CACHESIZE: 64MB to 8GB", {"cachesize": read_size("1G")}, ""),
        ("number: at least 1", {"number": 0}, "number: 0 is less than 1"),
        ("number: at most 50", {"number": 51}, "51 is more than 50"),
        ("number: multiple of 5", {"number": 12}, "12 is not a multiple of 5"),
        ("FREQUENCY: 0.1 to 7999", {"frequency": Decimal("0.1")}, ""),
        ("FREQUENCY: 0.1 to 7999", {"frequency": 8000}, "8000 is not in the range"),
        ("group_name: 1 to 8 characters", {"group_name": "EXTRACT01"}, "group name: 9 characters; 1 to 8 are allowed"),
        ("BRDIR: not containing temp, tmp", {"brdir": "/var/TMP/br"}, "contains tmp"),
        ("BRDIR: not containing temp, tmp", {"brdir": "/var/br"}, ""),
        ("BROFF: not with BRINTERVAL, BRDIR", {"broff": True, "brdir": "x"}, "BROFF: cannot be used with BRDIR"),
        ("BROFF: not with BRINTERVAL, BRDIR", {"broff": True}, ""),
        ("EXTRBA: only with EXTSEQNO", {"extrba": 5}, "EXTRBA requires EXTSEQNO"),
        ("group_name: only with LOG, TRAIL, TABLE (or VAM, host)", {"group_name": "e"}, "requires LOG, TRAIL or TABLE"),
        ("group_name: only with LOG, TRAIL, TABLE (or VAM, host)", {"group_name": "e", "vam": True}, ""),
        ("EXTRBA: only with EXTSEQNO", {"extrba": 5, "extseqno": 0}, ""),
        ("BEGIN: at least 1", {"begin": "NOW"}, ""),
        ("OTHER: at least 1", {}, ""),
    ],
)
def test_a_rule_refuses_only_what_it_forbids(tmp_path: Path, rule: str, args: dict[str, Any], message: str) -> None:
    path = page(tmp_path, rule)
    if not message:
        check_values(path, args, "a statement")
        return
    with pytest.raises(StatementError) as caught:
        check_values(path, args, "a statement")
    assert message in caught.value.message


def test_the_column_is_that_of_the_value() -> None:
    with pytest.raises(StatementError) as caught:
        grammar.parse("BR BRDIR x, BRINTERVAL 5M", grammar.PARAMETERS)
    assert caught.value.column == 24


@pytest.mark.parametrize("kind", ["commands", "parameters"])
def test_the_rules_of_every_page_can_be_read(kind: str) -> None:
    for path in pages.index(kind).values():
        rules_of(path)


def test_a_statement_that_breaks_a_rule_is_refused_with_its_page() -> None:
    with pytest.raises(StatementError) as caught:
        grammar.parse("REPORTCOUNT EVERY 0 RECORDS", grammar.PARAMETERS)
    assert (caught.value.column, caught.value.page) == (19, "reportcount")


@pytest.mark.parametrize("text", ["THING [FAST | SLOW]", "THING x [, FAST | SLOW n] [, OTHER]"])
def test_an_optional_choice_does_not_need_braces(text: str) -> None:
    from ggshell.language.notation import argument_names, compile_line

    assert {"fast", "slow"} <= argument_names(compile_line(text, "thing"))
