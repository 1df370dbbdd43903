"""Checkpoint files: the definition of a group, how far it has read and written, and when the file was last updated.

Each group has one file (``dirchk/<GROUP>.cpe``, ``.cpr`` or ``.cpd``) and one writer: the running process, or a command
while the process is stopped. A file is replaced atomically, has a checksum, and the previous version is kept. INFO reads
these files, so it works whether or not processes run.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ggshell.errors import StoreError
from ggshell.files import read_json, write_atomically
from ggshell.home.bounded_state import BoundedState
from ggshell.home.maintenance import MaintenanceSettings
from ggshell.home.slot_facts import SlotFacts
from ggshell.home.typed_fields import field_types, plain, read_value
from ggshell.types import LogPosition, TrailPosition

VERSION = 1
DAMAGED = "GGS-00302"
_AGAIN = {
    ".cpr": "run ADD REPLICAT again, which continues from its checkpoint table row or its lake's last batch",
    ".cpe": "run ADD EXTRACT … LSN (its slot's confirmed_flush_lsn; for a pump, only EXTTRAILSOURCE) and ADD EXTTRAIL again:"
    " its trail shows what was already written",
    ".cpd": "run ADD DISTPATH again: its trail shows what was already written",
    ".cpv": "run ADD RECVPATH again: its trail shows what was already written",
}
"""The alternative to restoring the previous checkpoint file, by the file's suffix (the kind of group)."""


class GroupKind(StrEnum):
    """The kind of process that a group is."""

    EXTRACT = "EXTRACT"
    REPLICAT = "REPLICAT"
    PATH = "DISTPATH"
    RECVPATH = "RECVPATH"

    @property
    def is_path(self) -> bool:
        """Whether it copies a trail without a parameter file; a RECVPATH reads the trail of another home."""
        return self in (GroupKind.PATH, GroupKind.RECVPATH)


class ReplicatKind(StrEnum):
    """How a Replicat applies; LAKE delivers to a lake (ADD REPLICAT … SPARK)."""

    CLASSIC = "CLASSIC"
    PARALLEL = "PARALLEL"
    COORDINATED = "COORDINATED"
    LAKE = "SPARK"


class SourceType(StrEnum):
    """What a group reads."""

    LOG = "TRANLOG"
    TRAIL = "EXTTRAIL"
    TABLE = "SOURCEISTABLE"


class StopStatus(StrEnum):
    """How the last run ended (INFO … SHOWCH). ABENDED also means that the process is still running."""

    ABENDED = "A"
    GRACEFUL = "G"
    FORCED = "F"


class ReadCheckpoint(NamedTuple):
    """How far a group has read its source.

    Positions are LogPosition for a log and TrailPosition for a trail. Times are in microseconds since 1970, 0 if unknown.

    ``startup``: where the last run began. ``recovery``: where reading must begin to rebuild the oldest open transaction.
    ``current``: the position after the last record that was read; for PostgreSQL, after the last transaction that was handed
    out to the trail.
    """

    source: SourceType
    trail: str = ""
    startup: LogPosition | TrailPosition = LogPosition(0, 0, 0)
    startup_time: int = 0
    recovery: LogPosition | TrailPosition = LogPosition(0, 0, 0)
    recovery_time: int = 0
    current: LogPosition | TrailPosition = LogPosition(0, 0, 0)
    current_time: int = 0

    def reached(self, place: TrailPosition, time: int, *, recovery_time: int | None = None) -> ReadCheckpoint:
        """Return the checkpoint for a trail that is processed up to ``place``; ``time`` is the time of the last record.

        ``startup`` is set to ``place`` if it is not a trail position yet.
        """
        return self._replace(
            startup=self.startup if isinstance(self.startup, TrailPosition) else place,
            recovery=place,
            recovery_time=self.recovery_time if recovery_time is None else recovery_time,
            current=place,
            current_time=time,
        )


class WriteCheckpoint(NamedTuple):
    """How far one output trail was durably written; ``release``: FORMAT RELEASE, empty for the newest.

    ``receiver``: the URL of the other home's service that receives the trail, empty for a trail of this machine. ``trail`` is
    then its name there.
    """

    trail: str
    remote: bool = False
    megabytes: int = 500
    current: TrailPosition = TrailPosition(0, 0)
    current_time: int = 0
    release: str = ""
    receiver: str = ""

    @property
    def is_elsewhere(self) -> bool:
        """Whether the trail is in another home: its name means nothing on this machine."""
        return bool(self.receiver)

    @property
    def receiver_place(self) -> str:
        """Host and port of the receiver; empty for a trail of this machine."""
        return self.receiver.partition("://")[2].partition("/")[0]

    @property
    def shown(self) -> str:
        """The trail as reports name it, with the receiver of one in another home."""
        return f"{self.trail} at {self.receiver_place}" if self.is_elsewhere else self.trail


class AddedAt(StrEnum):
    """Where a Replicat begins that was added and has not run yet: at the trail's first record, or where ADD said."""

    FIRST = "first"
    PLACED = "placed"


class AssignedThreads(NamedTuple):
    """The threads that a MAP assigns its tables to: one, or those that share the rows by columns; ``barrier``: COORDINATED."""

    source: str
    first: int
    last: int
    columns: tuple[str, ...] = ()
    barrier: bool = False


class AdditionalRows(NamedTuple):
    """The rows that a group has in its checkpoint table besides its own.

    ``threads``: the threads of a coordinated Replicat. ``all``: the group's own row covers everything that is applied.
    ``assigned``: the threads of the tables, by the MAPs of the last run in their order.
    """

    threads: tuple[int, ...] = ()
    all: bool = False
    assigned: tuple[AssignedThreads, ...] = ()


class PathSettings(NamedTuple):
    """What ALTER DISTPATH and ALTER RECVPATH set about the process of a path and its connection.

    ``retries``: how often Manager restarts the path after it has abended, ``delay``: the seconds before each restart.
    ``critical``: the health of the service requires that the path runs. ``eof_delay``: the centiseconds that the path waits at
    the end of its source trail; 0: it is notified of new data. ``proxy``: the URL of an HTTP proxy between both homes, with the
    alias and the domain of its login.
    """

    retries: int = 0
    delay: int = 0
    critical: bool = False
    eof_delay: int = 0
    proxy: str = ""
    proxy_alias: str = ""
    proxy_domain: str = ""


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class GroupOptions(NamedTuple):
    """The settings and the state that only some groups have. The file contains those that differ from the default."""

    source_kind: str = ""
    """The kind of database that an Extract captures, by the name of its connector; empty: no log, or not known yet."""
    source_login: str = ""
    """The login of a source that needs none to be stored in the parameter file: the folder of Oracle redo."""
    slot: str = ""
    """The replication slot."""
    history: tuple[str, int] | None = None
    """The cluster and the timeline that the slot was read from."""
    watch: SlotFacts | None = None
    """What INFO shows of the slot, as last seen."""
    log_server: str = ""
    """The server that a binary log was read from."""
    log_last: tuple[int, str] | None = None
    """The last transaction of a binary log that was read: the value of its CSN, and the GTID position after it."""
    not_captured: Mapping[str, str] = _NOTHING
    """The tables that an Extract should capture but cannot, each with the reason."""
    since: int = 0
    """BEGIN with a time: transactions that committed earlier are not captured."""
    at_csn: str | None = None
    """An Extract that START placed begins after ``begin_csn``: this CSN, or empty for AFTERCSN."""
    decisions: tuple[Mapping[str, Any], ...] = ()
    """SKIPTRANS and FORCETRANS."""
    bounded: BoundedState | None = None
    """The state of Bounded Recovery; None before the first start on Oracle redo."""
    load: Mapping[str, Any] = _NOTHING
    """The progress of an initial load."""
    etrollover: bool = False
    """ALTER … ETROLLOVER or SEND … ROLLOVER: the next transaction begins a new trail file."""
    source: str = ""
    """The source of a path, as it was typed; for a RECVPATH and an alias Extract, the URL of the other home's service."""
    passive: bool = False
    """The Extract is passive: its alias in another home starts it, and reads its remote trail here."""
    alias_of: str = ""
    """The passive Extract of another home that this Extract is an alias of; empty: it is not an alias."""
    target: str = ""
    """The target of a path, or the folder of a lake, as it was typed."""
    access_alias: str = ""
    """The alias of a path's login to the receiver (AUTHENTICATION USERIDALIAS); empty: the home signs in with its own key."""
    access_domain: str = ""
    """The domain of that alias."""
    access_certificate: str = ""
    """The name of a path's client certificate (AUTHENTICATION CERTIFICATE)."""
    compression: int | None = None
    """The smallest data in bytes that a path compresses; None: it does not."""
    rule_objects: tuple[str, ...] = ()
    """The tables of a path's rule; empty: it sends all."""
    rule_excludes: bool = False
    """The path sends all tables but those of its rule."""
    path: PathSettings = PathSettings()
    """The settings of a path's process and connection."""
    replicat_kind: ReplicatKind = ReplicatKind.CLASSIC
    """How a Replicat applies."""
    maxthreads: int = 25
    """The maximum number of threads of a coordinated Replicat."""
    checkpoint_table: str = ""
    """The checkpoint table."""
    nodbcheckpoint: bool = False
    """The Replicat has no checkpoint table; the checkpoint file is decisive."""
    group_key: int | None = None
    """The key of the group's row in the checkpoint table; set at the first checkpoint."""
    row_keys: str = ""
    """The text from which the keys of the group and of its threads are derived; set at ADD."""
    added: AddedAt | None = None
    """Where a group that was added begins; None from the first checkpoint of the first run on."""
    additional: AdditionalRows | None = None
    """The additional rows in the checkpoint table."""
    completed: tuple[str, ...] = ()
    """The ids of all transactions of the last CSN."""
    start: Mapping[str, Any] = _NOTHING
    """The position that START named."""
    refused: TrailPosition | None = None
    """The record that could not be applied; None when it is passed."""
    uncertain: tuple[str, str] | None = None
    """The range of CSNs in which it is unknown what is applied, after rows of the checkpoint table were lost."""
    maintenance: MaintenanceSettings = MaintenanceSettings()
    """The maintenance of a lake."""
    special: bool = False
    """SPECIALRUN: the Replicat is a task, which an Extract with RMTTASK starts."""
    task: Mapping[str, Any] = _NOTHING
    """The id of the load that a task applies, and its result."""
    unknown: Mapping[str, Any] = _NOTHING
    """The options of another version, kept as they are."""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> GroupOptions:
        """Read the options of a checkpoint file, also under the names that earlier versions wrote.

        Raises ValueError, with the name of the option, for a value that is not valid.
        """
        found = {_RENAMED.get(name, name): value for name, value in fields.items()}
        unknown = {name: found.pop(name) for name in tuple(found) if name not in _DEFAULTS}
        if "source_kind" not in found:  # earlier versions wrote a login of Oracle redo, or a slot
            found["source_kind"] = (
                "oracle_redo" if found.get("source_login") else "postgres" if found.get("slot") else ""
            )
        kinds = field_types(cls)
        typed = {name: read_value(kinds[name], found[name], name) for name in found if found[name] not in _EMPTY}
        return cls(**typed, unknown=unknown)

    def plain(self) -> dict[str, Any]:
        """Return the options for the file, as JSON values."""
        found = {name: plain(value) for name, value in self._asdict().items() if value != _DEFAULTS.get(name, value)}
        return {**self.unknown, **found}


_RENAMED = {
    "redo": "source_login",
    "br": "bounded",
    "kind": "replicat_kind",
    "beside": "additional",
    "lost": "uncertain",
}
"""The names of options in files of earlier versions."""
_DEFAULTS = {name: value for name, value in GroupOptions._field_defaults.items() if name != "unknown"}
_EMPTY: tuple[Any, ...] = (None, [], {})
"""An option with one of these values has its default."""


class Checkpoint(NamedTuple):
    """The contents of a group's checkpoint file.

    ``begin``: the start point as the user typed it; ``NOW`` is resolved in ``begin_csn`` and ``begin_time``.
    ``record_time``: the commit time of the last record processed. ``caught_up``: the last time at which no input was left
    (0: never). ``latest_csn`` and ``latest_xid``: the last transaction that was finished.
    """

    group: str
    type: GroupKind
    read: ReadCheckpoint
    write: tuple[WriteCheckpoint, ...] = ()
    description: str = ""
    created: int = 0
    begin: str = "NOW"
    begin_csn: str = ""
    begin_time: int = 0
    started: int = 0
    updated: int = 0
    stop: StopStatus = StopStatus.ABENDED
    result: int = 0
    record_time: int = 0
    caught_up: int = 0
    latest_csn: str = ""
    latest_xid: str = ""
    options: GroupOptions = GroupOptions()

    @property
    def is_task(self) -> bool:
        """Whether the group runs once, for an initial load, and is not one that replicates changes."""
        return self.read.source is SourceType.TABLE or self.options.special

    @property
    def reads_other_home(self) -> bool:
        """Whether it connects to another home to read a trail there: a RECVPATH or an alias Extract."""
        return self.type is GroupKind.RECVPATH or bool(self.options.alias_of)

    @property
    def has_parameters(self) -> bool:
        """Whether it has a parameter file."""
        return not self.type.is_path and not self.options.alias_of

    @property
    def written_here(self) -> tuple[WriteCheckpoint, ...]:
        """The trails of this machine that the group writes, without those of other homes."""
        return tuple(each for each in self.write if not each.is_elsewhere)


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Replace a checkpoint file. Raises DiskError; the old checkpoint is then still in place."""
    body = json.dumps(_fields(checkpoint), separators=(",", ":")).encode()
    write_atomically(path, b"GGSCHK %d %08x\n" % (VERSION, zlib.crc32(body)) + body, keep_previous=True)


def previous(path: Path) -> Path:
    """Return the path of the previous version of a checkpoint file."""
    return path.with_name(path.name + ".previous")


def load(path: Path) -> Checkpoint:
    """Read a checkpoint file.

    Raises StoreError if the file is missing or damaged; the error names the file and the way to recover (the previous
    version is kept in ``<file>.previous``).
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise _missing(path) from None
    except OSError as error:
        raise StoreError(
            f"cannot read checkpoint file {path}: {error.strerror}",
            hint=f"make it readable, or move it elsewhere and {way_out(path)}",
        ) from error
    return decode(data, path)


def decode(data: bytes, path: Path) -> Checkpoint:
    """Decode the contents of a checkpoint file. Raises StoreError if they are damaged or have another version."""
    head, _, body = data.partition(b"\n")
    fields = head.split()
    if len(fields) != 3 or fields[0] != b"GGSCHK":
        raise _damaged(path, "its header is not valid")
    if fields[1] != b"%d" % VERSION:
        raise _damaged(
            path, f"it has version {fields[1].decode(errors='replace')}; this program reads version {VERSION}"
        )
    if fields[2] != b"%08x" % zlib.crc32(body):
        raise _damaged(path, "its checksum does not match")
    try:
        return _checkpoint(read_json(body))
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path, f"its content cannot be read ({error})") from error


def set_aside(path: Path) -> Path | None:
    """Rename a damaged file to ``<file>.damaged`` and return that path.

    Returns None if there is no file or it is intact. Raises StoreError if the file cannot be read.
    """
    if not path.exists():
        return None
    try:
        load(path)
    except StoreError as error:
        if error.code != DAMAGED:
            raise
    else:
        return None
    aside = path.with_name(path.name + ".damaged")
    path.replace(aside)
    return aside


def _damaged(path: Path, why: str) -> StoreError:
    return StoreError(f"checkpoint file {path} is damaged: {why}", code=DAMAGED, hint=way_out(path))


def _missing(path: Path) -> StoreError:
    """Return the error for a missing checkpoint file of a group that still exists. Only DELETE removes such a file."""
    return StoreError(f"checkpoint file {path} does not exist, but its group was not deleted", hint=way_out(path))


def way_out(path: Path) -> str:
    """Return the hint for restoring a group's checkpoint file: copy the previous version, if there is one, or use ADD."""
    again = _AGAIN.get(path.suffix, "ADD the group again")
    if not previous(path).exists():
        return again
    return f"copy {previous(path)} to {path.name} and start the group again; or {again}"


def _fields(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return a checkpoint as JSON values; of its options, only those that differ from their defaults."""
    values = checkpoint._asdict()
    return {name: values[name].plain() if name == "options" else plain(values[name]) for name in values}


def _position(fields: dict[str, int]) -> LogPosition | TrailPosition:
    return TrailPosition(**fields) if "seqno" in fields else LogPosition(**fields)


def _read(fields: dict[str, Any]) -> ReadCheckpoint:
    places: dict[str, Any] = {name: _position(fields.pop(name)) for name in ("startup", "recovery", "current")}
    return ReadCheckpoint(source=SourceType(fields.pop("source")), **places, **fields)


def _checkpoint(fields: dict[str, Any]) -> Checkpoint:
    read = _read(fields.pop("read"))
    write = tuple(WriteCheckpoint(current=TrailPosition(**item.pop("current")), **item) for item in fields.pop("write"))
    kind, stop = GroupKind(fields.pop("type")), StopStatus(fields.pop("stop"))
    options = GroupOptions.of(read_value(Mapping[str, Any], fields.pop("options", {}), "options"))
    return Checkpoint(type=kind, read=read, write=write, stop=stop, options=options, **fields)
