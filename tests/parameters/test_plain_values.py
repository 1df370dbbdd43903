"""Single values of GLOBALS are read without the parser; everything else is left to the parser."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.groups.heartbeat_settings import home_names
from ggshell.home.home import Home
from ggshell.parameters.plain_values import plain_values

WANTED = ("GGSCHEMA", "HEARTBEATTABLE")


def test_a_missing_file_has_no_values(tmp_path: Path) -> None:
    assert plain_values(tmp_path / "GLOBALS", WANTED) == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("GGSCHEMA ggadmin\n", {"GGSCHEMA": "ggadmin"}),
        ("-- a comment\n\nggschema one -- not this\nCOMMENT it's two & three\nGGSCHEMA two;\n", {"GGSCHEMA": "two"}),
        ("CHECKPOINTTABLE a.b\nHEARTBEATTABLE ggs.beats\n", {"HEARTBEATTABLE": "ggs.beats"}),
        ("GGSCHEMA one\nINCLUDE more.inc\n", None),
        ("GGSCHEMA &\n one\n", None),
        ('GGSCHEMA "Mixed"\n', None),
        ("GGSCHEMA one two\n", None),
        ("GGSCHEMA\n", None),
        ("GGSCHEMA #name()\n", None),
        ("NOSUCHPARAMETER\nGGSCHEMA one\n", None),
        ("MACRO #name BEGIN GGSCHEMA one END;\n", None),
        ("GGSCHEMA one; HEARTBEATTABLE two\n", None),
    ],
)
def test_only_plain_files_are_read(tmp_path: Path, text: str, found: dict[str, str] | None) -> None:
    (tmp_path / "GLOBALS").write_text(text)
    assert plain_values(tmp_path / "GLOBALS", WANTED) == found


def test_the_names_equal_those_of_the_parser(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (tmp_path / "more.inc").write_text("GGSCHEMA ggadmin\n")
    home.globals.write_text("GGSCHEMA other\nINCLUDE more.inc\n")
    by_parser = home_names(home)
    home.globals.write_text("GGSCHEMA ggadmin\n")
    assert by_parser == home_names(home) is not None
