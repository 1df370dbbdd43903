"""INFO EXTTRAIL and RMTTRAIL, INFO CREDENTIALSTORE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ggshell.shell.listings import Credentials, Trails

_RIGHT = 20


def trails(result: Trails) -> str:
    """Labels at the right of 20 columns, a blank line before each trail."""
    lines: list[str] = []
    for found in result.trails:
        pairs = {
            "Extract Trail": found.trail,
            "Seqno Length": 9,
            "Flip Seqno Length": "no",
            "Extract": found.group,
            "Seqno": found.seqno,
            "RBA": found.rba,
            "File Size": f"{found.megabytes}M",
        }
        lines += ["", *(f"{name:>{_RIGHT}}: {value}" for name, value in pairs.items())]
    return "\n".join(lines) + "\n"


def credentials(result: Credentials) -> str:
    """Aliases by domain."""
    lines = [f"Reading from {result.folder}:", ""]
    domains = sorted({entry.domain for entry in result.entries})
    for domain in domains:
        lines += [f"{'Default domain' if domain == 'OracleGoldenGate' else 'Domain'}: {domain}", ""]
        for entry in result.entries:
            if entry.domain == domain:
                lines += [f"  Alias: {entry.alias}", f"  Userid: {entry.userid}", ""]
    if not domains:
        lines += ["No aliases.", ""]
    return "\n".join(lines[:-1]) + "\n"


LAYOUTS: dict[type, Callable[[Any], str]] = {Trails: trails, Credentials: credentials}
