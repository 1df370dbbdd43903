"""A lake Replicat refuses at its start what it would not carry out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.connectors.lake.accepted_parameters import require_accepted
from ggshell.errors import ParameterError
from ggshell.parameters.loading import load_replicat

MAP = "MAP hr.*, TARGET hr.*;\n"


def check(folder: Path, text: str) -> None:
    path = folder / "x.prm"
    path.write_text(f"REPLICAT lake\n{text}")
    require_accepted(load_replicat(path), path)


@pytest.mark.parametrize(
    "text",
    [
        MAP,
        f"GETTRUNCATES\n{MAP}",
        f"IGNORETRUNCATES\n{MAP}",
        f"HANDLECOLLISIONS\nGROUPTRANSOPS 10\n{MAP}",
        f"LATENCY 5 SEC\nMAPEXCLUDE hr.t*\nSCHEMAEXCLUDE tmp*\n{MAP}",
        "LAKETABLE hr.*, SOFTDELETES\nMAP *.*, TARGET *.*;\n",
    ],
)
def test_what_a_lake_carries_out_is_accepted(tmp_path: Path, text: str) -> None:
    check(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MAP hr.*, TARGET shop.*;\n", "only whole tables under their own names"),
        ("MAP hr.t, TARGET hr.t, FILTER (id > 5);\n", "only whole tables under their own names"),
        ("MAP hr.t, TARGET hr.t, KEYCOLS (a);\n", "KEYCOLS is not available"),
        (f"IGNOREDELETES\n{MAP}", "no IGNOREINSERTS, IGNOREUPDATES or IGNOREDELETES"),
        (f"IGNOREINSERTS\nMAP a.b, TARGET a.b;\nGETINSERTS\n{MAP}", r"MAP a\.b: .* IGNOREDELETES \(.*:3"),
        (f"DEFERAPPLYINTERVAL 1 HOUR\n{MAP}", "DEFERAPPLYINTERVAL is not available"),
        (f"END RUNTIME\n{MAP}", "END is not available"),
        (f"END 2026-11-29 10:00:00\n{MAP}", "END is not available"),
    ],
)
def test_what_a_lake_would_not_carry_out_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """Regression: IGNOREDELETES, KEYCOLS and END were accepted and had no effect."""
    with pytest.raises(ParameterError, match=message):
        check(tmp_path, text)
