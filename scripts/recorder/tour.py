"""A tour in a terminal, for README: two databases, two homes, an Extract, a path, a Replicat, heartbeats, queries."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benches.ground import Failed, wait_until

from ggshell.clock import SystemClock
from ggshell.demo.cli import store_aliases
from ggshell.demo.processes import end_processes
from ggshell.demo.servers import open_servers
from ggshell.home.certificate import read_certificate
from ggshell.home.home import Home
from ggshell.network.proof import home_key
from recorder.screen import Recording
from recorder.terminal import Terminal

PORT = 7811
"""The port of the target home's service."""
GLOBALS = "GGSCHEMA ggadmin\nCHECKPOINTTABLE ggadmin.ggs_checkpoint\n"
FILES = {
    "source/dirprm/ext1.prm": "EXTRACT ext1\nUSERIDALIAS north\nEXTTRAIL ./dirdat/ea\nTABLE shop.*;\n",
    "source/GLOBALS": GLOBALS,
    "source/prepare.oby": f"""\
ADD PEER target, ADDRESS 127.0.0.1:{PORT}, FINGERPRINT {{target}}
DBLOGIN USERIDALIAS north
ADD TRANDATA shop.*
ADD HEARTBEATTABLE, FREQUENCY 1
""",
    "target/dirprm/rep1.prm": "REPLICAT rep1\nUSERIDALIAS south\nMAP shop.*, TARGET shop.*;\n",
    "target/dirprm/service.prm": f"PORT {PORT}\n",
    "target/GLOBALS": GLOBALS,
    "target/prepare.oby": """\
START MANAGER
START SERVICE
ADD PEER source, FINGERPRINT {source}
DBLOGIN USERIDALIAS south
ADD HEARTBEATTABLE, TARGETONLY
ADD CHECKPOINTTABLE ggadmin.ggs_checkpoint
""",
}
SYSTEM_PROMPT = r"\$ "
SHELL_PROMPT = r"GGSCI \(.*\) \d+> "


class Step(NamedTuple):
    """A line to type. ``rest``: seconds to read the answer."""

    text: str
    rest: float = 1.0
    prompt: str = SHELL_PROMPT
    when: tuple[str, str] | None = None
    """A statement, and what it must report in the target home before the line is typed."""


STEPS = (
    Step("ggshell demo up --copy | grep -o '^[a-z]*: running'", 0.7, SYSTEM_PROMPT),
    Step("ggshell --home ../target ../target/prepare.oby > target.log   # START SERVICE, ADD PEER", 0.3, SYSTEM_PROMPT),
    Step("ggshell prepare.oby > source.log   # ADD PEER, ADD TRANDATA, ADD HEARTBEATTABLE", 0.3, SYSTEM_PROMPT),
    Step("ggshell --auto-manager", 0.4),
    Step("VIEW PARAMS ext1"),
    Step("DBLOGIN USERIDALIAS north", 0.5),
    Step("REGISTER EXTRACT ext1", 0.5),
    Step("ADD EXTRACT ext1, TRANLOG, BEGIN NOW", 0.5),
    Step("ADD EXTTRAIL ./dirdat/ea, EXTRACT ext1", 0.5),
    Step(f"ADD DISTPATH dp1 SOURCE ./dirdat/ea TARGET wss://127.0.0.1:{PORT}/services/v2/targets?trail=ea", 1.0),
    Step("START EXTRACT ext1", 0.3),
    Step("START DISTPATH dp1", 0.5),
    Step("INFO ALL", 1.0),
    Step("EXIT", 0.3, SYSTEM_PROMPT),
    Step("ggshell --home ../target", 0.4),
    Step("ADD REPLICAT rep1, EXTTRAIL ./dirdat/ea", 0.5),
    Step("START REPLICAT rep1", 0.5),
    Step("SHELL sh -c 'ggshell demo load --rate 200 --seconds 5'", 0.6, when=("INFO REPLICAT rep1", "RUNNING")),
    Step("STATS REPLICAT rep1, TOTAL, TABLE shop.orders", 1.5, when=("LAG REPLICAT rep1", "At EOF")),
    Step("DBLOGIN USERIDALIAS south", 0.2),
    Step("LAG HEARTBEAT", 1.5),
    Step("TRAIL COUNT FROM ./dirdat/ea, BY OP", 1.5),
    Step("COMPARE north TO south, TABLE shop.*", 0.0),
)


def play() -> tuple[Recording, list[str]]:
    """Run the tour; its output with times, and the words of this machine that the output must not contain."""
    with _homes() as home:
        environment = _environment(home)
        terminal = Terminal(["bash", "--noprofile", "--norc"], environment, home)
        try:
            terminal.wait(SYSTEM_PROMPT)
            terminal.rest(0.5)
            for step in STEPS:
                if step.when:
                    statement, report = step.when
                    reported = partial(_reports, statement, report, environment, home.with_name("target"))
                    wait_until(f"{statement} reports {report}", reported, seconds=60, every=0.2)
                terminal.pause()
                terminal.type(step.text)
                terminal.wait(step.prompt)
                terminal.rest(step.rest)
        except (Failed, TimeoutError) as error:
            raise Failed(f"{error}\n{terminal.text()}") from error
        finally:
            terminal.close()
            for each in (home, home.with_name("target")):
                end_processes(each)
            _ggshell(["demo", "down"], environment, home)
        return terminal.record, [str(home.parent), os.uname().nodename]


@contextmanager
def _homes() -> Iterator[Path]:
    """The source home, next to the target home, each with its files."""
    folder = Path(tempfile.mkdtemp(prefix="ggshell-tour-"))
    source, target = folder / "source", folder / "target"
    try:
        for home in (source, target):
            Home(home).ensure()
        store_aliases(open_servers(source), target)  # also north, for COMPARE
        keys = {home.name: home_key(Home(home), SystemClock()).certificate for home in (source, target)}
        fingerprints = {name: read_certificate(path).fingerprint for name, path in keys.items()}
        for name, text in FILES.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text.format(**fingerprints))
        yield source
    finally:
        shutil.rmtree(folder)


def _environment(home: Path) -> dict[str, str]:
    """Only what the tour needs: no setting of this machine changes the picture."""
    return {
        "GGSHELL_HOME": str(home),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PS1": "$ ",
        "PYTHONPATH": str(Path(__file__).parent / "neutral"),
        "TERM": "xterm-256color",
        "TMPDIR": tempfile.gettempdir(),
    }


def _ggshell(arguments: list[str], environment: dict[str, str], home: Path) -> str:
    command = [str(Path(sys.executable).with_name("ggshell")), *arguments]
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False).stdout


def _reports(statement: str, report: str, environment: dict[str, str], home: Path) -> bool:
    """Whether a statement reports something in a home."""
    return report in _ggshell(["--home", str(home), "-c", statement], environment, home)
