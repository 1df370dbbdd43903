"""``ggshell service`` runs the service in the foreground until a signal ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import until
from service_client import free_port

from ggshell.home.process_file import ProcessState, state_of

pytestmark = pytest.mark.slow


def test_the_service_runs_until_a_signal(tmp_path: Path) -> None:
    (tmp_path / "dirprm").mkdir()
    port = free_port()
    (tmp_path / "dirprm" / "service.prm").write_text(f"PORT {port}\nPLAINTEXT\n")
    words = [sys.executable, "-m", "ggshell", "--home", str(tmp_path), "service"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        until("it runs", lambda: state_of(tmp_path / "dirpcs" / "SERVICE.pcs")[0] is ProcessState.RUNNING)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    said = f"Service started: http://127.0.0.1:{port}. STOP SERVICE or Ctrl-C ends it.\n"
    assert (process.returncode, out.decode()) == (0, said)
    assert "Service stopped." in (tmp_path / "ggserr.log").read_text()
