"""The status bar of the shell: login, number of groups by state, and the highest lag.

A separate thread computes it from checkpoint and process files, so that typing never waits for it.
"""

from __future__ import annotations

import threading

from ggshell.cli.groups import group_lag, view
from ggshell.cli.session import Session
from ggshell.durations import clock_text
from ggshell.errors import GgsError
from ggshell.home.process_file import ProcessState

EVERY_SECONDS = 2.0


def overview(session: Session) -> str:
    """Compute the current text of the status bar. Of a connected shell, it shows the connection and asks nothing there."""
    if session.is_client:
        remote = session.remote
        return f"{remote.title}  |  {remote.user}, {remote.role.lower()}" if remote is not None else "not connected"
    counts = dict.fromkeys(ProcessState, 0)
    worst: tuple[int, str] | None = None
    unknown: list[str] = []
    for entry in session.home.groups():
        try:
            found = view(session.home, entry)
            lag = group_lag(session.home, found, session.clock.now())
        except (GgsError, OSError):
            unknown.append(entry.group)
            continue
        counts[found.state] += 1
        if lag.error is not None:
            unknown.append(entry.group)
        elif lag.value is not None and (worst is None or lag.value > worst[0]):
            worst = (lag.value, entry.group)
    parts = [str(session.login) if session.login else "not logged in"]
    parts.append(", ".join(f"{number} {state.lower()}" for state, number in counts.items() if number) or "no groups")
    if worst is not None:
        parts.append(f"worst lag {clock_text(worst[0])} {worst[1] if worst[0] else ''}".rstrip())
    if unknown:
        parts.append(f"unclear: {', '.join(unknown)}")
    return "  |  ".join(parts)


class Watcher:
    """Updates the status bar in its own thread while the shell waits for a statement."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._text = ""
        self._ended = threading.Event()
        self._wanted = threading.Event()
        self._thread = threading.Thread(target=self._run, name="overview", daemon=True)
        self._thread.start()

    def text(self) -> str:
        """The text as of the last update."""
        return self._text

    def refresh(self) -> None:
        """Update now, since a statement may have changed something."""
        self._wanted.set()

    def close(self) -> None:
        self._ended.set()
        self._wanted.set()
        self._thread.join(timeout=EVERY_SECONDS)

    def _run(self) -> None:
        while not self._ended.is_set():
            self._wanted.clear()
            try:
                self._text = overview(self._session)
            except (GgsError, OSError) as error:
                self._text = str(error)
            self._wanted.wait(EVERY_SECONDS)
