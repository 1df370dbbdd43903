"""What a server's refusal becomes: an error that names the remedy."""

from __future__ import annotations

import pytest

from ggshell.connectors.postgres.session import refusal
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
        ('database "x" does not exist', "3D000", DatabaseError, "database name"),
    ],
)
def test_a_refusal_names_its_remedy(text: str, state: str, error: type[DatabaseError], hint: str) -> None:
    found = refusal(text, state, operational=True)
    assert type(found) is error
    assert hint in found.hint
    assert bool(found.hint) is bool(hint)
