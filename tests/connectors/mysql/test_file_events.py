"""Reading one file of a server's log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from mariadb_home import MariadbHome
from mariadb_servers import execute

from ggshell.connectors.mysql.binlog import events
from ggshell.connectors.mysql.file_events import LogReader
from ggshell.connectors.mysql.log_files import log_files
from ggshell.connectors.mysql.session import connect
from ggshell.errors import ConnectionLostError

NUMBER = 4711


@pytest.fixture
def connection(capture: MariadbHome) -> Iterator[Any]:
    """A connection to a server whose log has more than one file."""
    execute(
        capture.login, "CREATE TABLE items (id INT PRIMARY KEY)", "FLUSH BINARY LOGS", "INSERT INTO items VALUES (1)"
    )
    with closing(connect(capture.login)) as found:
        yield found


def test_the_events_of_a_file_end_where_the_file_ends(capture: MariadbHome, connection: Any) -> None:
    reader = LogReader(capture.login, NUMBER)
    for file in log_files(connection)[-2:]:
        last = [events.header(event).next for event in reader.events(file)][-1]
        assert last == file.size


def test_a_server_that_ends_before_the_end_of_the_file_is_reported(capture: MariadbHome, connection: Any) -> None:
    """Regression: the answer of a server that shuts down was taken as the end of the log."""
    file = log_files(connection)[-1]
    with pytest.raises(ConnectionLostError):
        list(LogReader(capture.login, NUMBER).events(file._replace(size=file.size + 1)))
