"""``TARGET`` of a lake Replicat: the form of its tables, and the folder that they lie in.

    ./lake   delta:./lake   iceberg:./lake

The shell reads it too, so nothing heavy is imported here.
"""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import NotFoundError, ParameterError
from ggshell.store.home import Home


class Form(StrEnum):
    """What a lake's tables are; the word that stands before the folder."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


_PACKAGES = {Form.PARQUET: (), Form.DELTA: ("deltalake",), Form.ICEBERG: ("pyiceberg", "sqlalchemy")}
"""What writes a form: imported there alone."""


class LakeTarget(NamedTuple):
    """Where a lake is, and of what form."""

    form: Form
    folder: Path


def lake_target(home: Home, text: str) -> LakeTarget:
    """What TARGET says.

    Raises ParameterError for another file system than this machine's, NotFoundError where a form's package is missing.
    """
    text = text.strip("'\"")
    word, _, rest = text.partition(":")
    form = Form(word.lower()) if word.lower() in set(Form) else Form.PARQUET
    place = (rest if word.lower() in set(Form) else text).removeprefix("file://")
    if "://" in place:
        raise ParameterError(
            f"TARGET {text}: commits are kept by files that are renamed at once, which object stores cannot",
            hint="a folder of a mounted file system",
        )
    if not place:
        raise ParameterError(f"TARGET {text} names no folder", hint=f"{form}:./lake")
    missing = [name for name in _PACKAGES[form] if find_spec(name) is None]
    if missing:
        raise NotFoundError(
            f"TARGET {text}: {', '.join(missing)} is not installed, which writes {form} tables",
            code="GGS-00722",
            hint="pip install 'ggshell[lakes]'",
        )
    return LakeTarget(form, home.resolve(place))
