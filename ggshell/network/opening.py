"""The opening of a connection: who sends, which trail, and from where on. Text messages in JSON.

The receiver begins with a challenge. The sender names the trail and itself, and proves its identity with its home's key. The
receiver answers with the end of its trail, or with a refusal. A refusal can also follow later, when the trail cannot be
written.
"""

from __future__ import annotations

import base64
import re
from enum import StrEnum
from typing import Annotated, Final

import msgspec

from ggshell.cipher import random_bytes
from ggshell.errors import TrailError
from ggshell.network.frames import INVALID
from ggshell.trail.durable import DurableMark
from ggshell.trail.name import LAST_FILE
from ggshell.types import LAST_OFFSET, Csn, TrailPosition

LONGEST_TEXT: Final = 1 << 20
"""The longest text message in bytes: the transactions of one CSN are listed."""
LONGEST_OPENING: Final = 1 << 15
"""The longest opening in bytes; its certificate is the largest part. It arrives before the receiver knows the sender."""
_LONGEST_NAME: Final = 255
_MOST_MEGABYTES: Final = 2000
_GROUP: Final = re.compile(r"[A-Za-z0-9_#$]{1,8}")
_Sequence = Annotated[int, msgspec.Meta(ge=0, le=LAST_FILE)]
_Offset = Annotated[int, msgspec.Meta(ge=0, le=LAST_OFFSET)]


class Challenge(msgspec.Struct, tag="challenge"):
    """The receiver's first message. The sender signs ``nonce`` and ``receiver``, the fingerprint of the receiving home."""

    nonce: str
    release: str
    receiver: str


class Opening(msgspec.Struct, tag="opening"):
    """The sender's answer.

    ``trail``: as the target names it. ``home``, ``host``, ``group``: the sender. ``reached``: the end of the trail by the
    sender's checkpoint (sequence number and RBA), or None. ``certificate`` (DER) and ``signature`` in Base64 prove the
    sender's identity; empty if it signed in otherwise. ``purge``: remove the files that this sender wrote from this sequence
    number on before the trail is opened; None removes nothing.

    ``reads``: the trail is not sent, but read: its bytes are wanted from ``reached`` on, or from its first file. ``tail`` is
    then the digest of the bytes before that place (``trail_source.tail_digest``), ``wanted`` a later place that the trail must
    have, and ``at_end`` stands for the file with the trail's durable end instead of the first file. ``forgets``: the reader
    needs the trail no longer, and nothing is sent. ``since``: begin with the first transaction that committed at this time or
    later (microseconds since 1970; 0: no such time). ``compress``: compress frames with at least this many bytes of data.
    ``extract``: the passive Extract that writes the trail, for its alias: when it does not run, reading ends with an error.
    ``unchecked``: the sender does not know which home receives, because the connection has no TLS.
    """

    trail: str
    home: str
    host: str
    group: str
    release: str
    reached: tuple[_Sequence, _Offset] | None = None
    certificate: str = ""
    signature: str = ""
    purge: _Sequence | None = None
    reads: bool = False
    tail: str = ""
    wanted: tuple[_Sequence, _Offset] | None = None
    at_end: bool = False
    forgets: bool = False
    since: int = 0
    compress: Annotated[int, msgspec.Meta(ge=0, le=LAST_OFFSET)] | None = None
    extract: str = ""
    unchecked: bool = False

    @property
    def purpose(self) -> str:
        """What the signature is for: a proof for reading a trail is not one for writing it."""
        return _purpose("read" if self.reads else "write", self)

    def require_plain(self) -> None:
        """Raise TrailError (GGS-00955) for names that could forge a line of a log, or that no home sends."""
        _require_plain(self, "trail", "home", "host", "group", "release")
        if self.extract and not _GROUP.fullmatch(self.extract):
            raise TrailError("the Extract of an opening is not a valid name of a group", code=INVALID)


class TaskRequest(msgspec.Struct, tag="task"):
    """The sender asks for the task of a load, instead of an opening.

    ``task``: the Replicat; ``load``: the id of the load that it applies, empty to prepare the task only. The other fields are
    those of an opening.
    """

    trail: str
    home: str
    host: str
    group: str
    release: str
    task: str
    load: str = ""
    certificate: str = ""
    signature: str = ""
    unchecked: bool = False

    @property
    def purpose(self) -> str:
        """What the signature is for."""
        return _purpose(f"task {self.task} {self.load}", self)

    def require_plain(self) -> None:
        """Raise TrailError (GGS-00955) like an opening, and for a task that is not the name of a group."""
        _require_plain(self, "trail", "home", "host", "group", "release", "load")
        if not _GROUP.fullmatch(self.task):
            raise TrailError("the task of a request is not a valid name of a group", code=INVALID)


class ExtractAction(StrEnum):
    """What the alias of a passive Extract asks for."""

    START = "start"
    STOP = "stop"
    INFO = "info"


class ExtractRequest(msgspec.Struct, tag="extract"):
    """The alias of a passive Extract asks to start, to stop or to show it, instead of an opening.

    ``trail`` is empty. The other fields are those of an opening.
    """

    trail: str
    home: str
    host: str
    group: str
    release: str
    extract: str
    action: ExtractAction
    certificate: str = ""
    signature: str = ""
    unchecked: bool = False

    @property
    def purpose(self) -> str:
        """What the signature is for."""
        return _purpose(f"{self.action} extract {self.extract}", self)

    def require_plain(self) -> None:
        """Raise TrailError (GGS-00955) like an opening, and for an Extract that is not the name of a group."""
        _require_plain(self, "trail", "home", "host", "group", "release")
        if not _GROUP.fullmatch(self.extract):
            raise TrailError("the Extract of a request is not a valid name of a group", code=INVALID)


class ExtractAnswer(msgspec.Struct, tag="passive"):
    """The passive Extract runs, or has been asked to stop.

    ``trail``: its remote trail, as its own home and the home of the alias name it; ``megabytes``: the size of its files.
    ``compress``: compress frames with at least this many bytes of data; None: do not compress. ``shown``: what INFO EXTRACT
    shows of it, if that was asked for.
    """

    trail: str
    megabytes: Annotated[int, msgspec.Meta(ge=1, le=_MOST_MEGABYTES)]
    compress: Annotated[int, msgspec.Meta(ge=0, le=LAST_OFFSET)] | None = None
    shown: str = ""


class TaskAnswer(msgspec.Struct, tag="answer"):
    """The task is prepared, or has ended after ``rows`` rows; ``error``: why it failed."""

    rows: int = 0
    error: str = ""


class Opened(msgspec.Struct, tag="opened"):
    """The receiver's trail is open.

    ``folder`` and ``prefix``: its name there. ``end``: the end of its last whole transaction (sequence number, RBA, CSN,
    table definitions), None if it has no file. ``transactions``: the ids of the transactions of that CSN. ``header``: the
    header record of its last file in Base64. To a reader, ``end`` is the durable end of the source trail, and ``begin``
    the place of the first transaction ``since`` a time.
    """

    folder: str
    prefix: str
    end: tuple[int, int, str, int] | None = None
    transactions: list[str] = []
    header: str = ""
    begin: tuple[int, int] | None = None

    @property
    def mark(self) -> DurableMark | None:
        if self.end is None:
            return None
        seqno, rba, csn, tables = self.end
        return DurableMark(TrailPosition(seqno, rba), Csn.parse(csn) if csn else None, tables)


class Refusal(msgspec.Struct, tag="refusal"):
    """The receiver's error. ``again``: a later attempt may succeed without anybody changing anything."""

    code: str
    message: str
    hint: str = ""
    again: bool = False


def _purpose(text: str, message: Asked) -> str:
    return f"{text}, of any home without TLS" if message.unchecked else text


def _require_plain(message: Asked, *names: str) -> None:
    for name in names:
        text = getattr(message, name)
        if (not text and name in ("home", "group")) or not text.isprintable() or len(text) > _LONGEST_NAME:
            raise TrailError(f"the {name} of an opening is not a valid name", code=INVALID)


Asked = Opening | TaskRequest | ExtractRequest
"""What the side that dials asks for."""
Message = Challenge | Asked | TaskAnswer | ExtractAnswer | Opened | Refusal


def new_challenge(release: str, receiver: str) -> Challenge:
    """Return a challenge with a new nonce. ``receiver``: the fingerprint of this home."""
    return Challenge(base64.b64encode(random_bytes(24)).decode(), release, receiver)


def encode_message(message: Message) -> str:
    """Return the text of a message."""
    return msgspec.json.encode(message).decode()


def decode_message(text: str) -> Message:
    """Return the message of a text. Raises TrailError (GGS-00955)."""
    try:
        found: Message = msgspec.json.decode(text, type=Message)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise TrailError(f"a message of the trail's transport is not valid: {error}", code=INVALID) from error
    return found


def position_text(end: DurableMark) -> tuple[int, int, str, int]:
    """Return a mark as ``Opened.end``."""
    return (*end.position, str(end.csn) if end.csn is not None else "", end.tables)
