"""Looking at files: reports, parameters, the error log, the manual."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ggshell.errors import NotFoundError
from ggshell.process.report import masked
from ggshell.shell.registry import command
from ggshell.shell.results import Result, message
from ggshell.shell.session import Session
from ggshell.syntax import pages


def _file(path: Path, what: str) -> Result:
    try:
        text = path.read_text(errors="replace")
    except OSError:
        raise NotFoundError(f"{what} {path} does not exist") from None
    return Result(masked(text).rstrip("\n"), ("line",), tuple((line,) for line in masked(text).splitlines()))


@command("VIEW REPORT")
def view_report(session: Session, *, report: str) -> Result:
    path = session.home.root / "dirrpt" / f"{report.upper()}.rpt"
    return _file(path, "report")


@command("VIEW PARAMS")
def view_params(session: Session, *, file: str) -> Result:
    path = session.home.resolve(file) if "/" in file else session.home.parameters(file)
    return _file(path, "parameter file")


@command("VIEW GGSEVT")
def view_ggsevt(session: Session) -> Result:
    text = session.events.read()
    return Result(text.rstrip("\n"), ("line",), tuple((line,) for line in text.splitlines()))


@command("EDIT PARAMS")
def edit_params(session: Session, *, file: str) -> Result:
    session.home.ensure()
    path = session.home.resolve(file) if "/" in file else session.home.parameters(file)
    editor = os.environ.get("EDITOR", "vi").split()
    subprocess.run([*editor, str(path)], check=False)
    return Result()


@command("HELP")
def help_(session: Session, *, rest: str = "") -> Result:
    wanted = rest.strip().lower().replace(" ", "_")
    if not wanted:
        rows = [("command", pages.read(path)) for path in pages.index("commands").values()]
        lines = ["Commands (HELP name shows a page; parameters have pages too):", ""]
        lines += [f"  {page.title:<26}{page.summary}" for _, page in rows]
        return Result("\n".join(lines), ("command", "summary"), tuple((page.title, page.summary) for _, page in rows))
    for kind in ("commands", "parameters"):
        path = pages.index(kind).get(wanted)
        if path is not None:
            return _page(pages.read(path))
    found = [
        pages.read(path)
        for kind in ("commands", "parameters")
        for stem, path in pages.index(kind).items()
        if wanted in stem or wanted in pages.read(path).summary.lower()
    ]
    if not found:
        raise NotFoundError(f"the manual has no page for {rest.strip()}", hint="HELP lists the commands")
    return message("\n".join(f"  {page.title:<26}{page.summary}" for page in found))


def _page(page: pages.Page) -> Result:
    lines = [page.title, "", page.summary, ""]
    lines += [f"{name}: {value}" for name, value in page.facts.items()]
    lines += ["", "Syntax", *(f"    {text}" for text in page.syntax)]
    if page.options:
        lines += ["", "Options", page.options]
    lines += ["", "Examples", *(f"    {text}" for text in page.examples)]
    return Result("\n".join(lines), ("page", "summary"), ((page.title, page.summary),))
