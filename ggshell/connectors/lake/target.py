"""``TARGET`` of a lake Replicat: the form of its tables, and their location.

    ./lake   delta:s3://bucket/lake   iceberg:./lake   iceberg:rest+https://host/catalog?warehouse=name

The shell reads it too, so nothing heavy is imported here.
"""

from __future__ import annotations

import re
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from ggshell.errors import NotFoundError, ParameterError, UsageError
from ggshell.home.home import Home
from ggshell.object_stores import SUPPORTED, checked_location, is_elsewhere


class TableForm(StrEnum):
    """The form of a lake's tables; the value is the prefix of the folder."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


_PACKAGES = {TableForm.PARQUET: (), TableForm.DELTA: ("deltalake",), TableForm.ICEBERG: ("pyiceberg", "sqlalchemy")}
"""The packages that write each form, imported only there."""

_CATALOG = re.compile(r"(rest\+https?|sql\+[a-z]+)://")


class LakeTarget(NamedTuple):
    """The form and the location of a lake: a folder of this machine, or a location in an object store.

    ``catalog``: of Iceberg tables, ``rest+https://…`` or ``sql+postgresql://…``; the location is its warehouse, or the catalog
    itself if the catalog knows where its tables are.
    """

    form: TableForm
    location: str
    catalog: str = ""

    @property
    def text(self) -> str:
        """The lake as TARGET has it."""
        if self.is_located_by_catalog:
            warehouse = "" if self.location == self.catalog else f"?warehouse={self.location}"
            return f"{self.form}:{self.catalog}{warehouse}"
        return (
            f"{self.form}:{self.catalog}?warehouse={self.location}" if self.catalog else f"{self.form}:{self.location}"
        )

    @property
    def folder(self) -> Path | None:
        """The folder on this machine; None for an object store."""
        return None if self.is_located_by_catalog or is_elsewhere(self.location) else Path(self.location)

    @property
    def is_located_by_catalog(self) -> bool:
        """Whether only the catalog knows where the tables are."""
        return self.catalog.startswith("rest+")


def index_cache(home: Home, group: str) -> Path:
    """The folder for a group's indexes of its lake's files. Missing indexes are rebuilt when they are needed."""
    return home.root / "dirtmp" / "lakes" / group.upper()


def lake_target(home: Home, text: str) -> LakeTarget:
    """Parse the value of TARGET.

    Raises ParameterError for a location that is not valid or contains credentials, NotFoundError if a package of the form
    is missing.
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
    if _CATALOG.match(place):
        return _catalog_target(home, text, form, place)
    found = LakeTarget(form, _location(home, text, place))
    if form is TableForm.ICEBERG and found.folder is None:
        hint = "TARGET 'iceberg:rest+https://host/catalog?warehouse=name', or sql+postgresql://…?warehouse=s3://…"
        raise ParameterError(f"TARGET {text}: Iceberg tables in an object store require a catalog", hint=hint)
    return found


def _catalog_target(home: Home, text: str, form: TableForm, place: str) -> LakeTarget:
    """A lake with a catalog: ``rest+https://host/path?warehouse=name`` or ``sql+postgresql://host/db?warehouse=location``."""
    if form is not TableForm.ICEBERG:
        raise ParameterError(f"TARGET {place}: only Iceberg tables have a catalog", hint=f"TARGET 'iceberg:{place}'")
    catalog, _, query = place.partition("?")
    parts = urlsplit(catalog.partition("+")[2])
    if parts.password is not None:
        hidden = f"{parts.scheme}://…@{parts.netloc.rpartition('@')[2]}{parts.path}"
        raise ParameterError(
            f"TARGET {form}:{hidden} cannot contain a password",
            hint="use USERIDALIAS or the variables of the environment",
        )
    warehouse = parse_qs(query).get("warehouse", [""])[-1]
    if catalog.startswith("rest+"):
        return LakeTarget(form, warehouse or catalog, catalog)
    if not warehouse:
        raise ParameterError(f"TARGET {text} requires a warehouse", hint=f"TARGET '{form}:{catalog}?warehouse=s3://…'")
    return LakeTarget(form, _location(home, text, warehouse), catalog)


def _location(home: Home, text: str, place: str) -> str:
    if "://" not in place:
        return str(home.resolve(place))
    if not place.startswith(tuple(f"{scheme}://" for scheme in SUPPORTED)):
        schemes = ", ".join(f"{scheme}://" for scheme in SUPPORTED)
        raise ParameterError(f"TARGET {text} is not a folder or a location", hint=f"locations begin with {schemes}")
    try:
        return checked_location(place)
    except UsageError as error:
        raise ParameterError(f"TARGET: {error.message}", hint=error.hint) from None
