"""The settings of queries and Spark: one file, ``dirprm/spark.conf``, with one key and value per line.

    engine     auto            auto, local or spark
    threshold  256MB           from this size on, ``auto`` uses Spark
    master     local[*]        or spark://host:7077, yarn, k8s://..., sc://host (Spark Connect)
    memory     2g              of the driver
    spark.sql.shuffle.partitions  8

Keys that begin with ``spark.`` are Spark's own, as in its spark-defaults.conf. Lines that begin with ``#`` are comments.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ggshell.errors import ParameterError
from ggshell.quantities import read_size

FILE = "spark.conf"
_LINE = re.compile(r"([^\s=]*)(?:\s*=\s*|\s+|$)(.*)")
_MEMORY = re.compile(r"[1-9]\d*(?:[KMGT]B?)?", re.IGNORECASE)


class EngineChoice(StrEnum):
    """The engine for queries: DuckDB in this process, Spark, or either, depending on the size of the input."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


class QuerySettings(NamedTuple):
    """The settings in the file, or the defaults; ``threshold`` in bytes."""

    engine: EngineChoice = EngineChoice.AUTO
    threshold: int = 256 << 20
    master: str = ""
    memory: str = "2g"
    options: Mapping[str, str] = MappingProxyType({})

    @property
    def effective_master(self) -> str:
        """The master: from the file, else from SPARK_REMOTE, else this machine's cores."""
        return self.master or os.environ.get("SPARK_REMOTE", "") or "local[*]"

    @property
    def shown_master(self) -> str:
        """The master without the part after a server's address, which can be a token."""
        master = self.effective_master
        return master.partition("/;")[0] if master.startswith("sc://") else master

    @property
    def is_remote(self) -> bool:
        """Whether the master is a Spark Connect server, which needs no Java here."""
        return self.effective_master.startswith("sc://")


def load_settings(path: Path) -> QuerySettings:
    """The settings of a file, or the defaults if it does not exist. Raises ParameterError with the line."""
    found: dict[str, object] = {}
    options: dict[str, str] = {}
    for number, line in enumerate(_lines(path), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        key, value = _LINE.fullmatch(text).groups()  # type: ignore[union-attr]  # it takes every text
        try:
            if key.startswith("spark."):
                options[key] = value
            else:
                found[key] = _read(key, value)
        except ValueError as error:
            raise ParameterError(
                str(error), code="GGS-00702", where=f"{path}:{number}", line=number, source=text
            ) from None
    return QuerySettings(**found, options=MappingProxyType(options))  # type: ignore[arg-type]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ParameterError(
            f"the settings cannot be read: {reason}",
            code="GGS-00702",
            where=str(path),
            hint="fix the file or remove it: every setting has a default",
        ) from error


def _read(key: str, value: str) -> object:
    if not value:
        raise ValueError(f"{key} has no value")
    if key == "engine":
        if value.lower() not in list(EngineChoice):
            raise ValueError(f"engine must be auto, local or spark, not {value}")
        return EngineChoice(value.lower())
    if key == "threshold":
        return read_size(value)
    if key == "memory" and not _MEMORY.fullmatch(value):
        raise ValueError(f"{value} is not a valid memory size for Java; write 2g or 512m, for example")
    if key in ("master", "memory"):
        return value
    raise ValueError(
        f"unknown setting {key}; the settings are engine, threshold, master, memory, and Spark's own (spark.…)"
    )
