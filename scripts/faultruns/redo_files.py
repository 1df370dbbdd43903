"""Files of Bounded Recovery are damaged between two runs of an Extract from redo: its trail still gets every row once."""

from __future__ import annotations

import contextlib
import io
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benches.ground import Failed, wait_until

from faultruns.home_files import DAMAGES, Case, redo_cases
from faultruns.verdict import Verdict
from ggshell.cli.main import main
from ggshell.demo.processes import end_processes
from ggshell.demo.redo_writer import OpenXid, RedoWriter
from ggshell.home.process_file import ProcessState, state_of
from ggshell.record.image import decode_image
from ggshell.trail.name import TrailName
from ggshell.trail.reader import TrailReader

MINUTE = 60_000_000
ROUNDS = 70
WAIT_SECONDS = 120.0
_PARAMETERS = """EXTRACT redo1
SOURCEDB redo://{}
CACHEMGR CACHESIZE 1K
BR BRINTERVAL 20M
CHECKPOINTSECS 1
EXTTRAIL ./dirdat/ra
TABLE shop.items, KEYCOLS (id);
"""


class RedoGround:
    """A home with one Extract from redo, which keeps a transaction that stays open."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.writer = RedoWriter(root / "redo")
        self._number = 0
        self._committed: list[str] = []

    def obey(self, *statements: str, must: bool = True) -> str:
        """Run statements as one batch; what was printed. Raises Failed when one is refused that must not be."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main(["--home", str(self.home), "--auto-manager", "-c", "\n".join(statements)])
        if must and code:
            raise Failed(f"{statements} refused:\n{printed.getvalue()}")
        return printed.getvalue()

    def set_up(self) -> None:
        self.home.mkdir(mode=0o750)
        self.obey("CREATE SUBDIRS")
        self.writer.flush()
        (self.home / "dirprm" / "redo1.prm").write_text(_PARAMETERS.format(self.writer.folder))
        (self.home / "dirprm" / "mgr.prm").write_text("PORT 7809\n")
        self.obey(
            f"DBLOGIN SOURCEDB redo://{self.writer.folder}",
            "ADD EXTRACT redo1, TRANLOG, SCN 1",
            "ADD EXTTRAIL ./dirdat/ra, EXTRACT redo1",
        )

    def begin(self) -> tuple[OpenXid, list[str]]:
        """A transaction that is too large for the memory allowed, and its rows."""
        still, rows = self.writer.begin(), [self._next() for _ in range(100)]
        for row in rows:
            self.writer.insert(still, "ITEMS", {"ID": row, "NAME": "x" * 200})
        return still, rows

    def an_hour(self) -> None:
        """Small transactions, long enough for what is open to be saved."""
        for _ in range(ROUNDS):
            self.writer.time += MINUTE
            xid, row = self.writer.begin(), self._next()
            self.writer.insert(xid, "ITEMS", {"ID": row, "NAME": "x"})
            self.writer.commit(xid)
            self._committed.append(row)
        self.writer.flush()

    def commit(self, still: OpenXid, rows: list[str]) -> None:
        self.writer.commit(still)
        self._committed += rows
        self.writer.flush()

    def _next(self) -> str:
        self._number += 1
        return str(self._number)

    def saved(self) -> list[Path]:
        """The files of Bounded Recovery."""
        return [path for path in (self.home / "BR").rglob("*") if path.is_file()]

    def verdict(self) -> Verdict:
        """What the trail lacks and what it has twice."""
        reader, found = TrailReader(TrailName(self.home / "dirdat", "ra")), Counter[str]()
        with contextlib.closing(reader):
            while (batch := reader.read()) is not None:
                for row in range(len(batch)):
                    found[(dict(decode_image(batch.data(row)))[0] or b"").decode()] += 1
        wanted = Counter(self._committed)
        return Verdict((wanted - found).total(), (found - wanted).total())

    def state(self) -> ProcessState:
        return state_of(self.home / "dirpcs" / "REDO1.pce")[0]

    def case(self, case: Case, older: Path, chance: random.Random) -> str:
        """Save, stop, damage, start; empty when the trail is exact, else what was said."""
        still, rows = self.begin()
        before = {path: path.stat().st_mtime_ns for path in self.saved()}
        self.an_hour()
        self.obey("START EXTRACT redo1")
        self._until("the rows are in the trail", lambda: self.verdict() == Verdict(0, 0))
        self._until(
            "the open transaction is saved",
            lambda: any(path not in before and path.name.startswith("PO") for path in self.saved()),
        )
        self.obey("STOP EXTRACT redo1")
        self._until("Extract has ended", lambda: self.state() is ProcessState.STOPPED)
        path = case.file.find(self.home)
        spare = older / path.name
        if not spare.is_file():
            shutil.copyfile(min(self.saved(), key=lambda each: each.stat().st_mtime_ns), spare)
        DAMAGES[case.damage](path, spare, chance)
        self.commit(still, rows)
        said = self.obey("START EXTRACT redo1", must=False)
        with contextlib.suppress(Failed):  # the verdict below says what is missing
            wait_until("an outcome", self._settled, seconds=WAIT_SECONDS, every=0.1)
        if self.verdict() != Verdict(0, 0):
            said += "\n".join((self.home / "dirrpt" / "REDO1.rpt").read_text().splitlines()[-20:])
            return f"{self.verdict()}: {said}"
        self.obey("STOP EXTRACT redo1")
        return ""

    def _settled(self) -> bool:
        return self.verdict() == Verdict(0, 0) or self.state() is ProcessState.ABENDED

    def _until(self, what: str, done: object) -> None:
        try:
            wait_until(what, done, seconds=WAIT_SECONDS, every=0.1)  # type: ignore[arg-type]
        except Failed as error:
            report = self.home / "dirrpt" / "REDO1.rpt"
            raise Failed(f"{error}\n{report.read_text()[-3000:] if report.exists() else ''}") from error


def run(rounds: int, seed: int) -> tuple[int, int, Verdict]:
    """So many cases of Bounded Recovery's files; as ``files.run``, each in a home of its own."""
    chance = random.Random(f"files redo {seed}")
    chosen = redo_cases()
    chance.shuffle(chosen)
    chosen = chosen[:rounds]
    lost = twice = rows = 0
    faults: list[str] = []
    for case in chosen:
        began = time.monotonic()
        with _ground() as ground:
            said = ground.case(case, ground.home.parent, chance)
            found, rows = ground.verdict(), rows + ROUNDS + 1
        lost, twice = lost + found.lost, twice + found.twice
        sys.stderr.write(f"redo: {case}: {time.monotonic() - began:.1f} s{f' FAULT {said}' if said else ''}\n")
        if said:
            faults.append(str(case))
    if faults and not lost and not twice:
        raise Failed(f"not exact: {'; '.join(faults)}")
    return len(chosen), rows, Verdict(lost, twice)


@contextlib.contextmanager
def _ground() -> Iterator[RedoGround]:
    folder = Path(tempfile.mkdtemp(prefix="ggshell-redo-"))
    ground = RedoGround(folder)
    try:
        ground.set_up()
        yield ground
    finally:
        end_processes(ground.home)
        shutil.rmtree(folder, ignore_errors=True)
