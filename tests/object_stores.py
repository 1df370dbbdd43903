"""An object store for tests: a moto server, which speaks the protocol of S3, on the loopback interface.

One server for each worker of pytest, and an empty bucket for each test. Its address and credentials are in the environment
while a test runs, as a user would set them.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import TYPE_CHECKING, NamedTuple

from ggshell.object_stores import StorePlace, open_place

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

_PROGRAM = """
import logging, sys
from moto.moto_server.threaded_moto_server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
ACCESS_KEY, SECRET_KEY = "ACCESSKEYOFTESTS", "zq9-secret-of-the-store"
_NUMBERS = itertools.count(1)


class StoreServer(NamedTuple):
    """A running server."""

    port: int
    process: subprocess.Popen[str]

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which every client of S3 finds the server."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


class Bucket(NamedTuple):
    """An empty bucket; ``location`` is its name as a location."""

    name: str
    server: StoreServer

    @property
    def location(self) -> str:
        return f"s3://{self.name}"

    def place(self, path: str = "") -> StorePlace:
        return open_place(f"{self.location}/{path}".rstrip("/"))

    def put(self, path: str, data: bytes) -> str:
        """Store an object and return its location."""
        place = self.place(path)
        with place.system.open_output_stream(place.path) as sink:
            sink.write(data)
        return place.text

    def upload(self, folder: Path, path: str) -> str:
        """Store every file of a local folder, hidden ones too, and return the location of the folder."""
        for file in folder.iterdir():
            if file.is_file():
                self.put(f"{path}/{file.name}", file.read_bytes())
        return f"{self.location}/{path}"


def serve_objects() -> Iterator[StoreServer]:
    """A server, for a fixture of the session."""
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield StoreServer(int(process.stdout.readline()), process)
        process.kill()


def new_bucket(server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """An empty bucket, and the environment that reaches it."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    name = f"bucket-{next(_NUMBERS)}"
    connection = HTTPConnection("127.0.0.1", server.port)
    connection.request("PUT", f"/{name}")
    assert connection.getresponse().status == 200
    connection.close()
    return Bucket(name, server)
