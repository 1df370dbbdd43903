"""What EDIT PARAMS reports about a file after the editor closes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.shell import Shell

from ggshell.cli.commands.view import checked


@pytest.fixture
def path(shell: Shell) -> Path:
    shell.home.ensure()
    return shell.home.parameters("pmp1")


def test_every_error_is_reported_with_its_position(path: Path) -> None:
    path.write_text("EXTRACT pmp1\nPASTHRU\nRMTTRIAL ./dirdat/ra\nTABLE a.*;\n")
    found = checked(path)
    assert found.lines == ("The file is saved, but a process would reject it:",)
    assert [error.where for error in found.errors] == ["pmp1.prm:2:1", "pmp1.prm:3:1"]
    assert "did you mean PASSTHRU?" in found.errors[0].hint


def test_a_missing_parameter_is_reported_for_a_file_with_valid_lines(path: Path) -> None:
    path.write_text("REPLICAT rep1\nTARGETDB south\n")
    found = checked(path)
    assert len(found.errors) == 1


def test_an_unsupported_parameter_is_a_note(path: Path) -> None:
    path.write_text("EXTRACT pmp1\nPASSTHRU\nEOFDELAY 3\nRMTTRAIL ./dirdat/ra\nTABLE a.*;\n")
    found = checked(path)
    assert found.errors == ()
    assert found.lines == ("The file is saved, and its parameters are valid.",)
    (note,) = found.notes
    assert "EOFDELAY" in note.message
    assert note.message.endswith("(pmp1.prm:3:1)")


@pytest.mark.parametrize("text", [None, "", "-- nothing yet\n"])
def test_a_file_without_parameters_is_not_reported(path: Path, text: str | None) -> None:
    if text is not None:
        path.write_text(text)
    assert checked(path).lines == ()
