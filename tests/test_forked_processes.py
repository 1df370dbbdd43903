"""Processes of the tests that are forked: they behave like new processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import run_ggshell
from forked_processes import REAL
from processes import until

from ggshell.demo.processes import end_processes, running_processes
from ggshell.errors import ProcessError
from ggshell.groups.launch import spawn
from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, state_of

pytestmark = pytest.mark.slow
LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


@pytest.fixture(params=["forked", "new"])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of a start; what is true of a new process is also true of a fork."""
    if request.param == "new":
        request.getfixturevalue("real_starts")
    return str(request.param)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.ensure()
    return home


@pytest.fixture
def manager(home: Home, kind: str) -> Iterator[subprocess.Popen[bytes]]:
    process = spawn(home, "manager")
    yield process
    end_processes(home.root)
    assert process.wait(10) is not None


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])


@LINUX
def test_only_a_new_process_is_a_child_of_the_one_that_starts_it(kind: str, manager: subprocess.Popen[bytes]) -> None:
    assert (parent(manager.pid) == os.getpid()) is (kind == "new")


@LINUX
def test_proc_shows_the_command_line_the_session_and_the_files(home: Home, manager: subprocess.Popen[bytes]) -> None:
    words = Path(f"/proc/{manager.pid}/cmdline").read_text().rstrip("\0").split("\0")
    assert words == [sys.executable, "-P", "-m", "ggshell.groups", "manager", "--home", str(home.root)]
    assert [found.pid for found in running_processes(home.root)] == [manager.pid]
    assert os.getsid(manager.pid) == manager.pid
    system = Path(f"/proc/{manager.pid}")
    assert (system / "cwd").readlink() == home.root
    files = {link.name: str(link.readlink()) for link in (system / "fd").iterdir()}
    assert (files["0"], files["1"], files["2"]) == (os.devnull, *[str(home.output("mgr"))] * 2)


@LINUX
def test_signals_threads_and_descriptors_are_those_of_a_new_process(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def facts() -> tuple[list[str], list[str]]:
        process = spawn(home, "manager")
        assert run_ggshell("--home", home.root, "-c", "INFO MANAGER").returncode == 0  # now its threads run
        system = Path(f"/proc/{process.pid}")
        names = ("SigBlk", "SigIgn", "SigCgt", "Umask", "Threads")
        status = [line for line in (system / "status").read_text().splitlines() if line.startswith(names)]
        open_files = sorted(str(link.readlink()).partition(":[")[0] for link in (system / "fd").iterdir())
        end_processes(home.root)
        process.wait(10)
        return status, open_files

    forked = facts()
    monkeypatch.setenv(REAL, "1")
    assert forked == facts()


def test_a_killed_process_is_gone_and_has_its_exit_code(home: Home, manager: subprocess.Popen[bytes]) -> None:
    assert manager.poll() is None
    assert state_of(home.manager)[0] is ProcessState.RUNNING
    os.kill(manager.pid, signal.SIGKILL)
    assert manager.wait(10) == -signal.SIGKILL
    assert manager.poll() == -signal.SIGKILL
    assert state_of(home.manager)[0] is ProcessState.ABENDED
    with pytest.raises(ProcessLookupError):
        os.kill(manager.pid, 0)


def test_a_process_ends_normally_with_exit_code_zero(home: Home, manager: subprocess.Popen[bytes]) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        manager.wait(0.01)
    manager.terminate()
    assert manager.wait(10) == 0
    assert state_of(home.manager)[0] is ProcessState.STOPPED


@pytest.mark.usefixtures("kind")
def test_a_process_that_fails_to_start_is_reported_with_its_output(home: Home) -> None:
    with pytest.raises(ProcessError, match="EXTRACT EXT1 does not exist"):
        spawn(home, "extract", "EXT1")


@pytest.mark.usefixtures("kind")
def test_a_process_whose_directory_does_not_exist_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        subprocess.Popen([sys.executable, "-P", "-m", "ggshell.groups", "manager"], cwd=tmp_path / "missing")
    assert Path(raised.value.filename) == tmp_path / "missing"


@pytest.mark.usefixtures("kind")
def test_streams_can_be_pipes(tmp_path: Path) -> None:
    words = [sys.executable, "-P", "-m", "ggshell.service.task_process", str(tmp_path)]
    done = subprocess.run(words, input=b"not JSON\n", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"Traceback" in done.stderr


def test_a_command_has_the_directory_and_the_environment_of_the_test(tmp_path: Path) -> None:
    run = run_ggshell("--home", tmp_path, "-c", "SHELL echo $PLACE; pwd", PLACE="Aachen")
    assert run.stdout.split() == ["Aachen", str(Path.cwd())]


@LINUX
def test_groups_that_a_command_starts_are_forked_too(home: Home) -> None:
    ours = spawn(home, "manager")
    server = parent(ours.pid)
    end_processes(home.root)
    ours.wait(10)
    assert run_ggshell("--home", home.root, "-c", "START MANAGER").returncode == 0
    (found,) = running_processes(home.root)
    assert parent(found.pid) == server
    assert len(list(Path(f"/proc/{server}/task").iterdir())) == 1
    end_processes(home.root)
    until("the process is gone", lambda: not Path(f"/proc/{found.pid}").exists())


@LINUX
@pytest.mark.parametrize("name", ["PYTHONPATH", "LD_PRELOAD", "LC_ALL"])
def test_an_environment_that_changes_the_interpreter_starts_a_new_process(
    home: Home, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, os.pathsep.join(filter(None, [os.environ.get(name, ""), str(home.root)])))
    process = spawn(home, "manager")
    assert parent(process.pid) == os.getpid()
    end_processes(home.root)
    process.wait(10)
