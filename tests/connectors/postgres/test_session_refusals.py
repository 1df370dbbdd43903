"""What a server's refusal becomes: an error that names the remedy."""

from __future__ import annotations

import pytest

from ggshell.connectors.postgres.session import connection_info, refusal
from ggshell.errors import ConnectionLostError, DatabaseError


@pytest.mark.parametrize(
    ("text", "state", "error", "hint"),
    [
        (
            'connection to server at "::1", port 5 failed: Connection refused',
            "",
            ConnectionLostError,
            "start the server",
        ),
        ('could not translate host name "nowhere" to address', "", ConnectionLostError, "host and port"),
        ("connection timeout expired", "", ConnectionLostError, "host and port"),
        ("server closed the connection unexpectedly", "", ConnectionLostError, ""),
        ('password authentication failed for user "x"', "28P01", DatabaseError, "ALTER CREDENTIALSTORE REPLACE USER"),
        (
            'FATAL:  no pg_hba.conf entry for host "10.0.0.7", user "x", database "d", no encryption',
            "28000",
            DatabaseError,
            "pg_hba.conf on the server",
        ),
        ('database "x" does not exist', "3D000", DatabaseError, "database name"),
    ],
)
def test_a_refusal_names_its_remedy(text: str, state: str, error: type[DatabaseError], hint: str) -> None:
    found = refusal(text, state, operational=True)
    assert type(found) is error
    assert hint in found.hint
    assert bool(found.hint) is bool(hint)


def test_the_position_in_the_statement_is_not_part_of_the_message() -> None:
    text = 'syntax error at or near "("\nLINE 1: CREATE TABLE a.b ((\n                          ^\nDETAIL:  more'
    found = refusal(text, "42601")
    assert found.message == 'the database returned an error: syntax error at or near "(" DETAIL: more'


def test_a_login_is_not_a_data_source() -> None:
    with pytest.raises(DatabaseError, match="h:1/d is a login, not a data source") as caught:
        connection_info("other", "secret", "x@h:1/d")
    assert "DBLOGIN USERID x@h:1/d" in caught.value.hint


def test_a_connection_without_an_entry_in_pg_hba_is_refused() -> None:
    text = 'connection failed: FATAL:  no pg_hba.conf entry for host "10.0.0.7", user "x", database "d"'
    assert refusal(text, "", operational=True).message.startswith("the server refuses the connection: ")
