"""The aliases of the demo's servers in a home's credential store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ggshell.demo.servers import ADMIN_PASSWORD


def store_logins(root: Path, logins: Mapping[str, str]) -> None:
    """Add the replication role's logins, by alias, to the credential store of a home; known aliases are replaced."""
    from ggshell.home.credential import CredentialStore
    from ggshell.home.home import Home

    home = Home(root)
    home.ensure()
    store = CredentialStore(home)
    known = {entry.alias for entry in store.entries()} if store.exists else set()
    for alias, login in logins.items():
        store.add(alias, login, ADMIN_PASSWORD, replace=alias in known)
