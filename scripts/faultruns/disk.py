"""The disk is full: under the trails, the reports, the checkpoint files. There is room again, and everything starts."""

from __future__ import annotations

import random
import shutil
import subprocess
import tempfile
from pathlib import Path

from benches.ground import Failed

from faultruns.chain import MEMBERS, Chain
from ggshell.home.process_file import ProcessState

FOLDERS = {"dirdat": "64m", "dirrpt": "1m", "dirchk": "1m"}
"""Sizes of the small disks; Manager purges trails once a minute, so theirs holds what a slow machine writes in two."""
FULL_SECONDS = 1.5


def missing() -> str:
    """Why a small disk cannot be mounted on this machine; empty if it can."""
    with tempfile.TemporaryDirectory() as folder:
        made = _mount(Path(folder), "1m")
        if made.returncode:
            return made.stderr.strip() or f"mount ended with {made.returncode}"
        _unmount(Path(folder))
    return ""


def _mount(folder: Path, size: str) -> subprocess.CompletedProcess[str]:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def _unmount(folder: Path) -> None:
    command = ["umount", "-l", str(folder)]
    subprocess.run(command, check=True)


def prepare(ground: Chain) -> None:
    """Each folder becomes a small disk, with what it holds; PURGEOLDEXTRACTS keeps the trails' one from filling by itself."""
    for name, size in FOLDERS.items():
        folder = ground.home / name
        held = ground.home / f"{name}.held"
        folder.rename(held)
        folder.mkdir()
        made = _mount(folder, size)
        if made.returncode:
            raise Failed(made.stderr.strip())
        ground.ends.callback(_unmount, folder)
        shutil.copytree(held, folder, dirs_exist_ok=True)
    with (ground.home / "dirprm" / "mgr.prm").open("a") as file:
        file.write("PURGEOLDEXTRACTS ./dirdat/*, USECHECKPOINTS, FREQUENCYMINUTES 1\n")


def spoil(ground: Chain, rounds: int, seed: int) -> None:
    """A round: one of the disks is full for a moment. Processes that end because of it report it, and are started
    again. Raises Failed."""
    chance = random.Random(f"disk {seed}")
    for _ in range(rounds):
        ground.wait(chance.uniform(0.1, 0.5))
        name = chance.choice(list(FOLDERS))
        ballast = ground.home / name / "ballast"
        _fill(ballast)
        ground.wait(chance.uniform(0.3, FULL_SECONDS))
        ballast.unlink()
        _told(ground, name)
        ground.start(*MEMBERS)
    ground.start(*MEMBERS)


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 512):
            try:
                while file.write(bytes(size)):
                    continue
            except OSError:
                continue


def _told(ground: Chain, name: str) -> None:
    """Every ended process names the disk. Raises Failed when it does not."""
    for member in MEMBERS:
        if ground.state(member) is ProcessState.RUNNING:
            continue
        if "No space left" not in (ground.home / "ggserr.log").read_text(errors="replace"):
            raise Failed(f"{member} ended with {name} full and does not say why\n{ground.reports()}")
