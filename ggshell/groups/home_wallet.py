"""The wallet of a home, at the location that GLOBALS specifies."""

from __future__ import annotations

from ggshell.home.home import Home
from ggshell.home.wallet import Wallet


def wallet_of(home: Home) -> Wallet:
    """Return the home's wallet, at the location that GLOBALS specifies. Raises ParameterError, StoreError."""
    if not home.globals.exists():
        return Wallet(home)
    from ggshell.parameters.loading import load_globals

    found = load_globals(home.globals)
    return Wallet(home, found.wallet_location, found.master_key)
