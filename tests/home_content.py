"""What a home holds, without times and random values: to compare two homes, or one home before and after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ggshell.groups.home_wallet import wallet_of
from ggshell.home.credential import CredentialStore
from ggshell.home.home import Home
from ggshell.home.users import Users

FOLDERS = ("dirchk", "dirprm", "dirdat", "dirdb/groups", "dirwlt", "dircrd")


def home_content(root: Path, *, documents: bool = False) -> dict[str, Any]:
    """The files by folder, the groups, the logins with their passwords, the keys and the users.

    ``documents``: also the files of what only the API keeps.
    """
    home = Home(root)
    names = {
        folder: sorted(path.relative_to(root).as_posix() for path in (root / folder).rglob("*") if path.is_file())
        for folder in (*FOLDERS, *(("dirdb/service",) if documents else ()))
    }
    groups = [entry.checkpoint for entry in home.groups()]
    zero = {"created": 0, "updated": 0, "begin_time": 0}
    plain = [
        group._replace(**zero, options=group.options._replace(row_keys="")) for group in groups if group is not None
    ]
    store = CredentialStore(home)
    logins = [(*entry, store.resolve(entry.alias, entry.domain)) for entry in store.entries()] if store.exists else []
    wallet = wallet_of(home)
    keys = [(each.number, each.status) for each in wallet.versions()] if wallet.exists else []
    return {
        "files": names,
        "groups": plain,
        "logins": logins,
        "keys": keys,
        "users": [user._replace(identity="") for user in Users(home).all()],
    }
