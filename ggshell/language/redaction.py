"""Remove secrets from everything that is shown or kept: history, echo, logs, reports, JSON, error messages.

In a statement that the manual understands, only what the manual declares as a password is hidden. In a statement that it
does not understand and that may contain a secret, only the words of the manual are shown, so a mistyped PASSWORD still
protects its value. In a parameter that is not understood, everything after the word where understanding ends is hidden. A
statement can itself be a password if the one before it ends where its password would stand (``suspect``).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from ggshell.errors import StatementError

if TYPE_CHECKING:
    from ggshell.language.statement import Span

MASK: Final = "*******"

_VALUE = r"(?:\"[^\"\n]*\"?|'[^'\n]*'?|[^\s,;]+)"
_TOKEN = re.compile(r"\"[^\"\n]*\"?|'[^'\n]*'?|[^\s,;()&=\"']+")
_WORD = re.compile(r"[A-Za-z_]+")
_MAY_HOLD = re.compile(r"pass|pw|pas+w|sec?ret|login|creden|user|token|://|@", re.IGNORECASE)
_URL = re.compile(r"([a-z][a-z0-9+.-]{0,40}://[^\s:/@]*:)[^\s]{1,256}(?=@)", re.IGNORECASE)
_SLASHED = re.compile(r"(?<![\w/.:@$#-])([\w.$#-]+[/:])([^\s/@,;]{1,256})(?=@)")
_SAID = r"(?!(?:authentication|is|was|for|of|in|that|which|and|or|file|supplied)\b)"
_ASSIGNED = re.compile(rf"(\b\w*?(?:passw(?!ords\b)\w*|pwd|pswd)\b\s*(?:[,=:]\s*)?){_SAID}{_VALUE}", re.IGNORECASE)
_LOGIN = re.compile(r"(?P<name>[^/:@]*)[/:](?P<secret>.*)", re.DOTALL)
_GUARDED: Final = (
    "PASSWORD",
    "USERID",
    "DBLOGIN",
    "MININGDBLOGIN",
    "CREDENTIALSTORE",
    "CONNECT",
    "ENCRYPT",
    "SOURCEDB",
    "TARGETDB",
    "ASMUSER",
    "ASMPASSWORD",
)
_PARTS: Final = ("PASS", "PWD", "PSW", "SECRET", "LOGIN", "CREDENTIAL", "USERID")
_PLAIN: Final = frozenset(
    {"USERIDALIAS", "NOUSERID", "TARGET", "PASSTHRU", "NOPASSTHRU", "PASSTHRUMESSAGES", "NOPASSTHRUMESSAGES"}
)
_SECRET_SLOTS: Final = ("password", "access_token", "token")
_LOGIN_SLOTS: Final = ("userid",)
_PARAMETERS: Final = "parameters"
_NAMES_TABLES = re.compile(r"\s*(?:(?:TABLE|MAP|SEQUENCE)(?:EXCLUDE)?\b|[^\sA-Z])", re.IGNORECASE)
"""Parameters that name tables (most lines of a file), and lines that do not begin with a name: macros."""
_ENDS_OPEN = re.compile(r"([A-Za-z_]+)[\s=:(,'\"]*$|[/:=(,]\s*$")
_TIME_OF_DAY = re.compile(r"\d{1,2}(?::\d{1,2}){1,2}(?:\.\d{1,9})?")
_PARTS_OF_TEXT = re.compile(r"[^\s\"',;()=&!]+")
_NAMES = {
    *(
        "USER",
        "USERID",
        "USERIDALIAS",
        "PASSWORD",
        "NOPASSWORD",
        "ALIAS",
        "DOMAIN",
        "DBLOGIN",
        "MININGDBLOGIN",
        "CONNECT",
    ),
    *("CREDENTIALSTORE", "CREDENTIALS", "ADD", "ALTER", "REPLACE", "DELETE", "INFO", "CREATE", "ENCRYPT", "SOURCEDB"),
    *(
        "TARGETDB",
        "SYSDBA",
        "SQLID",
        "SESSIONCHARSET",
        "ENCRYPTKEY",
        "DEFAULT",
        "AES128",
        "AES192",
        "AES256",
        "BLOWFISH",
    ),
    *(
        "TRANLOGOPTIONS",
        "ASMUSER",
        "ASMPASSWORD",
        "DBLOGREADER",
        "AS",
        "FROM",
        "TO",
        "EXTRACT",
        "REPLICAT",
        "TABLE",
        "MAP",
    ),
}


def masked(text: str) -> str:
    """A message without passwords: those in URLs and logins, and what follows PASSWORD in any similar spelling."""
    if not _MAY_HOLD.search(text):
        return text
    text = _SLASHED.sub(rf"\g<1>{MASK}", _URL.sub(rf"\g<1>{MASK}", text))
    return _ASSIGNED.sub(_masked_value, text)


def _masked_value(found: re.Match[str]) -> str:
    """What follows PASSWORD, masked unless it is the next keyword of a list, as in ``expected PASSWORD, DOMAIN``."""
    value = found[0][len(found[1]) :]
    return found[0] if found[1].rstrip().endswith(",") and value in _NAMES else f"{found[1]}{MASK}"


def redacted(text: str, kind: str = "commands", *, suspect: bool = False) -> str:
    """A statement with its secrets masked. ``kind`` selects the pages of the manual that apply."""
    return replaced(text, secret_spans(text, kind, suspect=suspect), lambda _: MASK)


def starred(text: str, kind: str = "commands", *, suspect: bool = False) -> str:
    """Like ``redacted``, with one star per character, so that columns do not move."""
    return replaced(text, secret_spans(text, kind, suspect=suspect), lambda secret: "*" * len(secret))


def replaced(text: str, spans: Iterable[Span], shown: Callable[[str], str]) -> str:
    """A text with each of its spans, given in order, replaced."""
    parts, place = [], 0
    for first, end in spans:
        parts += [text[place:first], shown(text[first:end])]
        place = end
    return "".join([*parts, text[place:]])


def without_secrets(message: str, statement: str, kind: str = "commands", *, suspect: bool = False) -> str:
    """A message about a statement, without the statement's secrets or parts of them."""
    spans = [*secret_spans(statement, kind, suspect=suspect), *_everywhere(statement)]
    words = {word.upper() for first, end in spans for word in _PARTS_OF_TEXT.findall(statement[first:end])}
    if words:
        backwards = sorted(word[::-1] for word in words)
        message = _PARTS_OF_TEXT.sub(lambda found: _unless_secret(found[0], backwards), message)
    return masked(message)


def _unless_secret(word: str, backwards: Sequence[str]) -> str:
    """A word of a message, masked if a secret ends with it: messages quote a word from the position of the error on."""
    bare = word.rstrip(".:?")
    for part in (word, bare):
        wanted = part.upper()[::-1]
        place = bisect_left(backwards, wanted) if wanted else len(backwards)
        if place < len(backwards) and backwards[place].startswith(wanted):
            return f"{MASK}{word[len(part) :]}"
    return word


def holds_password(text: str) -> bool:
    """Whether a text contains a URL with a password."""
    return _URL.search(text) is not None


def ends_open(text: str) -> bool:
    """Whether a statement ends where its password would stand, so that the next one can be that password."""
    text = text.rstrip("; \t")
    found = _ENDS_OPEN.search(text[-80:])
    if found is None or not may_hold_secret(text) or (found[1] and not _is_guarded(found[1].upper())):
        return False
    from ggshell.language import grammar

    try:
        spans = grammar.shape(text)
    except StatementError:
        return True
    return any(end == len(text) for name in (*_LOGIN_SLOTS, *_SECRET_SLOTS) for _, end in spans.get(name, ()))


def may_hold_secret(text: str) -> bool:
    """Whether a statement has a word that a password can follow, in any similar spelling, or a login with a password."""
    if "@" in text and (_URL.search(text) or _SLASHED.search(text)):  # both end before an @
        return True
    return any(map(_is_guarded, set(_WORD.findall(text.upper()))))


@cache
def _is_guarded(word: str) -> bool:
    if word in _PLAIN:
        return False
    if any(part in word for part in _PARTS) or word == "USER":
        return True
    return any(abs(len(word) - len(known)) <= 2 and _distance(word, known) <= _slips(known) for known in _GUARDED)


def _slips(known: str) -> int:
    """How many typing errors are tolerated in a word of this length."""
    return 1 if len(known) < 7 else 2 if len(known) < 12 else 3


def _distance(one: str, other: str) -> int:
    """The edit distance between two words: letters changed, added, left out, or swapped with their neighbor."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            best = min(row[j - 1] + 1, before[j] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                best = min(best, last[j - 2] + 1)
            row.append(best)
    return row[-1]


def secret_spans(text: str, kind: str = "commands", *, suspect: bool = False) -> list[Span]:
    """The positions of a statement's secrets, in order."""
    guarded = may_hold_secret(text)
    if not guarded and not suspect and (kind != _PARAMETERS or _NAMES_TABLES.match(text)):
        return []
    from ggshell.language import grammar

    try:
        spans = grammar.shape(text, kind)
    except StatementError as error:
        if suspect:
            return [match.span() for match in _TOKEN.finditer(text)]
        return _unknown_values(text) if guarded else _after(text, error.column - 1)
    return sorted(_merged([*_of_slots(text, spans), *_everywhere(text)]))


def _of_slots(text: str, spans: Mapping[str, Iterable[Span]]) -> list[Span]:
    """The values that an understood statement has for a password, and the passwords within its logins."""
    found = [span for name in _SECRET_SLOTS for span in spans.get(name, ())]
    for name in _LOGIN_SLOTS:
        for first, end in spans.get(name, ()):
            value = text[first:end]
            login = _LOGIN.fullmatch(value)
            if "://" in value or "=" in value or login is None or "@" in login["name"]:
                continue  # a URL or a connection string: ``_everywhere`` finds their passwords
            place = first + login.start("secret")
            at = value.rfind("@")
            found.append((place, first + at if at >= login.start("secret") else end))
    return found


def _everywhere(text: str) -> list[Span]:
    """Passwords in URLs, logins and connection strings, anywhere in the text."""
    found = [(match.end(1), match.end()) for match in _URL.finditer(text)]
    found += [match.span(2) for match in _SLASHED.finditer(text)]
    return found + [(match.end(1), match.end()) for match in _ASSIGNED.finditer(text)]


def _unknown_values(text: str) -> list[Span]:
    """Every word that is not in the manual's list of words."""
    return [match.span() for match in _TOKEN.finditer(text) if match[0].upper() not in _NAMES]


def unknown_values_of(text: str) -> list[Span]:
    """The same for a text that is not a statement. Empty if the text cannot contain a secret."""
    return _unknown_values(text) if may_hold_secret(text) else []


def _after(text: str, place: int) -> list[Span]:
    """Every word after the one at a position, except a time of day, which can end a date that is not valid."""
    words = (match for match in _TOKEN.finditer(text) if match.start() > place)
    return [match.span() for match in words if not _TIME_OF_DAY.fullmatch(match[0])]


def _merged(spans: Iterable[Span]) -> list[Span]:
    """The spans without overlaps."""
    found: list[Span] = []
    for first, end in sorted(spans):
        if found and first < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif end > first:
            found.append((first, end))
    return found
