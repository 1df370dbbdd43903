"""The settings of questions and Spark: one file, ``dirprm/spark.conf``, a key and a value a line.

    engine     auto            auto, local or spark
    threshold  256MB           from so many bytes on ``auto`` takes Spark
    master     local[*]        or spark://host:7077, yarn, k8s://..., sc://host (Spark Connect)
    memory     2g              of the driver
    spark.sql.shuffle.partitions  8

Keys that begin with ``spark.`` are Spark's own, as in its spark-defaults.conf; lines that begin with ``#`` are comments.
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

FILE = "spark.conf"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_LINE = re.compile(r"([^\s=]*)(?:\s*=\s*|\s+|$)(.*)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", re.IGNORECASE)

_MEMORY = re.compile(r"[1-9]\d*(?:[KMGT]B?)?", re.IGNORECASE)


class EngineChoice(StrEnum):
    """Who answers questions: DuckDB in this process, Spark, or either by the size of what is asked about."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


class Settings(NamedTuple):
    """What the file says, or its defaults; ``threshold`` in bytes."""

    engine: EngineChoice = EngineChoice.AUTO
    threshold: int = 256 << 20
    master: str = ""
    memory: str = "2g"
    options: Mapping[str, str] = MappingProxyType({})

    @property
    def effective_master(self) -> str:
        """The master; without one in the file SPARK_REMOTE, else this machine's cores."""
        return self.master or os.environ.get("SPARK_REMOTE", "") or "local[*]"

    @property
    def shown_master(self) -> str:
        """The master without what may follow a server's address: that can be a token."""
        master = self.effective_master
        return master.partition("/;")[0] if master.startswith("sc://") else master

    @property
    def is_remote(self) -> bool:
        """Whether it is a Spark Connect server, which needs no Java here."""
        return self.effective_master.startswith("sc://")


def load_settings(path: Path) -> Settings:
    """The settings of a file, the defaults when there is none.  Raises ParameterError with the line."""
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
    return Settings(**found, options=MappingProxyType(options))  # type: ignore[arg-type]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise ParameterError(
            f"the settings cannot be read: {reason}",
            code="GGS-00702",
            where=str(path),
            hint="mend the file, or remove it: every setting has a default",
        ) from error


def _read(key: str, value: str) -> object:
    if not value:
        raise ValueError(f"{key} has no value")
    if key == "engine":
        if value.lower() not in list(EngineChoice):
            raise ValueError(f"engine is auto, local or spark, not {value}")
        return EngineChoice(value.lower())
    if key == "threshold":
        return parse_size(value)
    if key == "memory" and not _MEMORY.fullmatch(value):
        raise ValueError(f"{value} is no memory for Java, 2g or 512m for example")
    if key in ("master", "memory"):
        return value
    raise ValueError(f"unknown setting {key}; there are engine, threshold, master, memory, and Spark's own (spark.…)")


def parse_size(text: str) -> int:
    """Bytes of ``256MB``, ``1G``, ``4096``.  Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text} is no size, 256MB for example")
    return int(float(match[1]) * _UNITS[match[2].upper()])
