"""nginx from Debian's package, unpacked without installing it, as a reverse proxy with TLS."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from debian_packages import unpack
from processes import until
from service_client import free_port

_CACHE = Path(tempfile.gettempdir()) / "ggshell-tests-nginx"
_CONFIGURATION = """
daemon off;
pid {folder}/pid;
error_log {folder}/errors;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        location /services/ {{
            proxy_pass https://127.0.0.1:{to};
            proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection upgrade;
            proxy_set_header Host $http_host;
        }}
    }}
}}
"""


@cache
def find_nginx() -> Path | None:
    """The program: from the PATH, or unpacked from Debian's package. None if neither works."""
    found = shutil.which("nginx")
    if found is not None:
        return Path(found)
    program = _CACHE / "usr" / "sbin" / "nginx"
    return program if program.exists() or unpack("nginx", _CACHE) else None


@contextmanager
def reverse_proxy(program: Path, folder: Path, to: int, certificate: Path, key: Path) -> Iterator[int]:
    """Run nginx in front of a service on this machine; yields its port."""
    port = free_port()
    folder.mkdir()
    folder.chmod(0o755)
    file = folder / "nginx.conf"
    file.write_text(_CONFIGURATION.format(folder=folder, port=port, to=to, certificate=certificate, key=key))
    process = subprocess.Popen([program, "-p", folder, "-c", file, "-e", folder / "errors"])
    try:
        until("nginx listens", lambda: (folder / "pid").exists() and bool((folder / "pid").read_text()))
        yield port
    finally:
        process.terminate()
        process.wait()
