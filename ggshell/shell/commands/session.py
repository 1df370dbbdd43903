"""The session itself: folders, history, settings, leaving, the operating system."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from ggshell import __version__
from ggshell.errors import StateError
from ggshell.shell.registry import command
from ggshell.shell.results import Result, message
from ggshell.shell.session import Session


@command("CREATE SUBDIRS")
def create_subdirs(session: Session) -> Result:
    made = session.home.create_subdirectories()
    lines = [f"Creating subdirectories under current directory {session.home.root}", ""]
    rows = [(label, str(path), "created" if new else "already exists") for label, path, new in made]
    lines += [f"{label:<31}{path}: {word}" for label, path, word in rows]
    return Result("\n".join(lines), ("label", "path", "status"), tuple(rows))


@command("HISTORY")
def history(session: Session, *, n: int = 10) -> Result:
    numbered = list(enumerate(session.history, 1))[-n:]
    lines = ["GGSCI Command History", "", *(f"{number:>5}: {text}" for number, text in numbered)]
    return Result("\n".join(lines), ("number", "statement"), tuple(numbered))


@command("ALLOWNESTED")
def allownested(session: Session) -> Result:
    session.allow_nested = True
    return Result()


@command("NOALLOWNESTED")
def noallownested(session: Session) -> Result:
    session.allow_nested = False
    return Result()


@command("SHELL", "HOST")
def shell(session: Session, *, rest: str) -> Result:
    if not session.allow_shell:
        raise StateError("commands of the operating system are off in this session (--no-shell)")
    done = subprocess.run(["/bin/sh", "-c", rest], capture_output=True, text=True, check=False)
    text = (done.stdout + done.stderr).rstrip("\n")
    return Result(text, ("output", "exit_code"), ((text, done.returncode),))


@command("SHOW")
def show(session: Session) -> Result:
    home = session.home.root
    lines = ["Parameter settings:", "", "SET SUBDIRS    ON", "SET DEBUG      OFF", "", f"Current directory: {home}"]
    lines += [f"Editor:  {os.environ.get('EDITOR', 'vi')}", "", f"{'Reports (.rpt)':<31}{home / 'dirrpt'}"]
    for label, name in (("Parameters (.prm)", "dirprm"), ("Replicat Checkpoints (.cpr)", "dirchk")):
        lines.append(f"{label:<31}{home / name}")
    lines.append(f"{'Extract Checkpoints (.cpe)':<31}{home / 'dirchk'}")
    lines.append(f"{'Process Status (.pcs)':<31}{home / 'dirpcs'}")
    return message("\n".join(lines))


@command("VERSIONS")
def versions(session: Session) -> Result:
    system = platform.uname()
    lines = ["Operating System:", system.system, f"Version {system.version}, Release {system.release}"]
    lines += [f"Node: {system.node}", f"Machine: {system.machine}", "", f"ggshell {__version__}"]
    if session.conninfo:
        with session.connect() as connection:
            from ggshell.databases.postgres.session import database_facts

            lines += ["", "Database:", f"PostgreSQL {database_facts(connection)[2]}"]
    return message("\n".join(lines))


@command("EXIT", "QUIT")
def leave(session: Session) -> Result:
    session.leaving = True
    return Result()


@command("OBEY")
def obey(session: Session, *, file: str) -> Result:
    from ggshell.shell.batch import obey_file

    obey_file(session, Path(session.home.resolve(file)))
    return Result()
