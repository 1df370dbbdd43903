"""Entry point of the service: ``python -m ggshell.service service --home DIR``."""

from __future__ import annotations

import importlib.util
import sys

from ggshell.errors import ProcessError
from ggshell.groups.__main__ import run_as, without_collection
from ggshell.home.home import Home

_LIBRARIES = ("starlette", "uvicorn", "msgspec", "prometheus_client")


def main(arguments: list[str]) -> int:
    """Run the service until it ends; return its exit code."""
    return run_as(arguments, _run)


def _run(kind: str, home: Home, group: str) -> int:
    missing = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise ProcessError(
            f"the service requires {', '.join(missing)}",
            code="GGS-00913",
            hint="pip install -e '.[service]' in the clone of ggshell",
        )
    with without_collection():
        from ggshell.service import process
    return process.run(home)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
