"""Which kind of recovery there is at a start, and why: decided from what the files say alone, before anything is read."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from ggshell.capture.bounded.manifest import BoundedCheckpoint, Identity


class Kind(StrEnum):
    """The kinds of recovery."""

    NORMAL = "normal recovery, no open transactions"
    REREAD = "normal recovery"
    BOUNDED = "bounded recovery"


class Recorded(NamedTuple):
    """What Extract's own checkpoint says: where reading stood, where the oldest open transaction began (the same place when
    there was none), and which life of the group it belongs to (0: Bounded Recovery has not been on in this life)."""

    position: int
    recovery: int
    incarnation: int


class Conditions(NamedTuple):
    """What has to fit before a checkpoint of Bounded Recovery is used."""

    on: bool
    reset: bool
    identity: Identity
    fingerprint: str


class Refusal(StrEnum):
    """Why a checkpoint is not used; the value is empty when it may be."""

    NONE = ""
    ABSENT = "absent"
    OFF = "off"
    RESET = "reset"
    FAILED = "failed"


class Plan(NamedTuple):
    """Where to begin to read, what to restore first (None: nothing), and the reason in words.

    ``refusal`` is why what was saved cannot be used, also when it was not needed.
    """

    kind: Kind
    position: int
    reason: str
    checkpoint: BoundedCheckpoint | None = None
    refusal: Refusal = Refusal.NONE


def decide(recorded: Recorded, found: BoundedCheckpoint | None, conditions: Conditions, trouble: str = "") -> Plan:
    """The plan of a start.  ``trouble``: why a checkpoint that is there could not be read.

    1. without open transactions: from where reading stood;
    2. Bounded Recovery is off, reset, without a usable checkpoint: from where the oldest of them began;
    3. all of them began at or behind the checkpoint's restart position: the same, since nothing is to be restored for them;
    4. else what was persisted is restored, and reading begins at the checkpoint's restart position.
    """
    refusal, why = _refusal(recorded, found, conditions, trouble)
    if recorded.recovery >= recorded.position:
        return Plan(Kind.NORMAL, recorded.position, "no transaction was open when Extract stopped", None, refusal)
    if found is None or refusal is not Refusal.NONE:
        return Plan(Kind.REREAD, recorded.recovery, why, None, refusal)
    if recorded.recovery >= found.restart:
        return Plan(Kind.REREAD, recorded.recovery, "no transaction was open that had been saved")
    count = len(found.objects)
    reason = f"{count} long-running transaction{'s' * (count != 1)} restored from checkpoint {found.number}"
    return Plan(Kind.BOUNDED, found.restart, reason, found)


def _refusal(
    recorded: Recorded, found: BoundedCheckpoint | None, conditions: Conditions, trouble: str
) -> tuple[Refusal, str]:
    if not conditions.on:
        return Refusal.OFF, "Bounded Recovery is off (BROFF)"
    if conditions.reset:
        return Refusal.RESET, "what was saved is left aside (BRRESET)"
    if found is None:
        if trouble:
            return Refusal.FAILED, trouble
        return Refusal.ABSENT, "there is no Bounded Recovery checkpoint yet"
    if found.incarnation != recorded.incarnation or found.position > recorded.position:
        return Refusal.RESET, "the start point, or Extract's checkpoint, was altered since Bounded Recovery's last one"
    difference = found.identity.difference(conditions.identity)
    if difference:
        return Refusal.FAILED, f"the last Bounded Recovery checkpoint is of {difference}"
    if found.fingerprint != conditions.fingerprint:
        return Refusal.RESET, "what the parameter file captures was changed since the last Bounded Recovery checkpoint"
    return Refusal.NONE, ""
