"""The ground of the bench ``lake``: an object store, trails of changes, and homes whose Replicat delivers them to a lake."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

import numpy as np

from benches.ground import Failed, ggshell, wait_until
from benches.process_tree import cpu_seconds, family, megabytes
from ggshell.clock import SystemClock
from ggshell.connectors.lake.lake_folder import LakeFolder
from ggshell.demo.processes import end_processes
from ggshell.demo.servers import free_ports
from ggshell.home.checkpoint import GroupKind
from ggshell.home.home import Home
from ggshell.home.process_file import read_process_file
from ggshell.record.change import ChangeBatch
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import encode_image
from ggshell.record.operation import IoType
from ggshell.record.transaction import TransactionHeader, TransactionPiece
from ggshell.trail.fileheader import Producer
from ggshell.trail.name import TrailName
from ggshell.trail.writer import TrailWriter
from ggshell.types import Csn, TableName, TrailPosition

_COLUMNS: Final = (
    Column("id", "bigint", 20),
    Column("customer", "integer", 23),
    Column("amount", "numeric(12,2)", 1700),
    Column("placed", "timestamp with time zone", 1184),
    Column("note", "text", 25),
)
CHANGED = TableDefinition(TableName("bench", "orders"), _COLUMNS, (0,))
"""A table with a key: the lake has its log and its current rows."""
LOGGED = TableDefinition(TableName("bench", "events"), _COLUMNS, ())
"""A table without one: the lake has its log only."""
UPDATES: Final = 0.6
SIZE: Final = 100
"""Changes of a transaction."""
STEP: Final = 10_000
BEGIN: Final = TrailPosition(0, 0)


@contextmanager
def object_store() -> Iterator[None]:
    """A moto server, an empty bucket ``bench`` in it, and the variables of the environment that lead to it."""
    port = free_ports(1)[0]
    program = [str(Path(sys.executable).with_name("moto_server")), "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_until("the object store has a bucket", lambda: _has_bucket(port), seconds=60)
            os.environ |= {
                "AWS_ACCESS_KEY_ID": "bench",
                "AWS_SECRET_ACCESS_KEY": "bench",
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
                "AWS_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true",
                "AWS_ALLOW_HTTP": "true",
            }
            yield
        finally:
            server.kill()


def _has_bucket(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("PUT", "/bench")
        return connection.getresponse().status == 200
    except OSError:  # it does not listen yet
        return False
    finally:
        connection.close()


class Changes:
    """Writes transactions of changes to a trail: inserts, and updates of earlier rows chosen at random."""

    def __init__(self, name: TrailName, table: TableDefinition) -> None:
        self.rows = 0
        self.end = BEGIN
        self._writer = TrailWriter.open(name, clock=SystemClock(), producer=Producer("EXT", "bench"), max_bytes=1 << 40)
        self._table = table
        self._random = np.random.default_rng(7)
        self._transactions = 0
        self._changes = 0

    def write(self, count: int) -> TrailPosition:
        """Write so many changes; returns the end of the trail, which is durable."""
        for first in range(0, count, STEP):
            self._writer.write(self._batch(min(STEP, count - first)))
        self.end = self._writer.flush()
        return self.end

    def close(self) -> None:
        self._writer.close()

    def _batch(self, count: int) -> ChangeBatch:
        updates = self._random.random(count) < (UPDATES if self._table.key else 0)
        chosen = self._random.random(count)
        images, kinds = [], []
        for update, share in zip(updates.tolist(), chosen.tolist(), strict=True):
            is_update = update and self.rows > 0
            row = int(share * self.rows) if is_update else self.rows
            self.rows += not is_update
            kinds.append(int(IoType.FIELD_COMP if is_update else IoType.INSERT))
            images.append(_image(row, len(images)))
        length = np.array([len(image) for image in images], np.int64)
        first = self._changes
        self._changes += count
        return ChangeBatch(
            tables=(self._table,),
            table=np.zeros(count, np.uint16),
            io_type=np.array(kinds, np.uint8),
            position=np.arange(first, self._changes, dtype=np.uint64),
            buffer=b"".join(images),
            start=np.cumsum(length) - length,
            length=length,
            rba=np.zeros(count, np.int64),
            pieces=tuple(self._pieces(count)),
        )

    def _pieces(self, count: int) -> Iterator[TransactionPiece]:
        for first in range(0, count, SIZE):
            self._transactions += 1
            number, rows = self._transactions, min(SIZE, count - first)
            header = TransactionHeader(str(number), Csn(number * 1000), SystemClock().now(), 1)
            yield TransactionPiece(header, first, rows, begins=True, ends=True)


def _image(row: int, version: int) -> bytes:
    values = (b"%d" % row, b"%d" % (row % 1000), b"%d.25" % version, b"2026-01-01 00:00:00+00", b"x" * 64)
    return encode_image(list(enumerate(values)))


class LakeHome:
    """A home with one trail, and the Replicat ``LAKE`` that delivers it."""

    def __init__(self, root: Path, target: str, *lines: str) -> None:
        self.home = Home(root)
        self.home.ensure()
        self.trail = TrailName.parse("./dirdat/ea", root)
        self._target = target
        self.home.parameters("lake").write_text(
            "\n".join(["REPLICAT lake", *lines, "MAP bench.*, TARGET bench.*;", ""])
        )

    def start(self) -> None:
        self._obey(f"ADD REPLICAT lake, SPARK, EXTTRAIL ./dirdat/ea, TARGET '{self._target}'", "START REPLICAT lake")
        wait_until("the delivery begins", lambda: "GGS-00730" in self._report())

    def delivered(self) -> TrailPosition:
        if "ABENDED" in self._report():
            raise Failed(self._report()[-1000:])
        return LakeFolder(self.home, self._target, "LAKE").delivered() or BEGIN

    @property
    def process(self) -> int:
        entry = read_process_file(self.home.process("LAKE", GroupKind.REPLICAT))
        if entry is None:
            raise Failed("the Replicat has ended")
        return entry.pid

    def cpu(self) -> float:
        return cpu_seconds(self.process)

    def megabytes(self) -> float:
        """The memory of the Replicat, its Java and Java's Python workers now, in MB."""
        return megabytes(family(self.process))

    def _report(self) -> str:
        path = self.home.report("lake")
        return path.read_text() if path.exists() else ""

    def _obey(self, *statements: str) -> None:
        command = [ggshell(), "--home", str(self.home.root), "--auto-manager", "-c", "\n".join(statements)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise Failed(ended.stdout + ended.stderr)


@contextmanager
def lake_home(target: str, *lines: str) -> Iterator[LakeHome]:
    """A home for one delivery; its processes end with the block."""
    root = Path(tempfile.mkdtemp(prefix="ggshell-bench-"))
    try:
        yield LakeHome(root, target, *lines)
    finally:
        end_processes(root)
        shutil.rmtree(root, ignore_errors=True)
