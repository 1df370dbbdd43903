"""The addresses of CONNECT."""

from __future__ import annotations

import pytest

from ggshell.errors import UsageError
from ggshell.network.service_url import parse_url


@pytest.mark.parametrize(
    ("text", "shown", "base"),
    [
        ("https://host:7810", "https://host:7810", "/services/v2"),
        ("https://host", "https://host:443", "/services/v2"),
        ("http://localhost:9/", "http://localhost:9", "/services/v2"),
        ("https://[::1]:7810", "https://[::1]:7810", "/services/v2"),
        ("https://proxy/ogg/", "https://proxy:443/ogg", "/ogg/services/v2"),
        ("https://host:1/services/v2", "https://host:1", "/services/v2"),
    ],
)
def test_an_address_is_shown_with_its_port(text: str, shown: str, base: str) -> None:
    url = parse_url(text)
    assert (str(url), url.base("")) == (shown, base)


def test_a_deployment_is_part_of_the_path() -> None:
    assert parse_url("https://host").base("north a") == "/services/north%20a/adminsrvr/v2"


@pytest.mark.parametrize(
    "text", ["host:7810", "ftp://host", "https://", "https://h:x", "https://h:99999", "https://h?a=b", ""]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a valid address of a service"):
        parse_url(text)


def test_a_user_in_an_address_is_refused_without_repeating_the_password() -> None:
    with pytest.raises(UsageError, match="contains no user") as refused:
        parse_url("https://admin:hunter2secret@host")
    assert "hunter2secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "local"), [("localhost", True), ("127.0.0.9", True), ("[::1]", True), ("10.0.0.1", False), ("a.b", False)]
)
def test_only_this_machine_is_local(host: str, local: bool) -> None:
    assert parse_url(f"http://{host}:1").is_local is local
