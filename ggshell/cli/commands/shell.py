"""Commands about the shell itself: HELP, HISTORY, SHOW, VERSIONS, SHELL, CREATE SUBDIRS, EXIT."""

from __future__ import annotations

import os

from ggshell import __version__
from ggshell.cli.registry import command
from ggshell.cli.results import Listing, Message, NamedValues, Text
from ggshell.cli.session import Session
from ggshell.errors import ProcessError, StateError

_SHOWN = 10


@command("EXIT")
@command("QUIT")
def leave(session: Session) -> Message:
    """End the shell."""
    session.finished = True
    return Message()


@command("HELP")
def show_help(session: Session, *, rest: str = "") -> Text:
    """Show manual pages: the list of commands, or the pages about a command, parameter, function or topic."""
    import shutil
    import sys

    from ggshell.cli.manual import help_text

    width = shutil.get_terminal_size().columns if session.interactive or sys.stdout.isatty() else 0
    color = session.color and session.options.format == "ggsci"  # data contains no escape sequences
    return Text("HELP", help_text(rest, color=color, width=width))


@command("HISTORY")
def history(session: Session, *, n: int = _SHOWN) -> Listing:
    """Show the last statements, without their secrets."""
    every = list(enumerate(session.history, 1))
    shown = every[-n:] if n else []
    lines = ["", "GGSCI Command History", "", *(f"{number:>5}: {text}" for number, text in shown), ""]
    return Listing(("number", "statement"), shown, "\n".join(lines))


@command("SHELL")
@command("HOST")
def run_command(session: Session, *, rest: str) -> Text:
    """Run an operating system command, unless ``--no-shell``; in the interactive shell it uses the terminal."""
    if not session.options.shell:
        raise StateError("system commands are disabled (--no-shell).")
    from ggshell.system import run_command

    done = run_command(rest, terminal=session.interactive)
    if done.code:
        raise ProcessError(
            f"the command exited with code {done.code}: {' '.join(done.output.split())[-400:]}".rstrip(": ")
        )
    return Text("SHELL", done.output)


_FOLDERS = {
    "Reports (.rpt)": "dirrpt",
    "Parameters (.prm)": "dirprm",
    "Replicat Checkpoints (.cpr)": "dirchk",
    "Extract Checkpoints (.cpe)": "dirchk",
    "Process Status (.pcs)": "dirpcs",
    "SQL Scripts (.sql)": "dirsql",
    "Database Definitions (.def)": "dirdef",
}


@command("SHOW")
def show(session: Session) -> NamedValues:
    """Show settings and folders."""
    root = session.home.root
    editor = session.editor or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    pairs = {"SET SUBDIRS": "ON", "SET DEBUG": "OFF", "Current directory": str(root), "Editor": editor}
    own = {
        "Pager": session.pager or os.environ.get("PAGER") or "less",
        "Format": session.options.format,
        "Timing": "ON" if session.timing else "OFF",
        "Spool": session.spool_name or "OFF",
    }
    folders = {label: str(root / name) for label, name in _FOLDERS.items()}
    lines = [
        "",
        "Parameter settings:",
        "",
        "SET SUBDIRS    ON",
        "SET DEBUG      OFF",
        "",
        f"Current directory: {root}",
        "",
        "Using subdirectories for all process files",
        "",
        f"Editor:  {editor}",
        *(f"{name + ':':<9}{value}" for name, value in own.items()),
        "",
        *(f"{label:<31}{path}" for label, path in folders.items()),
        "",
    ]
    return NamedValues(tuple({**pairs, **own, **folders}.items()), "\n".join(lines))


@command("VERSIONS")
def versions(session: Session) -> NamedValues:
    """Show the versions of this program, the operating system, and the database of the login."""
    import platform

    system = os.uname()
    pairs = {
        "ggshell": __version__,
        "Python": platform.python_version(),
        "System": system.sysname,
        "Version": f"{system.version}, Release {system.release}",
        "Node": system.nodename,
        "Machine": system.machine,
    }
    if session.login is not None:
        login = session.login
        pairs["Database"] = f"{login.connector.title} {login.version} ({login.database})"
    lines = ["", "Operating System:", *(f"{name + ':':<12}{value}" for name, value in pairs.items()), ""]
    return NamedValues(tuple(pairs.items()), "\n".join(lines))


def _write_scripts(session: Session) -> None:
    """Write the scripts chkpt_<database>_create.sql, as in the vendor's installations; an existing script is kept."""
    from ggshell.connectors.registry import connectors
    from ggshell.files import write_atomically

    for connector in connectors():
        script = connector.checkpoint_script("ggs_checkpoint")
        database = connector.title.split()[-1].lower()  # mysql for "MariaDB or MySQL"
        path = session.home.root / "dirsql" / f"chkpt_{database}_create.sql"
        if script and not path.exists():
            write_atomically(path, script.encode())


@command("CREATE SUBDIRS")
def create_subdirectories(session: Session) -> Listing:
    """Create the folders of the home, and in dirsql the scripts that create checkpoint tables."""
    made = session.home.create_subdirectories()
    _write_scripts(session)
    lines = ["", f"Creating subdirectories under current directory {session.home.root}", ""]
    words = {True: "created", False: "already exists"}
    lines += [f"{label:<31}{path}: {words[new]}" for label, path, new in made]
    values = [(label, str(path), new) for label, path, new in made]
    return Listing(("label", "folder", "created"), values, "\n".join(lines) + "\n")
