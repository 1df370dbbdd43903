"""What an Extract's file says of long transactions: BR (Bounded Recovery) and WARNLONGTRANS."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from ggshell.errors import ParameterError
from ggshell.params.lines import Parameter, read_parameters

HOUR, MINUTE, DAY = 3600, 60, 86_400
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
"""Parameters that do not decide which rows are captured."""
_INTERVAL = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
_UNITS = {"": 1, "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1}
_UNITS |= dict.fromkeys(("m", "min", "mins", "minute", "minutes"), MINUTE)
_UNITS |= dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), HOUR)
_UNITS |= dict.fromkeys(("d", "day", "days"), DAY)
_UNITS |= dict.fromkeys(("week", "weeks"), 7 * DAY)


class BoundedParameters(NamedTuple):
    """BR.  ``line`` is where it stands (0: nowhere); ``directory`` as written, empty for the home; ``interval`` in seconds, the
    nearest multiple of CHECKPOINTSECS."""

    line: int = 0
    directory: str = ""
    interval: int = 4 * HOUR
    on: bool = True
    keep_stale: bool = False
    off_on_failure: bool = False
    reset: bool = False
    durable: bool = True


class LongTransactions(NamedTuple):
    """WARNLONGTRANS: from which age on, and how often that is looked at, in seconds; ``by_clock`` counts the age to the time at
    which the log was last read (USELASTREADTIME), else to the time of the last record.  TRANLOGOPTIONS: ``purge_orphans``
    every so many seconds, 0 for never."""

    threshold: int = HOUR
    every: int = LEAST_CHECK
    by_clock: bool = False
    purge_orphans: int = 0


def bounded_parameters(found: list[Parameter], checkpoint_seconds: int) -> BoundedParameters:
    """The BR lines of a file, later ones over earlier ones."""
    result = BoundedParameters()
    for item in found:
        if item.name != "BR":
            continue
        given = item.args
        result = BoundedParameters(
            line=item.line,
            directory=str(given.get("brdir", result.directory)),
            interval=interval_seconds(given["brinterval"]) if "brinterval" in given else result.interval,
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
    """BRINTERVAL as it is kept."""
    return max(1, round(seconds / of)) * of


def long_transactions(found: list[Parameter], path: Path) -> LongTransactions:
    """The last WARNLONGTRANS of a file, and what TRANLOGOPTIONS says of orphans.  Raises ParameterError."""
    result = LongTransactions()
    purge, minutes = False, CLEANUP_MINUTES
    for item in found:
        given: dict[str, Any] = item.args
        try:
            if item.name == "WARNLONGTRANS":
                every = interval_seconds(given["checkinterval"]) if "checkinterval" in given else LEAST_CHECK
                threshold = interval_seconds(given["interval"])
                result = LongTransactions(threshold, max(every, LEAST_CHECK), "uselastreadtime" in given)
            elif item.name == "TRANLOGOPTIONS":
                purge = (purge or "purgeorphanedtransactions" in given) and "nopurgeorphanedtransactions" not in given
                minutes = int(given.get("transcleanupfrequency", minutes))
        except ValueError as error:
            where = f"{path}:{item.line}"
            raise ParameterError(f"{item.name}: {error}", where=where, hint="for example 1HOUR") from error
    return result._replace(purge_orphans=minutes * MINUTE if purge else 0)


def capture_fingerprint(path: Path) -> str:
    """Stands for the parameters of a file that decide what is captured: whoever kept rows under others cannot use them."""
    found = read_parameters(path, "Extract")
    text = "\n".join(" ".join(item.text.split()) for item in found if item.name not in _HARMLESS)
    return f"{zlib.crc32(text.encode()):08x}"


def interval_seconds(text: object) -> int:
    """``20M``, ``1.5H``, ``600sec``, ``1DAY`` in seconds; M are minutes.  Raises ValueError for anything else."""
    match = _INTERVAL.fullmatch(str(text).strip())
    if match is None or match[2].lower() not in _UNITS:
        raise ValueError(f"{text} is no span of time")
    return round(float(match[1]) * _UNITS[match[2].lower()])
