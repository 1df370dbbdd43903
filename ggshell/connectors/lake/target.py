"""``TARGET`` of a lake Replicat: the form of its tables, and their folder.

    ./lake   delta:./lake   iceberg:./lake

The shell reads it too, so nothing heavy is imported here.
"""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import NotFoundError, ParameterError
from ggshell.home.home import Home


class TableForm(StrEnum):
    """The form of a lake's tables; the value is the prefix of the folder."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


_PACKAGES = {TableForm.PARQUET: (), TableForm.DELTA: ("deltalake",), TableForm.ICEBERG: ("pyiceberg", "sqlalchemy")}
"""The packages that write each form, imported only there."""


class LakeTarget(NamedTuple):
    """The location and form of a lake."""

    form: TableForm
    folder: Path


def index_cache(home: Home, group: str) -> Path:
    """The folder for a group's indexes of its lake's files. Without them, they are made again when they are needed."""
    return home.root / "dirtmp" / "lakes" / group.upper()


def lake_target(home: Home, text: str) -> LakeTarget:
    """Parse the value of TARGET.

    Raises ParameterError for a location outside this machine's file system, NotFoundError if a package of the form is
    missing.
    """
    text = text.strip("'\"")
    form = next((each for each in TableForm if text.lower().startswith(f"{each}:")), None)
    place = (text if form is None else text[len(form) + 1 :]).removeprefix("file://")
    form = form or TableForm.PARQUET
    if "://" in place:
        raise ParameterError(
            f"TARGET {text}: commits require atomic renames, which object stores do not support",
            hint="use a folder on a mounted file system",
        )
    if not place:
        raise ParameterError(f"TARGET {text} requires a folder", hint=f"{form}:./lake")
    missing = [name for name in _PACKAGES[form] if find_spec(name) is None]
    if missing:
        raise NotFoundError(
            f"TARGET {text}: {form} tables require {', '.join(missing)}, which is not installed",
            code="GGS-00732",
            hint="pip install -e '.[lakes]' in the clone of ggshell",
        )
    return LakeTarget(form, home.resolve(place))
