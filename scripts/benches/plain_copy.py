"""The peer of the bench ``path``: copies files through one plain socket, with TLS or without.

    plain_copy.py receive FOLDER [CERTIFICATE KEY]    prints its port, then the seconds of one copy
    plain_copy.py send PORT tls|plain FILE...

The receiver writes what arrives and makes each file durable. Its time begins when the connection is ready and ends after the
last fdatasync.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
import sys
import time
from pathlib import Path

BLOCK = 256 << 10
_SIZE = struct.Struct(">Q")


def main(words: list[str]) -> None:
    if words[0] == "receive":
        _receive(Path(words[1]), words[2:])
    else:
        _send(int(words[1]), words[2] == "tls", [Path(each) for each in words[3:]])


def _receive(folder: Path, certificate: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        stream = listener.accept()[0]
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        stream = context.wrap_socket(stream, server_side=True)
    with stream:
        began, number = time.perf_counter(), 0
        while size := _SIZE.unpack(_exactly(stream, _SIZE.size))[0]:
            _store(stream, folder / f"plain{number}", size)
            number += 1
        print(time.perf_counter() - began, flush=True)
        stream.sendall(b"!")


def _exactly(stream: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        data = stream.recv(size - len(found))
        if not data:
            raise EOFError(f"the sender closed the connection after {len(found)} of {size} bytes")
        found += data
    return found


def _store(stream: socket.socket, path: Path, size: int) -> None:
    view = memoryview(bytearray(BLOCK))
    with path.open("wb", buffering=0) as file:
        while size:
            count = stream.recv_into(view[: min(size, BLOCK)])
            if not count:
                raise EOFError(f"the sender closed the connection {size} bytes before the end of {path.name}")
            file.write(view[:count])
            size -= count
        os.fdatasync(file.fileno())


def _send(port: int, secure: bool, files: list[Path]) -> None:
    stream = socket.create_connection(("127.0.0.1", port))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        stream = context.wrap_socket(stream)
    with stream:
        for path in files:
            stream.sendall(_SIZE.pack(path.stat().st_size))
            with path.open("rb", buffering=0) as file:
                while data := file.read(BLOCK):
                    stream.sendall(data)
        stream.sendall(_SIZE.pack(0))
        stream.recv(1)


if __name__ == "__main__":
    main(sys.argv[1:])
