"""Colors of ``ggshell check``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ggshell.check.cli import FAILED, main


@pytest.mark.parametrize(("no_color", "colored"), [("", True), ("1", False)])
def test_no_color_turns_colors_off(
    no_color: str, colored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    file = tmp_path / "wrong.oby"
    file.write_text("INFO NOTHING AT ALL\n")
    assert main([str(file)]) == FAILED
    assert ("\x1b[" in capsys.readouterr().out) is colored
