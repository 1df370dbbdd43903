"""How INFO and SEND … STATUS show the connection of a group to the home that receives its trail, or sends it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ggshell.cli.output.units import size
from ggshell.clock import local_text
from ggshell.home.checkpoint import WriteCheckpoint

_SECOND: Final = "%Y-%m-%d %H:%M:%S"
Lines = list[tuple[str, str]]


def target_lines(target: WriteCheckpoint) -> Lines:
    """Return the labels and values of a trail in another home: its receiver, and what that has acknowledged."""
    place = target.current
    time = f"  {local_text(target.current_time, _SECOND)}" if target.current_time else ""
    reached = f"File {target.trail}{place.seqno:09d}  RBA {place.rba}{time}" if place.rba else "Nothing yet"
    return [("Target", target.receiver), ("Acknowledged", reached)]


def connection_lines(answer: Mapping[str, Any]) -> Lines:
    """Return the labels and values of what a running process answers about its connection; none for local trails.

    ``Waiting Here``: what a RECVPATH has received and not yet written to its target trail.
    """
    state = answer.get("connection")
    if not state:
        return []
    since = local_text(int(state["since"]), _SECOND)
    if not state["connected"]:
        return [("Connection", f"Waiting since {since}"), *([("", str(state["error"]))] if state["error"] else [])]
    lines: Lines = [("Connection", f"Connected since {since}")]
    for each in answer.get("receivers") or ():
        lines += [
            ("In Flight", f"{each['in_flight']:,} bytes"),
            ("Sent", _sent(int(each["sent"]), int(each["on_line"]))),
            ("Round Trip", _round_trip(float(each["round_trip"]))),
        ]
    for each in answer.get("sources") or ():
        lines += [
            ("Waiting Here", f"{each['in_flight']:,} bytes"),
            ("Received", _sent(int(each["sent"]), int(each["on_line"]))),
            ("Round Trip", _round_trip(float(each["round_trip"]))),
        ]
    return lines


def _sent(sent: int, on_line: int) -> str:
    """The bytes of the trail, and those on the line: with compression fewer, without it more, by the frames around them."""
    if not sent:
        return size(sent)
    ratio = f" ({on_line / sent:.0%})" if on_line < sent else ""
    return f"{size(sent)}, {size(on_line)} on the line{ratio}"


def _round_trip(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds else "Not measured yet"
