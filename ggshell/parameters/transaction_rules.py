"""An Extract's parameters for long transactions: BR (Bounded Recovery) and WARNLONGTRANS."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, NamedTuple

from ggshell.durations import HOUR, MINUTE
from ggshell.parameters.lines import Parameter, read_parameters

LEAST_CHECK = 5 * MINUTE
CLEANUP_MINUTES = 10
_HARMLESS = frozenset(
    (
        *(
            "EXTRACT",
            "BR",
            "CACHEMGR",
            "CHECKPOINTSECS",
            "WARNLONGTRANS",
            "TRANLOGOPTIONS",
            "EXTTRAIL",
            "RMTTRAIL",
            "RMTHOST",
        ),
        *(
            "REPORT",
            "REPORTCOUNT",
            "REPORTROLLOVER",
            "DISCARDFILE",
            "DISCARDROLLOVER",
            "ROLLOVER",
            "STATOPTIONS",
            "LAGSTATS",
        ),
        *(
            "FLUSHSECS",
            "FLUSHCSECS",
            "EOFDELAY",
            "EOFDELAYCSECS",
            "SETENV",
            "USERID",
            "USERIDALIAS",
            "WARNRATE",
            "LIST",
        ),
        *("NOLIST", "TRACE", "TRACE2"),
    )
)
"""Parameters that do not affect which rows are captured."""


class BoundedParameters(NamedTuple):
    """BR.

    ``line``: the line of the parameter (0: not in the file); ``directory``: as written, empty for the default in the home;
    ``interval``: in seconds, rounded to the nearest multiple of CHECKPOINTSECS.
    """

    line: int = 0
    directory: str = ""
    interval: int = 4 * HOUR
    on: bool = True
    keep_stale: bool = False
    off_on_failure: bool = False
    reset: bool = False
    durable: bool = True


class LongTransactions(NamedTuple):
    """WARNLONGTRANS, and the cleanup of orphaned transactions of TRANLOGOPTIONS.

    ``threshold``: the age in seconds that is reported; ``every``: the interval of the check in seconds; ``by_clock``: the
    age is measured up to the time the log was last read (USELASTREADTIME), else up to the last record; ``purge_orphans``:
    the cleanup interval in seconds, 0 for never.
    """

    threshold: int = HOUR
    every: int = LEAST_CHECK
    by_clock: bool = False
    purge_orphans: int = 0


def bounded_parameters(found: list[Parameter], checkpoint_seconds: int) -> BoundedParameters:
    """The BR lines of a file; later lines override earlier ones."""
    result = BoundedParameters()
    for item in found:
        if item.name != "BR":
            continue
        given = item.args
        result = BoundedParameters(
            line=item.line,
            directory=str(given.get("brdir", result.directory)),
            interval=round(given["brinterval"]) if "brinterval" in given else result.interval,
            on=result.on and "broff" not in given,
            keep_stale=result.keep_stale or "brkeepstalefiles" in given,
            off_on_failure=result.off_on_failure or "broffonfailure" in given,
            reset=result.reset or "brreset" in given,
            durable=result.durable
            and "ms_async" not in str(given.get("brfsoption", "")).lower()
            and "ms_async" not in given,
        )
    return result._replace(interval=nearest_multiple(result.interval, checkpoint_seconds))


def nearest_multiple(seconds: int, of: int) -> int:
    """BRINTERVAL, rounded to the nearest multiple (at least one) of CHECKPOINTSECS."""
    return max(1, round(seconds / of)) * of


def long_transactions(found: list[Parameter]) -> LongTransactions:
    """The last WARNLONGTRANS of a file, and the TRANLOGOPTIONS settings for orphaned transactions."""
    result = LongTransactions()
    purge, minutes = False, CLEANUP_MINUTES
    for item in found:
        given: dict[str, Any] = item.args
        if item.name == "WARNLONGTRANS":
            every = round(given.get("checkinterval", LEAST_CHECK))
            result = LongTransactions(round(given["interval"]), max(every, LEAST_CHECK), "uselastreadtime" in given)
        elif item.name == "TRANLOGOPTIONS":
            purge = (purge or "purgeorphanedtransactions" in given) and "nopurgeorphanedtransactions" not in given
            minutes = given.get("transcleanupfrequency", minutes)
    return result._replace(purge_orphans=minutes * MINUTE if purge else 0)


def capture_fingerprint(path: Path) -> str:
    """A checksum of the parameters that affect which rows are captured.

    Rows kept under a different checksum cannot be reused.
    """
    found = read_parameters(path, "Extract")
    text = "\n".join(" ".join(item.text.split()) for item in found if item.name not in _HARMLESS)
    return f"{zlib.crc32(text.encode()):08x}"
