"""The wallet of a home, where its parameter files say it is."""

from __future__ import annotations

from ggshell.params.files import load_globals
from ggshell.store.home import Home
from ggshell.store.wallet import Wallet


def wallet_of(home: Home) -> Wallet:
    """The home's wallet, where GLOBALS says it is.  Raises ParameterError."""
    found = load_globals(home.globals)
    return Wallet(home, found.wallet_location, found.master_key)
