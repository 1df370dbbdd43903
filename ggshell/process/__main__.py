"""``python -m ggshell.process extract|path|replicat|manager --home DIR [--group NAME]``: the entry of every process."""

from __future__ import annotations

import sys
from pathlib import Path

from ggshell.errors import GgsError
from ggshell.store.home import Home


def main(arguments: list[str]) -> int:
    """Run one process until it ends; its exit code."""
    kind, *options = arguments
    given = dict(zip(options[::2], options[1::2], strict=True))
    home = Home(Path(given["--home"]))
    try:
        if kind == "manager":
            from ggshell.process import manager

            return manager.run(home)
        if kind == "extract":
            from ggshell.process import extract

            return extract.run(home, given["--group"])
        if kind == "path":
            from ggshell.process import path

            return path.run(home, given["--group"])
        from ggshell.process import replicat

        return replicat.run(home, given["--group"])
    except GgsError as error:
        sys.stderr.write(f"{error.code}  {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
