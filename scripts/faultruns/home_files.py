"""Every kind of file in a home, what can become of it, and which remedy a message names: the table of the run ``files``.

A home is damaged while its groups stand still and rows wait in the source and in every trail. After START either all of
them arrive, once, or a group refuses with a message that one of ``REMEDIES`` knows, and following that makes all of them
arrive, once.
"""

from __future__ import annotations

import enum
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

Find = Callable[[Path], Path]


class Moment(enum.Enum):
    """When a file is damaged."""

    STOPPED = "while every group of it stands still"
    UNREAD = "while its reader is within it"
    READ = "while its reader waits at its end"
    WRITTEN = "while it is written and read"


class HomeFile(NamedTuple):
    """A kind of file. ``find`` names the present one in a home; ``killed``: the group that is killed, not stopped, so that
    the file is left."""

    name: str
    find: Find
    killed: str = ""
    alone: bool = False
    """The copy that is kept next to it is removed as well."""
    written: bool = False
    """A text that a person writes: a bit of it flipped, or an older copy, is another text and not damage."""
    empty: bool = False
    """It never has a byte: nothing in it can be damaged."""
    moment: Moment = Moment.STOPPED
    trail: str = ""
    """The trail that it is of, where it is damaged while it is read."""


def _fixed(path: str) -> Find:
    return lambda home: home / path


def _trail(prefix: str, back: int) -> Find:
    """A trail's file, counted from its newest; the first where it has fewer."""

    def find(home: Path) -> Path:
        found = sorted((home / "dirdat").glob(f"{prefix}[0-9]*"))
        return found[max(0, len(found) - 1 - back)]

    return find


def _newest(kind: str) -> Find:
    """The newest file of Bounded Recovery of a kind."""
    return lambda home: max((home / "BR").rglob(f"{kind}.*"))


FILES = (
    HomeFile("newest trail file", _trail("ea", 0)),
    HomeFile("older trail file", _trail("ea", 1)),
    HomeFile("delivered trail file", _trail("ea", 99)),
    HomeFile("newest file of the second trail", _trail("pa", 0)),
    HomeFile("older file of the second trail", _trail("pa", 1)),
    HomeFile("file of the path's trail", _trail("da", 0)),
    HomeFile("durable mark", _fixed("dirdat/.ea.durable")),
    HomeFile("durable mark of the second trail", _fixed("dirdat/.pa.durable")),
    HomeFile("checkpoint of Extract", _fixed("dirchk/EXT1.cpe")),
    HomeFile("checkpoint of the pump", _fixed("dirchk/PMP1.cpe")),
    HomeFile("durable mark of the path's trail", _fixed("dirdat/.da.durable")),
    HomeFile("checkpoint of the path", _fixed("dirchk/DP1.cpd")),
    HomeFile("only checkpoint of the path", _fixed("dirchk/DP1.cpd"), alone=True),
    HomeFile("process file of the path", _fixed("dirpcs/DP1.pcd"), killed="DP1.pcd"),
    HomeFile("checkpoint of Replicat", _fixed("dirchk/REP1.cpr")),
    HomeFile("only checkpoint of Extract", _fixed("dirchk/EXT1.cpe"), alone=True),
    HomeFile("only checkpoint of the pump", _fixed("dirchk/PMP1.cpe"), alone=True),
    HomeFile("only checkpoint of Replicat", _fixed("dirchk/REP1.cpr"), alone=True),
    HomeFile("previous checkpoint of Replicat", _fixed("dirchk/REP1.cpr.previous")),
    HomeFile("note of a group", _fixed("dirdb/groups/REP1.cpr")),
    HomeFile("process file of Extract", _fixed("dirpcs/EXT1.pce"), killed="EXT1.pce"),
    HomeFile("process file of Replicat", _fixed("dirpcs/REP1.pcr"), killed="REP1.pcr"),
    HomeFile("identity of the home", _fixed("dirdb/home.json")),
    HomeFile("credential store", _fixed("dircrd/credentials.ggs")),
    HomeFile("key of the credential store", _fixed("dircrd/credentials.key")),
    HomeFile("wallet", _fixed("dirwlt/cwallet.sso")),
    HomeFile("key of the wallet", _fixed("dirwlt/cwallet.key")),
    HomeFile("parameter file of Extract", _fixed("dirprm/ext1.prm"), written=True),
    HomeFile("parameter file of Replicat", _fixed("dirprm/rep1.prm"), written=True),
    HomeFile("report", _fixed("dirrpt/REP1.rpt")),
    HomeFile("output of Replicat", _fixed("dirrpt/REP1.out")),
    HomeFile("event log", _fixed("ggserr.log")),
    HomeFile("lock of the trail", _fixed("dirdat/.ea.lock"), empty=True),
    HomeFile("lock of Replicat", _fixed("dirpcs/.REP1.replicat.lock"), empty=True),
    HomeFile("lock of the credential store", _fixed("dirdb/.credentials.lock"), empty=True),
    HomeFile("lock of the wallet", _fixed("dirdb/.wallet.lock"), empty=True),
)

_LIVE_TRAILS = (("ea", "Extract"), ("pa", "the pump"), ("da", "the path"))
LIVE_FILES = (
    *(
        HomeFile(f"trail file of {writer} {moment.value}", _trail(trail, 0), moment=moment, trail=trail)
        for trail, writer in _LIVE_TRAILS
        for moment in (Moment.UNREAD, Moment.READ, Moment.WRITTEN)
    ),
    *(
        HomeFile(
            f"durable mark of {writer} {Moment.WRITTEN.value}",
            _fixed(f"dirdat/.{trail}.durable"),
            moment=Moment.WRITTEN,
            trail=trail,
        )
        for trail, writer in _LIVE_TRAILS
    ),
)
"""Newest trail files and marks, damaged while processes have them open: of Extract (a pump reads it), of a pump, of a path."""

REDO_FILES = (
    HomeFile("Bounded Recovery checkpoint", _newest("CP")),
    HomeFile("persisted object of Bounded Recovery", _newest("PO")),
)
"""What an Extract from redo has besides."""


PLACES = (
    (r"dirdat/\w\w\d{9}", "newest trail file"),
    (r"dirdat/\.\w\w\.durable", "durable mark"),
    (r"dirdat/\.\w\w\.lock", "lock of the trail"),
    (r"dirchk/\w+\.cpe", "checkpoint of Extract"),
    (r"dirchk/\w+\.cpd", "checkpoint of the path"),
    (r"dirchk/\w+\.cpr", "checkpoint of Replicat"),
    (r"dirchk/\w+\.cp[erd]\.previous", "previous checkpoint of Replicat"),
    (r"dirdb/groups/\w+\.cp[erd]", "note of a group"),
    (r"dirdb/home\.json", "identity of the home"),
    (r"dirpcs/\w+\.pce", "process file of Extract"),
    (r"dirpcs/\w+\.pcd", "process file of the path"),
    (r"dirpcs/\w+\.pcr", "process file of Replicat"),
    (r"dirpcs/\.\w+\.(extract|distpath|replicat)\.lock", "lock of Replicat"),
    (r"dircrd/credentials\.ggs", "credential store"),
    (r"dircrd/credentials\.key", "key of the credential store"),
    (r"dirdb/\.credentials\.lock", "lock of the credential store"),
    (r"dirwlt/cwallet\.sso", "wallet"),
    (r"dirwlt/cwallet\.key", "key of the wallet"),
    (r"dirdb/\.wallet\.lock", "lock of the wallet"),
    (r"dirprm/\w+\.prm|GLOBALS", "parameter file of Replicat"),
    (r"dirrpt/\w+\.rpt", "report"),
    (r"dirrpt/\w+\.out", "output of Replicat"),
    (r"ggserr\.log", "event log"),
    (r"BR/\w+/CP\.\w+\.\d+", "Bounded Recovery checkpoint"),
    (r"BR/\w+/PO\.\w+\.\d+\.\d+", "persisted object of Bounded Recovery"),
)
"""Which files of a home are of which kind: the row of the table that stands for them."""
OTHERS = (
    (r"dirlag/day=[\d-]+/\S+\.parquet", "no group reads the lag archive: tests/cli/test_lag_report.py"),
    (r"dirpcs/MGR\.pcm|dirpcs/\.manager\.lock|dirdb/\.home\.lock", "of Manager: tests/groups/test_process_manager.py"),
    (r"dirpcs/\S+\.sock", "a socket has no content"),
    (r"dirsql/\S+\.sql", "written for people to read; nothing reads it"),
    (r"dirtmp/\S+|dirrpt/\S+\.log", "of one process, which makes it again"),
)
"""Files without a row, and why."""


def kind_of(name: str) -> str:
    """The row, or the reason why there is none, of a file by its path in the home; empty for an unexpected file."""
    return next((kind for pattern, kind in (*PLACES, *OTHERS) if re.fullmatch(pattern, name)), "")


def clear(path: Path) -> None:
    """Nothing is left in a file's place."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _deleted(path: Path, _older: Path, _chance: random.Random) -> None:
    clear(path)


def _truncated(path: Path, _older: Path, _chance: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def _zeroed(path: Path, _older: Path, _chance: random.Random) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _flipped(path: Path, _older: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if data:
        first = chance.choice(
            (0, len(data) * 3 // 4)
        )  # half of the time near the end: of a trail, what was not read yet
        data[chance.randrange(first, len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def _replaced(path: Path, older: Path, chance: random.Random) -> None:
    """Written over, or renamed over, as programs for backups do: who has it open keeps the former one."""
    if older.is_file():
        copy = path if chance.random() < 0.5 else path.with_name(f"{path.name}.copy")
        shutil.copyfile(older, copy)
        copy.replace(path)


def _unreadable(path: Path, _older: Path, _chance: random.Random) -> None:
    """A folder in its place: root can read any file."""
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path, Path, random.Random], None]] = {
    "deleted": _deleted,
    "truncated": _truncated,
    "zeroed": _zeroed,
    "one bit flipped": _flipped,
    "an older copy": _replaced,
    "unreadable": _unreadable,
}


class Case(NamedTuple):
    """A kind of file, and what becomes of it."""

    file: HomeFile
    damage: str

    def __str__(self) -> str:
        return f"{self.file.name}, {self.damage}"


def cases() -> list[Case]:
    """The whole table."""
    return [Case(file, damage) for file in (*FILES, *LIVE_FILES) for damage in DAMAGES if _matters(file, damage)]


def _matters(file: HomeFile, damage: str) -> bool:
    if file.empty:
        return damage in ("deleted", "unreadable")
    return not (file.written and damage in ("one bit flipped", "an older copy"))


def redo_cases() -> list[Case]:
    """The table of an Extract from redo."""
    return [Case(file, damage) for file in REDO_FILES for damage in DAMAGES]


class Told(NamedTuple):
    """What a refused START said, everything in one text, and the file that was damaged with its good copy."""

    text: str
    path: Path
    backup: Path


class Hands(NamedTuple):
    """What an administrator does: statements, and the statements that added each group."""

    obey: Callable[..., str]
    add_again: Callable[[str], None]


def _restore(told: Told, _hands: Hands, _found: re.Match[str]) -> None:
    clear(told.path)
    shutil.copyfile(told.backup, told.path)


def _copy_previous(told: Told, _hands: Hands, found: re.Match[str]) -> None:
    path = Path(found[1]).with_name(found[2])
    clear(path)
    shutil.copyfile(found[1], path)


def _add_again(told: Told, hands: Hands, found: re.Match[str]) -> None:
    if told.path.is_dir():
        clear(told.path)
    hands.add_again(told.path.stem)


def _move_away(told: Told, _hands: Hands, _found: re.Match[str]) -> None:
    away = told.path.with_name(f"{told.path.name}.away")
    clear(away)
    told.path.rename(away)


def _take_away(told: Told, _hands: Hands, _found: re.Match[str]) -> None:
    clear(told.path)


Follow = Callable[[Told, Hands, "re.Match[str]"], None]
REMEDIES: tuple[tuple[str, Follow], ...] = (
    (r"restore the newest \S+", _restore),
    (r"copy (\S+\.previous) to (\S+) and start the group again", _copy_previous),
    (r"ADD (REPLICAT|EXTRACT|DISTPATH|the group)\b[^-]*? again", _add_again),
    (r"move \S+ away", _move_away),
    (r"\bremove it[,:]", _take_away),
    (r"[Rr]estore ", _restore),
    (
        r"dirprm/\w+\.prm",
        _restore,
    ),  # a text that a person wrote: the message names the file, and the line where it has one
)
"""What messages say is to be done, and how it is done; the first that is found is followed."""


NEAR = 600
"""So many characters around a remedy are its message."""


def remedies(told: Told) -> Iterator[tuple[re.Match[str], Follow]]:
    """Every remedy in a message that names the damaged file, or as a whole the folder that it is in."""
    own, folder = re.escape(told.path.name), re.escape(told.path.parent.name)
    named = re.compile(rf"{own}\b|\b{folder}\b(?!/)")
    for pattern, follow in REMEDIES:
        for found in re.finditer(pattern, told.text):
            if named.search(told.text, max(0, found.start() - NEAR), found.end() + NEAR):
                yield found, follow
