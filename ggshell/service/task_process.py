"""The process of a command with a timeout: ``python -m ggshell.service.task_process DIR``.

It reads one JSON line (``command``, ``owner``) and prints one (``output``, or ``code`` and ``message``). It ends when its
standard input does: no command outlives the service. A command in its own process can be ended at any time.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from ggshell.clock import SystemClock
from ggshell.errors import GgsError
from ggshell.files import read_json
from ggshell.home.home import Home
from ggshell.parameters.loading import load_service


def main(folder: str) -> int:
    """Carry out the command; return the exit code."""
    order = read_json(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_service, daemon=True).start()
    try:
        answer: dict[str, Any] = {"output": _carried_out(Home(Path(folder)), order)}
    except GgsError as error:
        answer = {"code": error.code, "message": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)  # threads of the command must not delay the end


def _carried_out(home: Home, order: dict[str, Any]) -> str:
    from ggshell.service.state import ServiceState
    from ggshell.service.task_commands import carried_out

    state = ServiceState(home, load_service(home.parameters("service")), SystemClock())
    return carried_out(state, order["command"], str(order["owner"]))


def _end_with_service() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
