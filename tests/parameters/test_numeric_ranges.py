"""Numbers that would make a process spin or hang are refused by both the process and the offline check."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.check.facts import StatedFacts
from ggshell.check.parameter_files import check_parameters
from ggshell.errors import ParameterError
from ggshell.parameters.lines import read_parameters

WRONG = {
    "Replicat": (
        "MAXTRANSOPS 0",
        "MAXTRANSOPS -1",
        "GROUPTRANSOPS 0",
        "CHECKPOINTSECS 0",
        "APPLY_PARALLELISM 0",
        "MAX_APPLY_PARALLELISM 0",
        "LOOK_AHEAD_TRANSACTIONS 0",
        "BATCHSQL OPSPERBATCH 0",
        "BATCHSQL OPSPERQUEUE 0",
        "BATCHSQL BYTESPERQUEUE 0",
        "BATCHSQL BATCHESPERQUEUE 0",
        "BATCHSQL BATCHTRANSOPS 0",
        "DISCARDFILE d.dsc, MEGABYTES 0",
        "REPORTCOUNT EVERY 0 RECORDS",
    ),
    "Extract": (
        "CHECKPOINTSECS 0",
        "EXTTRAIL ./dirdat/ea, MEGABYTES 0",
        "TRANLOGOPTIONS TRANSCLEANUPFREQUENCY 0",
        "REPORTCOUNT EVERY 0 SECONDS",
    ),
    "Manager": ("PURGEOLDEXTRACTS ./dirdat/*, FREQUENCYMINUTES 0",),
}


@pytest.mark.parametrize(("kind", "line"), [(kind, line) for kind, lines in WRONG.items() for line in lines])
def test_a_number_outside_the_range_of_a_process_is_refused(tmp_path: Path, kind: str, line: str) -> None:
    path = tmp_path / "g.prm"
    path.write_text(line + "\n")
    with pytest.raises(ParameterError):
        read_parameters(path, kind)
    assert any(
        finding.severity == "error"
        for each in check_parameters(line, "g.prm", kind, StatedFacts())
        for finding in each.findings
    )
