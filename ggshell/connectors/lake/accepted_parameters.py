"""What a parameter file may ask of a lake Replicat: a statement that it would not carry out is refused at the start."""

from __future__ import annotations

from pathlib import Path

from ggshell.errors import ParameterError
from ggshell.parameters.process_parameters import MapStatement, ReplicatParameters
from ggshell.record.operation import TRUNCATES


def require_accepted(parameters: ReplicatParameters, path: Path) -> None:
    """Raise ParameterError for the first statement that a lake does not carry out. ``path``: the parameter file."""
    for each in parameters.maps:
        _require_accepted_map(each, path)
    if parameters.defer_seconds:
        raise ParameterError(
            "DEFERAPPLYINTERVAL is not available for a lake",
            where=str(path),
            hint="remove it: tables of Delta and Iceberg keep their older versions",
        )
    if parameters.end.moment is not None or parameters.end.runtime:
        raise ParameterError(
            "END is not available for a lake",
            where=str(path),
            hint="remove it: STOP REPLICAT first delivers what the trail contains",
        )


def _require_accepted_map(stated: MapStatement, path: Path) -> None:
    place, source = f"{path}:{stated.line}", stated.source
    if stated.clauses.active or stated.target.replace("*", "") not in ("", ".", source.replace("*", "")):
        raise ParameterError(
            f"MAP {source}, TARGET {stated.target}: a lake accepts only whole tables under their own names",
            where=place,
            hint=f"MAP {source}, TARGET {source};",
        )
    if stated.keycols:
        raise ParameterError(
            f"MAP {source}: KEYCOLS is not available for a lake",
            where=place,
            hint="write KEYCOLS in the TABLE statement of Extract, so that the trail contains the key",
        )
    if stated.ignored - TRUNCATES:
        raise ParameterError(
            f"MAP {source}: a lake accepts no IGNOREINSERTS, IGNOREUPDATES or IGNOREDELETES",
            where=place,
            hint="write it above the TABLE statement of Extract or of a pump; SOFTDELETES of LAKETABLE keeps deleted rows",
        )
