"""Data folders of PostgreSQL servers, copied from one that initdb has made: a tenth of its CPU time.

Each copy gets a system identifier of its own, as from initdb: it is in the control file and in the first page of the log.
"""

from __future__ import annotations

import atexit
import secrets
import shutil
import struct
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from short_folders import short_folder

from ggshell.demo.postgres_server import PostgresServer
from ggshell.demo.server_user import give_to_server

_POLYNOMIAL = 0x82F63B78
_ALL = 0xFFFFFFFF
_PLACE_IN_LOG = 24
"""Of the system identifier in the header of a segment."""
_run_program = PostgresServer._run


def copy_clusters() -> None:
    """Copy the data folders of servers that this process makes from now on."""
    PostgresServer._run = _run  # type: ignore[method-assign]


def _run(self: PostgresServer, program: str, *words: str) -> None:
    if program != "initdb":
        _run_program(self, program, *words)
        return
    template = _template(self.binaries, words[:-1])
    subprocess.run(["cp", "-a", f"{template}/.", words[-1]], check=True)
    _identify(Path(words[-1]), secrets.randbits(63))


@cache
def _template(binaries: Path, words: tuple[str, ...]) -> Path:
    """A data folder that initdb has made with these words; it is removed when this process ends."""
    folder = short_folder("ggs-new-")
    folder.chmod(0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    data = folder / "data"
    data.mkdir()
    give_to_server(data)
    made: Any = PostgresServer(data=data, sockets=folder, port=0, binaries=binaries)
    _run_program(made, "initdb", *words, str(data))
    return data


def _identify(data: Path, identifier: int) -> None:
    """Give a data folder another system identifier. The checksum of the control file follows its contents."""
    (segment,) = (data / "pg_wal").glob("0*")
    with segment.open("r+b") as log:
        log.seek(_PLACE_IN_LOG)
        log.write(struct.pack("=Q", identifier))
    path = data / "global" / "pg_control"
    control = bytearray(path.read_bytes())
    place = next(end for end in range(64, 1024, 4) if _checksum(control[:end]) == control[end : end + 4])
    control[:8] = struct.pack("=Q", identifier)
    control[place : place + 4] = _checksum(control[:place])
    path.write_bytes(control)


def _checksum(data: bytes) -> bytes:
    """CRC-32C."""
    value = _ALL
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
    return struct.pack("=I", value ^ _ALL)
