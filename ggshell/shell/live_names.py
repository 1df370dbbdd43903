"""The names that could stand for a placeholder now: groups, trails, tables of the login, aliases, files, pages."""

from __future__ import annotations

from collections.abc import Callable

from ggshell.errors import GgsError
from ggshell.shell.options import FORMATS
from ggshell.shell.session import Session
from ggshell.store.checkpoint import GroupType

_NEW = ("ADD", "CREATE")
_GROUP_WORDS = {"EXTRACT": GroupType.EXTRACT, "REPLICAT": GroupType.REPLICAT, "DISTPATH": GroupType.PATH}
MOST_TABLES = 2000


class LiveNames:
    """Names for completion.  Tables are asked of the database once a login: what is new since then is typed in full."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tables: tuple[object, list[str]] = (None, [])
        self._sources: dict[str, Callable[[list[str]], list[str]]] = {
            "group_name": self._groups,
            "path_name": lambda _: self._of_kinds({GroupType.PATH}),
            "report": self._groups,
            "trail": lambda _: self._trails(),
            "table": lambda _: self._table_names(),
            "source_table": lambda _: self._table_names(),
            "target_table": lambda _: self._table_names(),
            "checkpoint_table": lambda _: self._table_names(),
            "alias": lambda _: self._aliases(),
            "domain": lambda _: self._domains(),
            "file": self._files,
            "parameter_name": lambda _: _parameters(),
            "parameter": lambda _: _parameters(),
            "format_name": lambda _: [name.upper() for name in FORMATS],
        }

    def of(self, slot: str, typed: list[str]) -> list[str]:
        """The names for a placeholder behind the words typed so far; none where they cannot be read."""
        source = self._sources.get(slot)
        if slot == "rest" and typed and typed[0].upper() == "HELP":
            source = _topics
        try:
            return source(typed) if source is not None else []
        except (GgsError, OSError):
            return []  # completion is silent; the statement itself will say what is wrong

    def _groups(self, typed: list[str]) -> list[str]:
        words = [word.upper() for word in typed]
        if words[0] in _NEW and words[-1] in _GROUP_WORDS and len(words) == 2:
            return []
        last = next((word for word in reversed(words) if word in _GROUP_WORDS), "")
        return self._of_kinds({_GROUP_WORDS[last]} if last else set(GroupType))

    def _of_kinds(self, kinds: set[GroupType]) -> list[str]:
        return [name.lower() for name, kind in self._session.home.group_names() if kind in kinds]

    def _trails(self) -> list[str]:
        found: dict[str, None] = {}
        for entry in self._session.home.groups():
            if entry.checkpoint is not None:
                read = entry.checkpoint.read.trail
                found |= dict.fromkeys([*([read] if read else []), *(each.trail for each in entry.checkpoint.write)])
        return list(found)

    def _table_names(self) -> list[str]:
        session = self._session
        if session.login is None:
            return []
        if self._tables[0] != session.login:
            from ggshell.databases.postgres import describe

            names = describe.resolve(session.connection(), "*.*")[:MOST_TABLES]
            self._tables = (session.login, [str(name) for name in names])
        return self._tables[1]

    def _aliases(self) -> list[str]:
        from ggshell.store.credential import CredentialStore

        return [entry.alias for entry in CredentialStore(self._session.home).entries()]

    def _domains(self) -> list[str]:
        from ggshell.store.credential import CredentialStore

        return list(dict.fromkeys(entry.domain for entry in CredentialStore(self._session.home).entries()))

    def _files(self, typed: list[str]) -> list[str]:
        """Obey files; for EDIT and VIEW PARAMS the groups and the files that have none."""
        root = self._session.home.root
        if typed[0].upper() == "OBEY":
            return sorted(path.relative_to(root).as_posix() for path in root.glob("**/*.oby"))
        own = [path.stem.lower() for path in sorted((root / "dirprm").glob("*.prm"))]
        return list(dict.fromkeys([*self._of_kinds(set(GroupType) - {GroupType.PATH}), *own, "mgr", "GLOBALS"]))


def _parameters() -> list[str]:
    from ggshell.syntax import pages

    return [stem.upper() for stem in pages.index("parameters")]


def _topics(typed: list[str]) -> list[str]:
    from ggshell.syntax import pages
    from ggshell.syntax.help import KINDS

    wanted = "_".join(typed[1:]).lower()
    stems = (stem for kind in KINDS for stem in pages.index(kind))
    rest = (stem.removeprefix(f"{wanted}_") for stem in stems if not wanted or stem.startswith(f"{wanted}_"))
    return list(dict.fromkeys(stem.split("_")[0].upper() for stem in rest))
