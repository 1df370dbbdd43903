"""``startup``: ``ggshell -c "INFO ALL"`` beside ``litecli bench.db -e "select 1"``."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benches.figures import Figure, alternate, less_is_better
from benches.ground import Failed, ggshell


def run(rounds: int, quick: bool) -> list[Figure]:
    litecli = Path(sys.executable).with_name("litecli")
    if not litecli.exists():
        raise Failed("litecli, the peer, is not installed in this environment: pip install '.[bench]'")
    with tempfile.TemporaryDirectory(prefix="ggshell-bench-") as folder:
        environment = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder}

        def seconds(*command: str) -> float:
            began = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, env=environment)
            return time.perf_counter() - began

        def ours(_: int) -> float:
            return 1000 * seconds(ggshell(), "--home", folder, "-c", "INFO ALL")

        def peer(_: int) -> float:
            return 1000 * seconds(str(litecli), "bench.db", "-e", "select 1")

        ours(0), peer(0)  # compile and write first configurations
        mine, theirs = alternate(max(rounds, 5 if quick else 15), ours, peer)
    return [
        less_is_better("startup", 'ggshell -c "INFO ALL"', "ms", mine, theirs, 'litecli bench.db -e "select 1"', 2.0)
    ]
