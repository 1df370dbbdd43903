"""The keys of encrypted trails, wherever they are read: what goes to a task of Spark is where the wallet is, never a secret."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ggshell.store.home import Home
from ggshell.store.wallet import Wallet


@dataclass(frozen=True, slots=True)
class HomeKeys:
    """Keys for reading (``trail.sealing.Keys``): a home, and where its wallet is if not in ``dirwlt`` (WALLETLOCATION)."""

    home: str
    wallet: str = ""

    @classmethod
    def of(cls, home: Home, wallet: Wallet) -> HomeKeys:
        """As processes elsewhere, in other folders, find them."""
        return cls(str(home.root.absolute()), str(wallet.folder.absolute()))

    def __call__(self, name: str, version: int) -> bytes:
        """The secret of a key's version.  Raises NotFoundError, StoreError."""
        return Wallet(Home(Path(self.home)), self.wallet).secret(name, version)


def keys_from(home: str, wallet: str) -> HomeKeys | None:
    """The keys that options name; None without a home."""
    return HomeKeys(home, wallet) if home else None
