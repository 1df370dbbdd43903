"""Runs files of SQL for psql, such as PostgreSQL's own regression tests, in a source with DDL replicated to a target.

psql sends a file statement by statement. A statement is executed, excluded or refused by name; afterwards, objects and rows of
both sides are compared.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psycopg
from ddl_pipeline import DdlPipeline

from ggshell.demo.postgres_server import find_binaries

SETUP = "test_setup.sql"
"""The file of PostgreSQL that creates the tables that the others use."""
REPLICAT = """\
REPLICAT rep1
USERIDALIAS south
DISCARDFILE ./dirrpt/rep1.dsc, PURGE
REPERROR (DEFAULT, DISCARD)
DDLERROR DEFAULT DISCARD IGNOREMISSINGOBJECTS
DDLOPTIONS REPORT
DBOPTIONS SUPPRESSTRIGGERS
GETTRUNCATES
MAP *.*, TARGET *.*;
"""
_ROLE = re.compile(r"^\s*CREATE\s+(?:ROLE|USER|GROUP)\s+([\w\"]+)", re.IGNORECASE | re.MULTILINE)
_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema$|ggshell$|[ab]$)' ORDER BY 1"
_EXECUTED = re.compile(r"GGS-00579.*\bis executed\b")
_UNKNOWN = re.compile(r"GGS-00583\s.*")
_QUOTED = re.compile(r"\"[^\"]*\"")
_ENTRY = re.compile(r"\n(?=.*\nOperation failed at)")
"""What comes between two entries of a discard file."""


@dataclass(frozen=True)
class Outcome:
    """What became of the DDL statements of one file. ``refused``: by name; ``differences``: lines of both sides."""

    file: str
    executed: int
    refused: tuple[str, ...]
    differences: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.file}: {self.executed} statements executed, {len(self.refused)} refused by name,"
            f" {len(self.differences)} lines differ"
            + "".join(f"\n    {number} x {reason}" for reason, number in self.reasons.most_common())
        )

    @property
    def reasons(self) -> Counter[str]:
        """How often each reason of a refusal occurs; names in quotes are left out."""
        return Counter(_QUOTED.sub("...", entry.strip().splitlines()[0]) for entry in self.refused)


def run_file(pipeline: DdlPipeline, file: Path) -> Outcome:
    """Run a file in the source and compare both sides after everything has arrived."""
    setup = file.with_name(SETUP)
    files = [setup, file] if setup.exists() else [file]
    _create_roles(pipeline, files)
    for each in files:
        _psql(pipeline.north, each)
    pipeline.wait_until_applied(seconds=120)
    schemas = {name for dsn in (pipeline.north, pipeline.south) for (name,) in _rows(dsn, _SCHEMAS)}
    pipeline.schemas = tuple(sorted(schemas))
    report = pipeline.home.report("rep1").read_text()
    refused = [*_refused(pipeline), *_UNKNOWN.findall(pipeline.home.report("ext1").read_text())]
    return Outcome(file.name, len(_EXECUTED.findall(report)), tuple(refused), tuple(pipeline.differences()))


def _refused(pipeline: DdlPipeline) -> list[str]:
    path = pipeline.home.root / "dirrpt" / "rep1.dsc"
    return _ENTRY.split(path.read_text())[1:] if path.exists() else []


def _create_roles(pipeline: DdlPipeline, files: list[Path]) -> None:
    """Create the roles of the files in the target: event triggers do not fire for them."""
    names = {name.strip('"') for file in files for name in _ROLE.findall(file.read_text(errors="replace"))}
    with psycopg.connect(pipeline.south, autocommit=True) as connection:
        known = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles")}
        for name in sorted(names - known):
            connection.execute(psycopg.sql.SQL("CREATE ROLE {}").format(psycopg.sql.Identifier(name)))


def _psql(dsn: str, file: Path) -> None:
    """Run a file; statements may fail, as in PostgreSQL's tests."""
    environment = {**os.environ, "PG_ABS_SRCDIR": str(file.parent.parent), "PGOPTIONS": "-c client_min_messages=error"}
    subprocess.run(
        [find_binaries() / "psql", "-X", "-q", "-d", dsn, "-f", file],
        env=environment,
        cwd=file.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=300,
    )


def _rows(dsn: str, query: str) -> list[tuple[str]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(query).fetchall()  # type: ignore[call-overload,no-any-return]
