"""Programs that take over the terminal, such as editors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli.shell import Shell

from ggshell.cli.options import Options
from ggshell.cli.output import programs
from ggshell.cli.session import Session

pytestmark = pytest.mark.slow

INTERRUPTED = """
import os, signal, sys
from ggshell.cli.output import programs
child = f"import os, signal, sys; os.kill({os.getpid()}, signal.SIGINT); sys.stdin.read(); sys.exit(7)"
before = signal.getsignal(signal.SIGINT)
assert programs.run([sys.executable, "-c", child], "x") == 7
assert signal.getsignal(signal.SIGINT) == before
"""


def test_a_program_gets_the_input_and_returns_its_exit_code() -> None:
    assert programs.run([sys.executable, "-c", "import sys; sys.exit(len(sys.stdin.read()))"], "four") == 4


def test_ctrl_c_in_the_program_does_not_interrupt_the_shell() -> None:
    result = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False, timeout=60
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_a_program_that_exits_early_is_not_an_error() -> None:
    assert programs.run(["true"], "x" * 1_000_000) == 0


def test_a_missing_program_is_reported() -> None:
    with pytest.raises(OSError, match="No such file"):
        programs.run(["no-such-program"])


def test_edit_params_opens_the_editor_and_checks_the_file(shell: Shell, tmp_path: Path) -> None:
    from ggshell.cli.execute import execute

    shell.home.ensure()
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf 'EXTRACT pmp1\\nPASTHRU\\n' > $1\n")
    editor.chmod(0o755)
    session = Session(Options(home=str(shell.home.root)))
    refused = execute(session, "EDIT PARAMS pmp1")
    assert "requires a terminal" in str(refused.errors[0])
    session.interactive, session.editor = True, str(editor)
    outcome = execute(session, "EDIT PARAMS pmp1")
    assert "unknown parameter PASTHRU" in str(outcome.errors[0])
    assert shell.home.parameters("pmp1").read_text() == "EXTRACT pmp1\nPASTHRU\n"
