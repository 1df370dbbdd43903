"""RMTHOST: the machine that receives the remote trails listed after it, and how to send to it; RMTHOSTOPTIONS."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ggshell.hosts import host_and_port, is_loopback

if TYPE_CHECKING:
    from ggshell.parameters.lines import Parameter

MANAGER_PORT: Final = 7809
COLLECTOR_PORT: Final = 7819
COMPRESS_THRESHOLD: Final = 1000


class SocksProxy(NamedTuple):
    """SOCKSPROXY: its host and port, empty without one, and the alias of its login in the credential store."""

    place: str = ""
    alias: str = ""
    domain: str = ""


class RemoteHost(NamedTuple):
    """RMTHOST. ``port``: 0 for a loopback address without PORT and MGRPORT.

    ``compress_threshold``: the smallest data that is compressed, in bytes; None without COMPRESS.

    ``send_buffer``: TCPBUFSIZE in bytes, 0 for the system's own. ``most_data``: TCPFLUSHBYTES, the most bytes of a trail in
    one message, 0 for the sender's own. ``streams``: false with NOSTREAMING. ``silence``: TIMEOUT, the seconds without any
    message after which the connection counts as lost, 0 for the sender's own.
    """

    host: str
    port: int
    compress_threshold: int | None = None
    send_buffer: int = 0
    most_data: int = 0
    streams: bool = True
    silence: float = 0.0
    socks: SocksProxy = SocksProxy()

    @property
    def place(self) -> str:
        """Host and port as in a URL."""
        return host_and_port(self.host, self.port)

    @property
    def is_loopback(self) -> bool:
        """Whether the name is one of this machine's loopback addresses."""
        return is_loopback(self.host)


def remote_host(item: Parameter) -> RemoteHost:
    """Return the settings of an RMTHOST line."""
    given: dict[str, Any] = item.args
    host = str(given["host"])
    port = given.get("mgrport") or given.get("port") or (0 if is_loopback(host) else COLLECTOR_PORT)
    return RemoteHost(
        host,
        int(port),
        _threshold(given),
        send_buffer=int(given.get("tcpbufsize", 0)),
        most_data=int(given.get("tcpflushbytes", 0)),
        streams="nostreaming" not in given,
        silence=float(given.get("timeout", 0)),
        socks=SocksProxy(
            str(given.get("socksproxy", "")), str(given.get("proxycsalias", "")), str(given.get("proxycsdomain", ""))
        ),
    )


class PassiveOptions(NamedTuple):
    """RMTHOSTOPTIONS of a passive Extract. ``compress_threshold``: as of RMTHOST."""

    compress_threshold: int | None = None


def passive_options(found: Iterable[Parameter]) -> PassiveOptions | None:
    """Return the settings of the last RMTHOSTOPTIONS line; None without one."""
    given = [item.args for item in found if item.name == "RMTHOSTOPTIONS"]
    return PassiveOptions(_threshold(given[-1])) if given else None


def _threshold(given: dict[str, Any]) -> int | None:
    return int(given.get("compressthreshold", COMPRESS_THRESHOLD)) if "compress" in given else None
