"""The current version of a lake's table, for readers that know no table format (``data_files``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from ggshell.connectors.lake.data_files import ReadableFile, ReadableTable
from ggshell.connectors.lake.store import LakeStore
from ggshell.connectors.lake.target import LakeTarget, TableForm
from ggshell.errors import NO_TABLE, NotFoundError, StoreError
from ggshell.object_stores import open_place
from ggshell.types import TableName

if TYPE_CHECKING:
    from ggshell.connectors.lake.commits import LakeCommit

LOG = "log"


def readable_table(target: LakeTarget, name: str) -> ReadableTable:
    """The current version of a table: ``owner.table``, or ``log``. Raises NotFoundError."""
    if target.form is TableForm.ICEBERG:
        from ggshell.connectors.lake.forms.iceberg_readable import iceberg_table

        return iceberg_table(target, None if name == LOG else TableName.parse(name))
    if target.form is TableForm.DELTA:
        from ggshell.connectors.lake.forms.delta_readable import delta_table

        return delta_table(target.location, None if name == LOG else TableName.parse(name))
    return _parquet_table(target, name)


def require_lake(target: LakeTarget) -> None:
    """Raise NotFoundError if no Replicat has delivered to a location, and StoreError if its tables have another form."""
    if target.is_located_by_catalog:
        return
    if not any(_last_commits(target)):
        hint = "write the form and the location as in TARGET, for example delta:./lake"
        raise NotFoundError(f"no Replicat has delivered to {target.text}", hint=hint)
    if target.form is TableForm.ICEBERG and target.folder is not None and not target.catalog:
        from ggshell.connectors.lake.forms.iceberg_catalog import CATALOG

        if not (target.folder / CATALOG).is_file():  # to open it would create an empty one
            raise StoreError(f"lake {target.location} has lost its catalog, {CATALOG}", hint="restore it")


def _last_commits(target: LakeTarget) -> Iterator[LakeCommit]:
    """The newest commit of each group that has delivered to a lake. Raises StoreError if it has another form."""
    from ggshell.connectors.lake.commits import CommitLog

    groups = [name for name in LakeStore(target.location).names("_ggshell") if not name.startswith(".")]
    yield from (commit for group in groups if (commit := CommitLog(target, group).latest()) is not None)


def table_names(target: LakeTarget) -> list[TableName]:
    """The current tables of a lake, those of all groups; none if it does not exist."""
    if target.is_located_by_catalog:
        from ggshell.connectors.lake.forms.iceberg_readable import iceberg_names

        return iceberg_names(target)
    return sorted({TableName.parse(name) for commit in _last_commits(target) for name in commit.tables})


def _parquet_table(target: LakeTarget, name: str) -> ReadableTable:
    """The version of a table that the newest commit names."""
    from ggshell.connectors.lake.forms.parquet import version_files
    from ggshell.connectors.lake.forms.source_record import source_record

    store = LakeStore(target.location)
    for commit in _last_commits(target):
        version = commit.tables.get(str(TableName.parse(name)))
        if version is not None:
            paths = version_files(store, TableName.parse(name), version)
            places = [store.child(path) for path in paths]
            files = tuple(ReadableFile(each.text, size=each.system.get_file_info(each.path).size) for each in places)
            schema = _schema_of(files[0])
            said = source_record({key.decode(): value.decode() for key, value in (schema.metadata or {}).items()})
            return ReadableTable(schema.remove_metadata(), files, (), said.key_names, frozenset(said.numbers))
    raise NotFoundError(f"lake {target.location} has no table {name}", code=NO_TABLE)


def _schema_of(file: ReadableFile) -> pa.Schema:
    place = open_place(file.location)
    with place.system.open_input_file(place.path) as stream:
        return pq.read_schema(stream)
