"""The wheel that users install is built, installed into a new environment, and used from another folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import ggshell

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


def _run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=600,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--wheel", "--no-isolation", "--outdir", str(folder)]
    result = _run(sys.executable, "-m", "build", *options, ROOT, folder=folder)
    assert result.returncode == 0, result.stdout + result.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment with the wheel; its dependencies come from the current environment."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    # Only the installed libraries: the editable install of the checkout must not be visible.
    (packages / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    install = [
        "-m",
        "pip",
        "--python",
        str(folder),
        "install",
        "--no-deps",
        "--no-index",
        "--quiet",
        "--ignore-installed",
    ]
    result = _run(sys.executable, *install, wheel, folder=folder)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / "bin"


def test_the_wheel_contains_the_manual_the_types_and_the_demo(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert any(name.startswith("ggshell/_grammar/commands/") and name.endswith(".md") for name in names)
    assert "ggshell/_grammar/messages/ggs-00503.md" in names
    assert {"ggshell/py.typed", "ggshell/demo/schema.sql", "ggshell/demo/rows.sql"} <= names
    assert not [name for name in names if name.startswith(("tests/", "scripts/"))]


def test_the_package_comes_from_the_wheel(programs: Path, tmp_path: Path) -> None:
    result = _run(programs / "python", "-c", "import ggshell; print(ggshell.__file__)", folder=tmp_path)
    assert Path(result.stdout.strip()).is_relative_to(programs.parent)


def test_its_version_is_that_of_the_package(programs: Path, tmp_path: Path) -> None:
    result = _run(programs / "ggshell", "--version", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert ggshell.__version__ in result.stdout


def test_help_is_read_from_the_pages_of_the_wheel(programs: Path, tmp_path: Path) -> None:
    result = _run(programs / "ggshell", "-c", "HELP ADD EXTRACT", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "ADD EXTRACT" in result.stdout


def test_a_statement_runs_in_another_folder(programs: Path, tmp_path: Path) -> None:
    result = _run(programs / "ggshell", "-c", "INFO ALL", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Lag at Chkpt" in result.stdout


def test_an_invalid_statement_is_refused_before_anything_runs(programs: Path, tmp_path: Path) -> None:
    result = _run(programs / "ggshell", "-c", "ADD EXTRAKT e1, TRANLOG", folder=tmp_path)
    assert result.returncode == 3
    assert "Traceback" not in result.stderr
