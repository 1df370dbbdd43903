"""Hosts as users name them: whether one is this machine, and how it is written in a URL."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is one of this machine's loopback addresses."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_and_port(host: str, port: int) -> str:
    """Return a host and a port as written in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
