"""The addresses of trails in other homes."""

from __future__ import annotations

import pytest

from ggshell.errors import UsageError
from ggshell.network.addresses import parse_receiver, parse_source

PLACE = "wss://target:7810/services/v2"


def test_an_address_names_the_service_and_the_trail() -> None:
    found = parse_receiver(f"{PLACE}/targets?trail=./dirdat/da")
    assert (found.service.place, found.path, found.trail) == ("target:7810", "/services/v2/targets", "./dirdat/da")
    assert parse_receiver(found.uri) == found
    assert parse_source(f"{PLACE}/sources", needs_trail=False).uri == f"{PLACE}/sources"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "does not name a trail"),
        ("?trail=ea&trail=eb", "does not name a trail"),
        ("?trail=z%00", "does not name a valid trail"),
        ("?trail=./dirdat/zz%0Aforged", "does not name a valid trail"),
        (f"?trail={'x' * 300}/da", "does not name a valid trail"),
        ("?trail=./dirdat/a", "does not name a valid trail"),
        ("?trail=./dirdat/abc", "does not name a valid trail"),
        ("?trail=./dirdat/", "does not name a valid trail"),
        ("?trail=./dirdat/..", "does not name a valid trail"),
    ],
)
def test_an_address_with_another_trail_is_refused(query: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_receiver(f"{PLACE}/targets{query}")


@pytest.mark.parametrize(
    "address", ["ws://target:7810/x?trail=ea", "http://t?trail=ea", "wss://u:p@t?trail=ea", "wss://t:x"]
)
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(UsageError):
        parse_receiver(address)
