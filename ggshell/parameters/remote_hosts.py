"""RMTHOST: the machine that receives the remote trails listed after it, and how to send to it."""

from __future__ import annotations

import ipaddress
from typing import Any, Final, NamedTuple

from ggshell.parameters.lines import Parameter

MANAGER_PORT: Final = 7809
COLLECTOR_PORT: Final = 7819
COMPRESS_THRESHOLD: Final = 1000


class RemoteHost(NamedTuple):
    """RMTHOST. ``compress_threshold``: the smallest data that is compressed, in bytes; None without COMPRESS.

    ``send_buffer``: TCPBUFSIZE in bytes, 0 for the system's own. ``encrypts``: ENCRYPT was given; every connection beyond
    this machine is encrypted with TLS anyway.
    """

    host: str
    port: int
    compress_threshold: int | None = None
    send_buffer: int = 0
    encrypts: bool = False

    @property
    def place(self) -> str:
        """Host and port as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether the name is one of this machine's loopback addresses."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def remote_host(item: Parameter) -> RemoteHost:
    """Return the settings of an RMTHOST line."""
    given: dict[str, Any] = item.args
    port = given.get("mgrport") or given.get("port") or COLLECTOR_PORT
    threshold = int(given.get("compressthreshold", COMPRESS_THRESHOLD)) if "compress" in given else None
    return RemoteHost(
        str(given["host"]), int(port), threshold, int(given.get("tcpbufsize", 0)), "encrypt" in given
    )  # fmt: skip
