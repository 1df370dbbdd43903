"""Connections to both databases are cut in mid-transaction, by a proxy that stands before their sockets."""

from __future__ import annotations

import random

from benches.ground import Failed

from faultruns.chain import Chain
from faultruns.proxy import Proxy
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home

MOST_BYTES = 60_000


MARIADB = True


def missing() -> str:
    """Sockets are everywhere."""
    return ""


def prepare(ground: Chain) -> None:
    """The aliases lead through a proxy each."""
    store = CredentialStore(Home(ground.home))
    for name, side in ground.sides.items():
        listen, server = side.proxied()
        ground.proxies[name] = ground.ends.enter_context(Proxy(listen, server))
        store.add(name, *side.login(listen), replace=True)


def spoil(ground: Chain, rounds: int, seed: int) -> None:
    """A round: every connection of one side is cut when so many more bytes have passed. Raises Failed."""
    chance = random.Random(f"cut {seed}")
    for _ in range(rounds):
        name = chance.choice(("north", "south", "south"))
        if not ground.proxies[name].cut_after(chance.randint(0, MOST_BYTES), seconds=30):
            raise Failed(f"rows no longer arrive in {name}\n{ground.reports()}")
        ground.wait(chance.uniform(0.0, 0.5))
    ground.require_alive()
