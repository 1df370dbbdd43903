"""A home with an Extract that reads a folder of redo, through the shell and real processes."""

from __future__ import annotations

from pathlib import Path

from command_line import run_ggshell
from processes import until

from ggshell.demo.processes import end_processes
from ggshell.demo.redo_writer import RedoWriter
from ggshell.home import checkpoint as checkpoints
from ggshell.home.bounded_state import BoundedState
from ggshell.home.checkpoint import Checkpoint, GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import state_of
from ggshell.record.image import decode_image
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader

PARAMETERS = """EXTRACT ext1
SOURCEDB redo://{folder}
EXTTRAIL ./dirdat/ea
CHECKPOINTSECS 1
TABLE shop.items, KEYCOLS (id);
"""


class RedoHome:
    """Extract EXT1 reads the redo of SHOP.ITEMS, whose first column is an ID, and writes ./dirdat/ea."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "home")
        self.home.ensure()
        self.folder = root / "redo"
        self.writer = RedoWriter(self.folder)
        self.home.parameters("ext1").write_text(PARAMETERS.format(folder=self.folder))

    def run(self, *statements: str, fails: bool = False) -> str:
        """Run statements as a batch; returns everything printed."""
        result = run_ggshell("--home", self.home.root, "--auto-manager", "-c", "\n".join(statements), TZ="UTC")
        assert (result.returncode != 0) is fails, result.stdout + result.stderr
        return result.stdout + result.stderr

    def add(self, begin: str) -> None:
        self.run(
            f"DBLOGIN SOURCEDB redo://{self.folder}",
            f"ADD EXTRACT ext1, TRANLOG, {begin}",
            "ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1, MEGABYTES 10",
        )

    def ids(self, prefix: str = "ea") -> list[str]:
        """The first column of every row in the durable part of the trail."""
        found: list[str] = []
        reader = TrailReader(TrailName.parse(f"./dirdat/{prefix}", self.home.root))
        try:
            while (batch := reader.read()) is not None:
                for start, length in zip(batch.start.tolist(), batch.length.tolist(), strict=True):
                    image = decode_image(bytes(batch.buffer[start : start + length]))
                    found.append((image[0][1] or b"").decode())
        finally:
            reader.close()
        return found

    def wait_for_ids(self, ids: list[str]) -> None:
        """Wait until the trail has that many rows; they must be these, in this order."""
        until(f"{len(ids)} rows in the trail", lambda: len(self.ids()) >= len(ids))
        assert self.ids() == ids

    def pid(self, group: str = "EXT1") -> int:
        process = state_of(self.home.process(group, GroupKind.EXTRACT))[1]
        assert process is not None
        return process.pid

    def checkpoint(self) -> Checkpoint:
        return checkpoints.load(self.home.checkpoint("EXT1", GroupKind.EXTRACT))

    def bounded(self) -> BoundedState:
        """The state of Bounded Recovery in the checkpoint file."""
        return self.checkpoint().options.bounded or BoundedState()

    def close(self) -> None:
        self.writer.close()
        end_processes(self.home.root)
