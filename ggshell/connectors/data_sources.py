"""Data sources of ODBC: the sections of odbc.ini, which a login may name instead of a host and a database."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ggshell.errors import DatabaseError

_NAMES: Final = {
    "host": ("servername", "hostname", "server", "host"),
    "port": ("portnumber", "port"),
    "dbname": ("database", "db"),
    "user": ("logonid", "username", "user", "uid"),
    "socket": ("socket",),
    "driver": ("driver",),
}
"""The names that drivers use for each field."""


def data_source(name: str) -> Mapping[str, str] | None:
    """Return the fields that a data source gives, by ``_NAMES``; None if no odbc.ini has it. Raises DatabaseError."""
    import configparser

    candidates = [os.environ.get("ODBCINI", ""), "odbc.ini", str(Path.home() / ".odbc.ini"), "/etc/odbc.ini"]
    for candidate in filter(None, candidates):
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        try:
            parser.read(candidate)
        except configparser.Error as error:
            raise DatabaseError(f"{candidate} cannot be read: {error}") from error
        if parser.has_section(name):
            section = {key.lower(): value for key, value in parser.items(name)}
            found = {
                field: next((section[key] for key in keys if key in section), "") for field, keys in _NAMES.items()
            }
            return {field: value for field, value in found.items() if value}
    return None
