"""``TARGET`` of a lake Replicat: the form of its tables, and their location.

    ./lake   delta:./lake   iceberg:s3://bucket/lake

The shell reads it too, so nothing heavy is imported here.
"""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import NotFoundError, ParameterError, UsageError
from ggshell.home.home import Home
from ggshell.object_stores import SUPPORTED, is_elsewhere, open_place


class TableForm(StrEnum):
    """The form of a lake's tables; the value is the prefix of the folder."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


_PACKAGES = {TableForm.PARQUET: (), TableForm.DELTA: ("deltalake",), TableForm.ICEBERG: ("pyiceberg", "sqlalchemy")}
"""The packages that write each form, imported only there."""


class LakeTarget(NamedTuple):
    """The form and the location of a lake: a folder of this machine, or a location in an object store."""

    form: TableForm
    location: str

    @property
    def folder(self) -> Path | None:
        """The folder on this machine; None for an object store."""
        return None if is_elsewhere(self.location) else Path(self.location)


def index_cache(home: Home, group: str) -> Path:
    """The folder for a group's indexes of its lake's files. Without them, they are made again when they are needed."""
    return home.root / "dirtmp" / "lakes" / group.upper()


def lake_target(home: Home, text: str) -> LakeTarget:
    """Parse the value of TARGET.

    Raises ParameterError for a location that is not valid or contains credentials, NotFoundError if a package of the form
    is missing, ConnectionLostError if the file system of the location cannot be used here.
    """
    text = text.strip("'\"")
    form = next((each for each in TableForm if text.lower().startswith(f"{each}:")), None)
    place = (text if form is None else text[len(form) + 1 :]).removeprefix("file://")
    form = form or TableForm.PARQUET
    if not place:
        raise ParameterError(f"TARGET {text} requires a folder or a location", hint=f"{form}:./lake")
    missing = [name for name in _PACKAGES[form] if find_spec(name) is None]
    if missing:
        raise NotFoundError(
            f"TARGET {text}: {form} tables require {', '.join(missing)}, which is not installed",
            code="GGS-00732",
            hint="pip install -e '.[lakes]' in the clone of ggshell",
        )
    return LakeTarget(form, _location(home, text, place))


def _location(home: Home, text: str, place: str) -> str:
    if "://" not in place:
        return str(home.resolve(place))
    if not place.startswith(tuple(f"{scheme}://" for scheme in SUPPORTED)):
        schemes = ", ".join(f"{scheme}://" for scheme in SUPPORTED)
        raise ParameterError(f"TARGET {text} is not a folder or a location", hint=f"locations begin with {schemes}")
    try:
        return open_place(place).text
    except UsageError as error:
        raise ParameterError(f"TARGET: {error.message}", hint=error.hint) from None
