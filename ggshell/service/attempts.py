"""Failed attempts to sign in: guessing is slow, but an attacker cannot lock a user out for long.

A user at an address waits after some failures, for a few seconds at most. A wrong password that is sent again is
refused without a check and does not count, so a program with an old password does not lock its user out. An address
that tries many user names is delayed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, NamedTuple, TypeVar

from ggshell.clock import Clock
from ggshell.errors import HttpError

FREE_FAILURES: Final = 5
LONGEST_WAIT_SECONDS: Final = 8.0
FREE_ADDRESS_FAILURES: Final = 20
"""How many failures of an address, for any users, are not delayed."""
SPACE_SECONDS: Final = 0.5
"""The time between two checks for an address with more failures."""
LONGEST_DELAY_SECONDS: Final = 4.0
_FORGOTTEN_SECONDS: Final = 600.0
_MOST: Final = 100_000
_K = TypeVar("_K")
_V = TypeVar("_V")


class _Failures(NamedTuple):
    """A number of failures, and the monotonic time from which the next attempt is accepted."""

    number: int
    next_allowed: float


class Attempts:
    """The failed attempts of all clients. Any thread can use it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._users: OrderedDict[tuple[str, str], _Failures] = OrderedDict()
        self._addresses: OrderedDict[str, _Failures] = OrderedDict()
        self._wrong: OrderedDict[bytes, None] = OrderedDict()

    def is_wrong(self, digest: bytes) -> bool:
        """Whether a user name and password were refused already."""
        with self._lock:
            return digest in self._wrong

    def forget_passwords(self) -> None:
        """The users have changed: a password that was wrong may now be correct."""
        with self._lock:
            self._wrong.clear()

    def require_patience(self, name: str, client: str) -> None:
        """Raise HttpError 429 while a user at an address must wait."""
        with self._lock:
            failed = self._users.get((name, client))
            left = failed.next_allowed - self._clock.steady() if failed is not None else 0.0
        if left > 0:
            raise _refusal(left)

    def delay(self, client: str) -> float:
        """Return how many seconds the next check for an address must wait. Raises HttpError 429 if many wait already."""
        with self._lock:
            failed, now = self._addresses.get(client), self._clock.steady()
            if failed is None or failed.number < FREE_ADDRESS_FAILURES:
                return 0.0
            when = max(now, failed.next_allowed)
            if when - now <= LONGEST_DELAY_SECONDS:
                self._addresses[client] = _Failures(failed.number, when + SPACE_SECONDS)
                return when - now
        raise _refusal(LONGEST_DELAY_SECONDS)

    def failed(self, name: str, client: str, digest: bytes | None) -> None:
        """Count a failure. ``digest``: of the user name and the password if it is certain that they are wrong."""
        with self._lock:
            now = self._clock.steady()
            number = self._users.get((name, client), _Failures(0, 0)).number + 1
            wait = 0.0 if number < FREE_FAILURES else min(2.0 ** (number - FREE_FAILURES + 1), LONGEST_WAIT_SECONDS)
            _put(self._users, (name, client), _Failures(number, now + wait))
            before = self._addresses.get(client, _Failures(0, now))
            if now > before.next_allowed + _FORGOTTEN_SECONDS:
                before = _Failures(0, now)
            _put(self._addresses, client, _Failures(before.number + 1, max(before.next_allowed, now)))
            if digest is not None:
                _put(self._wrong, digest, None)

    def succeeded(self, name: str, client: str) -> None:
        """Forget the failures of a user at an address, but not those of the address."""
        with self._lock:
            self._users.pop((name, client), None)


def _put(found: OrderedDict[_K, _V], key: _K, value: _V) -> None:
    """Add a record as the newest one; the oldest is dropped if there are too many."""
    found[key] = value
    found.move_to_end(key)
    if len(found) > _MOST:
        found.popitem(last=False)


def _refusal(left: float) -> HttpError:
    seconds = max(1, round(left))
    text = f"too many failed attempts to sign in: wait {seconds} seconds"
    return HttpError(429, text, headers={"Retry-After": str(seconds)})
