"""Results of INFO RECVPATH and STATS RECVPATH."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.cli.output.units import moment, size
from ggshell.cli.received_paths import ReceivedPath
from ggshell.cli.results import Row
from ggshell.cli.results.groups import GroupInfo, InfoGroups, labeled, trail_file
from ggshell.clock import local_text


class ReceivedPaths(NamedTuple):
    """Trails that arrive from other homes; ``counts``: STATS, which shows the figures only; ``own``: paths of this home."""

    paths: tuple[ReceivedPath, ...]
    counts: bool = False
    own: InfoGroups | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return (
            *(
                "recvpath",
                "trail",
                "status",
                "sender_home",
                "sender_host",
                "sender_group",
                "address",
                "connected_since",
            ),
            *("seqno", "rba", "bytes", "messages", "syncs", "connections", "last_data"),
        )

    @property
    def rows(self) -> list[Row]:
        return [
            *(_own_row(each) for each in (self.own.groups if self.own is not None else ())),
            *self._received_rows,
        ]

    @property
    def _received_rows(self) -> list[Row]:
        return [
            (
                *(
                    each.name,
                    each.trail,
                    each.status,
                    each.sender.home,
                    each.sender.host,
                    each.sender.group,
                    each.address or None,
                    moment(each.since),
                ),
                *each.position,
                *((each.bytes, each.messages, each.syncs, each.connections) if each.known else (None,) * 4),
                moment(each.last),
            )
            for each in self.paths
        ]

    @property
    def layout(self) -> str:
        own = self.own.layout if self.own is not None and self.own.groups else ""
        if not self.paths and own:
            return own
        if not self.paths:
            return "\nNo trails arrive from other homes.\n"
        return own + "".join(f"\n{_counts(each) if self.counts else _path(each)}" for each in self.paths)


def _own_row(info: GroupInfo) -> Row:
    """Return a path that this home starts as a row of the same columns."""
    found, written = info.checkpoint, info.checkpoint.write[0]
    return (
        found.group,
        written.trail,
        info.status,
        *[None] * 3,
        found.options.source,
        None,
        *written.current,
        *[None] * 5,
    )


def _path(found: ReceivedPath) -> str:
    lines = [f"RECVPATH   {found.name:<10}Trail {found.trail}   Status {found.status}"]
    lines.append(labeled("Sender", found.sender.text))
    if found.connected:
        lines.append(labeled("Connection", f"From {found.address} since {local_text(found.since)}"))
    place = found.position
    reached = f"File {trail_file(found.trail, place.seqno)}  RBA {place.rba}" if place.rba else "Nothing yet"
    lines.append(labeled("Position", reached))
    if found.connections:
        lines.append(labeled("Received", f"{size(found.bytes)} in {found.messages:,} messages, {found.syncs:,} syncs"))
    return "\n".join(lines) + "\n"


def _counts(found: ReceivedPath) -> str:
    lines = [f"RECVPATH   {found.name:<10}Trail {found.trail}   Status {found.status}"]
    if not found.known:
        return "\n".join([*lines, "The figures are those of the running service: START SERVICE.", ""])
    lines += [
        labeled("Connections", f"{found.connections:,}"),
        labeled("Messages", f"{found.messages:,}"),
        labeled("Bytes", f"{found.bytes:,}"),
        labeled("Syncs", f"{found.syncs:,}"),
        labeled("Last data", local_text(found.last) if found.last else "None since the service started"),
    ]
    return "\n".join(lines) + "\n"
