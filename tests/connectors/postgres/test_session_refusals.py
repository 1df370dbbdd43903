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


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ('relation "shop.database_log" does not exist', "42P01"),
        ('column "wal_level" does not exist', "42703"),
        ('invalid input syntax: "password authentication failed"', "22P02"),
        ("duplicate key: Key (note)=(see pg_hba.conf) already exists.", "23505"),
        ('new row violates check "permission denied for x"', "23514"),
        ('cannot ALTER TABLE "t" because it has pending trigger events', "55006"),
        ('cannot alter type "t" because column "a" uses it', "55000"),
    ],
)
def test_the_sqlstate_decides_and_not_words_of_the_message(text: str, state: str) -> None:
    """Regression: a missing table whose name contains "database" was reported as a login that failed."""
    found = refusal(text, state)
    assert (found.message, found.hint) == (f"the database returned an error: {text}", "")


@pytest.mark.parametrize(
    ("text", "state", "words"),
    [
        ("rôle « x » inconnu", "28000", "login failed"),
        ("base de données « x » inconnue", "3D000", "login failed"),
        ("droit refusé", "42501", "a privilege is missing"),
        ("le slot de réplication « s » est actif", "55006", "the replication slot is already in use"),
        ("logical decoding requires wal_level >= logical", "55000", "the server does not log the data"),
    ],
)
def test_the_language_of_the_server_does_not_matter(text: str, state: str, words: str) -> None:
    assert refusal(text, state).message.startswith(words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('FATAL: database "x" does not exist', "login failed"),
        ('FATAL: role "x" does not exist', "login failed"),
        ('FATAL: permission denied for database "x"', "a privilege is missing"),
        ("FATAL: must be superuser or replication role to start walsender", "a privilege is missing"),
    ],
)
def test_an_error_without_a_sqlstate_is_known_by_its_text(text: str, words: str) -> None:
    found = refusal(f'connection to server at "::1", port 5 failed: {text}', "", operational=True)
    assert found.message.startswith(words)


def test_a_socket_that_may_not_be_opened_is_a_server_that_does_not_respond() -> None:
    text = 'connection to server on socket "/run/.s.PGSQL.5" failed: Permission denied'
    assert isinstance(refusal(text, "", operational=True), ConnectionLostError)


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
