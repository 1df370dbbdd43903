"""The events of one file of a server's log, for a search in it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Final, NamedTuple

from ggshell.connectors.mysql.binlog import events
from ggshell.connectors.mysql.log_files import LogFile
from ggshell.connectors.mysql.wire import ReplicationWire, StartAt
from ggshell.errors import ConnectionLostError

ANSWER_SECONDS: Final = 60


class LogReader(NamedTuple):
    """Reads files of a server's log. ``server_id``: the number with which it asks for events."""

    login: str
    server_id: int

    def events(self, file: LogFile) -> Generator[bytes]:
        """Yield the events of one file, with their checksums.

        Raises ConnectionLostError if the server does not send all of them.
        """
        reached = 0
        wire = ReplicationWire.open(self.login, self.server_id, StartAt(file.name, ends=True), "ggshell")
        with closing(wire):
            try:
                while wire.wait(ANSWER_SECONDS):
                    for event in wire.receive():
                        head = events.header(event)
                        if _begins_another(event, head, file):
                            return
                        reached = max(reached, head.next)
                        yield event
            except ConnectionLostError:
                # A server that shuts down says the same as one that has sent its whole log.
                if not wire.ended or reached < file.size:
                    raise
                return
        raise ConnectionLostError(f"the server has sent nothing of {file.name} for {ANSWER_SECONDS} seconds")


def _begins_another(event: bytes, head: events.EventHeader, file: LogFile) -> bool:
    return head.kind == events.EventType.ROTATE and head.is_artificial and events.rotate(event).file != file.name
