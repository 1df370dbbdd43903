"""END: the moment at which a run is over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ggshell.clock import from_datetime
from ggshell.errors import ParameterError
from ggshell.params.lines import Parameter


class RunEnd(NamedTuple):
    """``moment``: in microseconds since 1970, None where nothing but STOP ends a run; ``runtime``: when the run began."""

    moment: int | None = None
    runtime: bool = False


def run_end(found: Sequence[Parameter], path: Path) -> RunEnd:
    """What the last END says; its time is the machine's local one.  Raises ParameterError for a time that there is not."""
    given = [item for item in found if item.name == "END"]
    if not given:
        return RunEnd()
    text = given[-1].args.get("when")
    if text is None:
        return RunEnd(runtime=True)
    try:
        return RunEnd(from_datetime(datetime.fromisoformat(" ".join(text.split())).astimezone()))
    except ValueError:
        raise ParameterError(
            f"{text} is no time", where=f"{path}:{given[-1].line}", hint="END yyyy-mm-dd hh:mi:ss, or END RUNTIME"
        ) from None
