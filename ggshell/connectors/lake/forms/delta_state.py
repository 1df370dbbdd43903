"""The state of a Delta table by its log, and commits to it (https://github.com/delta-io/delta/blob/master/PROTOCOL.md).

delta-rs writes no deletion vectors, and does not return those of others in the form in which a commit must repeat them. So the
log is read and written here; delta-rs writes the checkpoints of the log. A commit is a conditional write of the next file of
the log: if another process was faster, nothing is committed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from ggshell.connectors.lake.columns import plain
from ggshell.connectors.lake.forms.deletion_vectors import Descriptor
from ggshell.connectors.lake.store import LakeStore
from ggshell.errors import ConnectionLostError, DiskError, StoreError
from ggshell.files import read_json
from ggshell.object_stores import is_elsewhere
from ggshell.types import TableName

CHECKPOINT_EVERY: Final = 100
"""Commits after which the log gets a checkpoint, so that readers need not read all of it."""
LOG: Final = "_delta_log"
VECTORS, TIMES, FEED = "deletionVectors", "timestampNtz", "changeDataFeed"
FEED_SETTING: Final = "delta.enableChangeDataFeed"
_READER_FEATURES: Final = (VECTORS, TIMES)
_KNOWN_FEATURES: Final = frozenset(
    (VECTORS, TIMES, FEED, "appendOnly", "invariants", "checkConstraints", "generatedColumns", "domainMetadata")
)
"""The features of tables that this program can write to; it makes none with constraints or generated columns."""
Action = dict[str, Any]


def log_text(value: object) -> str:
    """A value as JSON in the log of a table. Characters stand for themselves: readers decode the escapes of some wrongly."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def table_location(lake: str, name: TableName | None) -> str:
    """The location of a table (None: the log) of a lake."""
    if name is None:
        return f"{lake}/log"
    if not is_elsewhere(lake):
        return f"{lake}/current/{name}"
    # Some libraries read the location of an object as a URL, others as it is: a folder of these characters is the same to both.
    return f"{lake}/current/{quote(str(name), safe='').replace('%', '=')}"


def delta_table_at(location: str) -> DeltaTable:
    """The table at a location, for what delta-rs does itself. It refuses a store at an ``http:`` address without an option."""
    is_plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http:")
    return DeltaTable(location, storage_options={"allow_http": "true"} if is_plain else None)


class AddedFile(NamedTuple):
    """A live data file. ``path``: as in the log; ``partition``: values as texts; ``stats``: JSON; ``vector``: deleted rows."""

    path: str
    partition: tuple[tuple[str, str | None], ...]
    size: int
    stats: str
    vector: Descriptor | None = None

    @property
    def file(self) -> str:
        """The path of the file, relative to the table."""
        return unquote(self.path)

    @property
    def rows(self) -> int:
        """The rows of the file, with the deleted ones."""
        return int(read_json(self.stats)["numRecords"])

    @property
    def deleted(self) -> int:
        return int(self.vector["cardinality"]) if self.vector is not None else 0

    def added(self, time: int, *, changes: bool = True) -> Action:
        """The action that adds the file. ``time``: milliseconds."""
        return {"add": {**self._facts(changes), "modificationTime": time, "stats": self.stats}}

    def removed(self, time: int, *, changes: bool = True) -> Action:
        return {"remove": {**self._facts(changes), "deletionTimestamp": time, "extendedFileMetadata": True}}

    def _facts(self, changes: bool) -> dict[str, Any]:
        vector = {"deletionVector": self.vector} if self.vector is not None else {}
        said = {"path": self.path, "partitionValues": dict(self.partition), "size": self.size, "dataChange": changes}
        return {**said, **vector}


class DeltaState:
    """A table as the log describes it, at one version. ``version`` -1: it does not exist yet."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.store = LakeStore(location)
        self.version = -1
        self.files: dict[str, AddedFile] = {}
        self.marks: dict[str, int] = {}
        self.features: frozenset[str] = frozenset()
        self._metadata: dict[str, Any] = {}

    @property
    def exists(self) -> bool:
        return self.version >= 0

    @property
    def schema(self) -> pa.Schema:
        return plain(pa.schema(Schema.from_json(self._metadata["schemaString"]).to_arrow()))

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(self._metadata.get("partitionColumns", ()))

    @property
    def configuration(self) -> Mapping[str, str]:
        return dict(self._metadata.get("configuration") or {})

    # Reading

    def refresh(self) -> DeltaState:
        """Read what has been committed since. Raises StoreError if the log cannot be read."""
        if not self.exists:
            self._load_checkpoint()
        while (text := self.store.read(_entry(self.version + 1))) is not None:
            self._apply([read_json(line) for line in text.splitlines() if line.strip()])
            self.version += 1
        return self

    def _load_checkpoint(self) -> None:
        said = self.store.read(f"{LOG}/_last_checkpoint")
        if said is None:
            return
        version = int(read_json(said)["version"])
        place = self.store.child(f"{LOG}/{version:020d}.checkpoint.parquet")
        try:
            with place.system.open_input_file(place.path) as stream:
                rows = pq.read_table(stream)
        except (FileNotFoundError, pa.ArrowInvalid) as error:
            raise StoreError(f"checkpoint {version} of {self.location} cannot be read: {error}") from error
        self._apply({name: value for name, value in row.items() if value is not None} for row in rows.to_pylist())
        self.version = version

    def _apply(self, actions: Iterable[Action]) -> None:
        for action in actions:
            for kind, said in action.items():
                match kind:
                    case "add":
                        self.files[said["path"]] = _file(said)
                    case "remove":
                        self._forget(said)
                    case "txn":
                        self.marks[said["appId"]] = int(said["version"])
                    case "metaData":
                        self._metadata = _metadata(said)
                    case "protocol":
                        self.features = frozenset(said.get("writerFeatures") or ())

    def _forget(self, said: Action) -> None:
        """A file whose vector changes is removed and added in one commit, in any order; only the old one goes."""
        there = self.files.get(said["path"])
        if there is not None and _identity(there.vector) == _identity(said.get("deletionVector")):
            del self.files[said["path"]]

    # Writing

    def creation(
        self, schema: pa.Schema, partition: Sequence[str], configuration: Mapping[str, str], now: int
    ) -> list[Action]:
        """The actions that create the table, or replace its columns. ``now``: milliseconds."""
        kept = {**self.configuration, **configuration, "delta.enableDeletionVectors": "true"}
        return [*self._protocol(schema, kept), self._described(schema, partition, kept, now)]

    def _protocol(self, schema: pa.Schema, configuration: Mapping[str, str]) -> list[Action]:
        needed = {VECTORS}
        needed |= {TIMES} if pa.timestamp("us") in schema.types else set()
        needed |= {FEED} if configuration.get(FEED_SETTING) == "true" else set()
        if needed <= self.features:
            return []
        every = self.features | needed
        said = {"readerFeatures": [each for each in _READER_FEATURES if each in every], "writerFeatures": sorted(every)}
        return [{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **said}}]

    def _described(
        self, schema: pa.Schema, partition: Sequence[str], configuration: Mapping[str, str], now: int
    ) -> Action:
        said = {
            "id": self._metadata.get("id") or str(uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": Schema.from_arrow(schema).to_json(),
            "partitionColumns": list(partition),
            "configuration": dict(configuration),
            "createdTime": self._metadata.get("createdTime") or now,
        }
        return {"metaData": said}

    def commit(self, actions: Sequence[Action], operation: str, now: int) -> bool:
        """Commit actions as the next version. Returns False if another process has committed that version.

        Raises DiskError (also if the log of the table is missing) and ConnectionLostError.
        """
        self._require_feed(actions)
        self._require_known()
        self._require_there()
        said = {"timestamp": now, "operation": operation, "engineInfo": "ggshell", "txnId": str(uuid4())}
        info = {"commitInfo": said}
        lines = "\n".join(map(log_text, (info, *actions)))
        if not self.store.create(_entry(self.version + 1), lines.encode()):
            return False
        before = self._partition_types() if self.exists else {}
        self._apply(actions)
        self.version += 1
        if (self.version and self.version % CHECKPOINT_EVERY == 0) or self._has_retyped_partition(before):
            self._checkpoint()
        return True

    def _has_retyped_partition(self, before: Mapping[str, pa.DataType]) -> bool:
        """Whether partitions have values of other types now. Readers cannot read the earlier ones, also of removed files."""
        there = self._partition_types()
        return any(there.get(name, kind) != kind for name, kind in before.items())

    def _partition_types(self) -> dict[str, pa.DataType]:
        schema = self.schema if self.partition_columns else pa.schema([])
        return {name: schema.field(name).type for name in self.partition_columns}

    def _require_feed(self, actions: Sequence[Action]) -> None:
        """Without ``cdc`` files, readers of a change data feed derive changes from data files, which can be wrong."""
        described = [_metadata(each["metaData"]) for each in actions if "metaData" in each]
        configuration = [*described, self._metadata][0].get("configuration") or {}
        changes = any(each[kind]["dataChange"] for each in actions for kind in each if kind in ("add", "remove"))
        has_feed = configuration.get(FEED_SETTING) == "true"
        if has_feed and changes and not any("cdc" in each for each in actions):
            raise ValueError(f"a commit to {self.location} changes rows and does not list them in the change data feed")

    def _require_there(self) -> None:
        """Without its earlier log, the table of a new commit would be broken."""
        if self.exists and not self.store.exists(_entry(self.version)):
            raise DiskError(
                f"Delta table {self.location} no longer contains version {self.version}",
                hint="restore the lake: it was moved or emptied; then START the group",
            )

    def _checkpoint(self) -> None:
        try:
            delta_table_at(self.location).create_checkpoint()
        except DeltaError as error:
            cause = str(error).splitlines()[0]
            raise ConnectionLostError(
                f"a checkpoint cannot be written for the log of {self.location}: {cause}"
            ) from error

    def _require_known(self) -> None:
        other = self.features - _KNOWN_FEATURES
        if other:
            raise StoreError(
                f"Delta table {self.location} has the feature {min(other)}, which this version cannot write",
                hint="use another folder for the lake",
            )


def table_state(location: str) -> DeltaState | None:
    """The present state of a table; None if there is none. Raises StoreError."""
    try:
        state = DeltaState(location).refresh()
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"the log of Delta table {location} cannot be read: {error}") from error
    return state if state.exists else None


def _entry(version: int) -> str:
    return f"{LOG}/{version:020d}.json"


def _file(said: Action) -> AddedFile:
    vector = said.get("deletionVector")
    partition = said.get("partitionValues") or {}
    pairs = partition.items() if isinstance(partition, Mapping) else partition
    vector = {name: value for name, value in vector.items() if value is not None} if vector else None
    return AddedFile(said["path"], tuple(pairs), int(said["size"]), said.get("stats") or "", vector)


def _identity(vector: Descriptor | None) -> tuple[Any, ...] | None:
    return (vector["storageType"], vector["pathOrInlineDv"], vector.get("offset")) if vector else None


def _metadata(said: Action) -> dict[str, Any]:
    """The metadata of the table; a checkpoint has its maps as pairs."""
    configuration = said.get("configuration") or {}
    return {**said, "configuration": dict(configuration)}
