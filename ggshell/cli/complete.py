"""Completion at the prompt: keywords that the grammar expects at the cursor, and existing names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from ggshell.cli.config import FORMATS
from ggshell.cli.session import Session
from ggshell.errors import GgsError
from ggshell.home.checkpoint import GroupKind
from ggshell.language.completion import expected, partial_word
from ggshell.language.grammar import COMMANDS, LOGDUMP
from ggshell.language.unsupported import lacks

_NEW = ("ADD", "CREATE")
_GROUP_WORDS = {str(kind): kind for kind in GroupKind}
MOST_TABLES = 2000
REMOTE_SECONDS = 5.0
_OF_EVERY_HOME = ("group_name", "path_name", "report", "parameter_name", "parameter", "format_name", "rest", "text")
"""The placeholders whose names are known in a connected shell too."""
_COLLECTIONS = {GroupKind.EXTRACT: "/extracts", GroupKind.REPLICAT: "/replicats", GroupKind.PATH: "/sources"}


class LiveNames:
    """Names for completion. Tables are read from the database once per login; newer tables must be typed in full."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tables: tuple[object, list[str]] = (None, [])
        self._remote: tuple[object, float, list[tuple[str, GroupKind]]] = (None, 0.0, [])
        self._sources: dict[str, Callable[[list[str]], list[str]]] = {
            "group_name": self._groups,
            "path_name": lambda _: self._of_kinds({kind for kind in GroupKind if kind.is_path}),
            "report": self._groups,
            "trail": self._trails,
            "trail_location": self._trails,
            "table": lambda _: self._table_names(),
            "source_table": lambda _: self._table_names(),
            "target_table": lambda _: self._table_names(),
            "checkpoint_table": lambda _: self._table_names(),
            "alias": lambda _: self._aliases(),
            "source": self._ends,
            "target": self._ends,
            "domain": lambda _: self._domains(),
            "file": self._files,
            "parameter_name": lambda _: _parameters(),
            "parameter": lambda _: _parameters(),
            "format_name": lambda _: [name.upper() for name in FORMATS],
        }

    def of(self, slot: str, typed: list[str]) -> list[str]:
        """The names that fit a placeholder after the words typed so far; none if they cannot be read."""
        source = self._sources.get(slot)
        if self._session.is_client and slot not in _OF_EVERY_HOME:
            source = None
        if slot in ("rest", "text") and typed and typed[0].upper() == "HELP":
            source = _topics
        try:
            return source(typed) if source is not None else []
        except (GgsError, OSError):
            return []  # completion is silent; the statement itself will report the error

    def _remote_groups(self) -> list[tuple[str, GroupKind]]:
        """The groups of the home that the shell is connected to, asked for at most every few seconds."""
        remote, now = self._session.remote, self._session.clock.steady()
        if remote is None:
            return []
        if self._remote[0] is not remote or now >= self._remote[1]:
            found = [(name, kind) for kind, path in _COLLECTIONS.items() for name in remote.names(path)]
            self._remote = (remote, now + REMOTE_SECONDS, found)
        return self._remote[2]

    def _groups(self, typed: list[str]) -> list[str]:
        words = [word.upper() for word in typed]
        if words[0] in _NEW and words[-1] in _GROUP_WORDS and len(words) == 2:
            return []
        last = next((word for word in reversed(words) if word in _GROUP_WORDS), "")
        return self._of_kinds({_GROUP_WORDS[last]} if last else set(GroupKind))

    def _of_kinds(self, kinds: set[GroupKind]) -> list[str]:
        found = self._remote_groups() if self._session.is_client else self._session.home.group_names()
        return [name.lower() for name, kind in found if kind in kinds]

    def _trails(self, typed: list[str]) -> list[str]:
        """The trails of this machine; after RMTTRAIL, those of other homes too."""
        found: dict[str, None] = {}
        remote = "RMTTRAIL" in (word.upper() for word in typed)
        for entry in self._session.home.groups():
            if entry.checkpoint is not None:
                read = entry.checkpoint.read.trail
                written = entry.checkpoint.write if remote else entry.checkpoint.written_here
                found |= dict.fromkeys([*([read] if read else []), *(each.trail for each in written)])
        return list(found)

    def _table_names(self) -> list[str]:
        session = self._session
        if session.login is None:
            return []
        if self._tables[0] != session.login:
            names = session.login.tables()[:MOST_TABLES]
            self._tables = (session.login, [str(name) for name in names])
        return self._tables[1]

    def _aliases(self) -> list[str]:
        from ggshell.home.credential import CredentialStore

        return [entry.alias for entry in CredentialStore(self._session.home).entries()]

    def _ends(self, typed: list[str]) -> list[str]:
        """The arguments of COMPARE, LOAD and LAG REPORT: aliases, and for LAG REPORT also trails and the lag archive."""
        if typed[0].upper() not in ("COMPARE", "LOAD", "LAG"):
            return []
        archive = ["./dirlag"] if (self._session.home.root / "dirlag").is_dir() else []
        return [*self._aliases(), *([*self._trails(typed), *archive] if typed[0].upper() == "LAG" else [])]

    def _domains(self) -> list[str]:
        from ggshell.home.credential import CredentialStore

        return list(dict.fromkeys(entry.domain for entry in CredentialStore(self._session.home).entries()))

    def _files(self, typed: list[str]) -> list[str]:
        """Obey files for OBEY; for EDIT and VIEW PARAMS groups and other parameter files."""
        root = self._session.home.root
        if typed[0].upper() == "OBEY":
            return sorted(path.relative_to(root).as_posix() for path in root.glob("**/*.oby"))
        own = [path.stem.lower() for path in sorted((root / "dirprm").glob("*.prm"))]
        return list(
            dict.fromkeys([*self._of_kinds({kind for kind in GroupKind if not kind.is_path}), *own, "mgr", "GLOBALS"])
        )


def _parameters() -> list[str]:
    from ggshell.language import pages

    return [stem.upper() for stem in pages.index("parameters")]


def _topics(typed: list[str]) -> list[str]:
    from ggshell.cli.manual import LISTS
    from ggshell.language import pages
    from ggshell.language.help import KINDS

    wanted = "_".join(typed[1:]).lower()
    stems = (stem for kind in KINDS for stem in pages.index(kind))
    rest = (stem.removeprefix(f"{wanted}_") for stem in stems if not wanted or stem.startswith(f"{wanted}_"))
    functions = [] if wanted else [*LISTS, *(f"@{stem.upper()}" for stem in pages.index("functions"))]
    return list(dict.fromkeys([*(stem.split("_")[0].upper() for stem in rest), *functions]))


_NOT_SUPPORTED = "not supported"
_ABOUT = {"rest": "page", "text": "page"}
_SECRETS = ("password", "access_token")


class Candidate(NamedTuple):
    """A completion: the text, a description, and the number of typed characters that it replaces."""

    text: str
    about: str
    replaces: int


def statement_before(text: str) -> str:
    """The last statement in a text."""
    flat = re.sub(r"&[ \t]*\n", "  ", text)
    last = re.split(r"[;\n]", flat)[-1]
    watched = re.match(r"\s*WATCH\s+\d+\s+(.*)", last, re.IGNORECASE | re.DOTALL)
    return (watched[1] if watched else last).lstrip()


def candidates(text: str, names: LiveNames) -> Iterator[Candidate]:
    """Return the completions at the end of a text: keywords in the case that the user types, then names."""
    statement = statement_before(text)
    partial = partial_word(statement, len(statement))
    typed = statement[: len(statement) - len(partial)].replace(",", " ").split()
    lower = (partial or "".join(typed)).islower()
    for each in expected(statement, len(statement)):
        if each.word and each.word.startswith(partial.upper()) and each.word[0].isalpha():
            about = _NOT_SUPPORTED if lacks(COMMANDS, each.page, each.word) else ""
            yield Candidate(each.word.lower() if lower else each.word, about, len(partial))
        elif each.slot and each.slot not in _SECRETS:
            for name in names.of(each.slot, typed):
                if name.lower().startswith(partial.lower()):
                    yield Candidate(name, _ABOUT.get(each.slot, each.slot.replace("_", " ")), len(partial))


class DumpCompleter(Completer):
    """Completes the keywords that Logdump's grammar expects at the cursor."""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor.split(";")[-1].lstrip()
        partial = partial_word(text, len(text))
        lower = (partial or text).islower()
        words = {each.word for each in expected(text, len(text), LOGDUMP) if each.word[:1].isalpha()}
        for word in sorted(words):
            if word.startswith(partial.upper()):
                yield Completion(word.lower() if lower else word, -len(partial))


class StatementCompleter(Completer):
    """Completes statements at the prompt."""

    def __init__(self, names: LiveNames) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        seen: set[str] = set()
        try:
            for each in candidates(document.text_before_cursor, self._names):
                if each.text not in seen:
                    seen.add(each.text)
                    yield Completion(each.text, -each.replaces, display_meta=each.about)
        except GgsError:
            return
