"""Results of INFO EXTTRAIL, INFO RMTTRAIL and INFO CREDENTIALSTORE."""

from __future__ import annotations

from typing import NamedTuple

from ggshell.cli.results import Row


class TrailInfo(NamedTuple):
    """A trail that a group writes. ``receiver``: the URL of the other home that receives it; empty for one of this machine."""

    trail: str
    remote: bool
    group: str
    seqno: int
    rba: int
    megabytes: int
    receiver: str = ""


class Trails(NamedTuple):
    """INFO EXTTRAIL and INFO RMTTRAIL."""

    trails: tuple[TrailInfo, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return ("trail", "type", "extract", "seqno", "rba", "megabytes", "receiver")

    @property
    def rows(self) -> list[Row]:
        return [
            (t.trail, trail_type(t.remote), t.group, t.seqno, t.rba, t.megabytes, t.receiver or None)
            for t in self.trails
        ]

    @property
    def layout(self) -> str:
        return _trails(self)


def trail_type(remote: bool) -> str:
    return "RMTTRAIL" if remote else "EXTTRAIL"


class CredentialLine(NamedTuple):
    """An alias of the credential store."""

    domain: str
    alias: str
    userid: str


class CredentialList(NamedTuple):
    """INFO CREDENTIALSTORE; ``folder`` is the location of the store."""

    folder: str
    entries: tuple[CredentialLine, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return ("domain", "alias", "userid")

    @property
    def rows(self) -> list[Row]:
        return [tuple(entry) for entry in self.entries]

    @property
    def layout(self) -> str:
        return _credentials(self)


_RIGHT = 20


def _trails(result: Trails) -> str:
    """Format trails: labels right-aligned in 20 columns, with a blank line before each trail."""
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
            **({"Receiver": found.receiver} if found.receiver else {}),
        }
        lines += ["", *(f"{name:>{_RIGHT}}: {value}" for name, value in pairs.items())]
    return "\n".join(lines) + "\n"


def _credentials(result: CredentialList) -> str:
    """Format the aliases by domain."""
    lines = ["Reading from credential store:", ""]
    domains = sorted({entry.domain for entry in result.entries})
    for domain in domains:
        lines += [f"{'Default domain' if domain == 'OracleGoldenGate' else 'Domain'}: {domain}", ""]
        for entry in result.entries:
            if entry.domain == domain:
                lines += [f"  Alias: {entry.alias}", f"  Userid: {entry.userid}", ""]
    if not domains:
        lines += ["No aliases.", ""]
    return "\n".join(lines[:-1]) + "\n"
