"""``python -m walking.traced RESULT shell|process|recovery ARGUMENT...``: the shell, or a group's process, under a tracer.

The shell's work is divided by statements, a process's by the moments at which it waits; of ``recovery``, a process too, only
Bounded Recovery's checkpoints are followed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from walking.trace import Tracer, traced_run

STATEMENT = ("cli/execute.py", "execute")
TURN = ("groups/runner.py", "wait")
RECOVERY = ("groups/bounded_recovery.py", "_checkpoint")


def main() -> int:
    result, kind, arguments = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    if kind == "shell":
        from ggshell.cli.main import main as shell

        sys.argv = ["ggshell", *arguments]
        return traced_run(Tracer(STATEMENT), lambda: shell(arguments), result)
    from ggshell.groups.__main__ import main as process

    tracer = Tracer(within=RECOVERY) if kind == "recovery" else Tracer(TURN)
    return traced_run(tracer, lambda: process(arguments), result)


if __name__ == "__main__":
    sys.exit(main())
