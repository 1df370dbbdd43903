"""INFO PARAM, which describes a parameter, and SEND … GETPARAMINFO, which shows the parameters of a running process."""

from __future__ import annotations

from typing import Any

from ggshell.cli import supervision
from ggshell.cli.groups import ER, EXTRACT, REPLICAT, Kinds, one
from ggshell.cli.registry import command
from ggshell.cli.results import Message, NamedValues, Text
from ggshell.cli.session import Session
from ggshell.errors import NotFoundError, StateError
from ggshell.files import disk_errors
from ggshell.groups.process_request import request
from ggshell.language import pages
from ggshell.language.notation import keywords
from ggshell.language.suggest import did_you_mean
from ggshell.language.unsupported import gaps_of

_COMPONENTS = {
    "Extract": "EXTRACT - All",
    "Replicat": "REPLICAT - All",
    "Manager": "MGR",
    "Service": "SERVICE",
    "GLOBALS": "GLOBALS",
}
_OPPOSITES = (("GET", "IGNORE"), ("NO", ""))


@command("INFO PARAM")
def info_param(session: Session, *, parameter_name: str) -> NamedValues:
    """Show the facts of a parameter's page; ``parameter.option`` shows those of one option."""
    name, _, option = parameter_name.partition(".")
    path = pages.index("parameters").get(name.lower())
    if path is None:
        known = [stem.upper() for stem in pages.index("parameters")]
        hint = did_you_mean(name.upper(), known) or "use HELP to list them"
        raise NotFoundError(f"{name.upper()} is not a parameter.", hint=hint)
    from ggshell.language.notation import compile_line

    page, gaps = pages.read(path), gaps_of(path)
    trees = [compile_line(text, path.stem) for text in page.syntax]
    options = list(dict.fromkeys(word.text for tree in trees for word in keywords(tree.body)[1:]))
    if option and option.upper() not in options:
        raise NotFoundError(
            f"{name.upper()} has no option {option.upper()}.", hint=did_you_mean(option.upper(), options)
        )
    missing = dict(gaps.missing).get(option.upper(), gaps.status) if option else gaps.status
    syntax = page.syntax[0].partition(" ")[2]
    lines = [
        ("param name", parameter_name.lower()),
        *([("opposite", found)] if not option and (found := _opposite(name.lower())) else []),
        ("description", _about(page.options, option.upper()) if option else page.summary),
        *([] if option else [("argument", syntax or "boolean")]),
        *([("default", page.facts["Default"])] if "Default" in page.facts and not option else []),
        *([("options", ", ".join(word.lower() for word in options))] if options and not option else []),
        *_components(page.facts.get("For", "")),
        ("platform(s)", "All"),
        ("database(s)", page.facts.get("Databases", "All")),
        ("status", f"not supported: {missing}" if missing else "current"),
        ("mandatory", str(name.upper() in ("EXTRACT", "REPLICAT")).lower()),
        ("dynamic", "false"),
        ("relations", "none"),
    ]
    text = "\n".join(["", *(f"{label:<12}: {value}" for label, value in lines), ""])
    return NamedValues(tuple(lines), text)


def _opposite(name: str) -> str:
    """The parameter that reverses another, or empty."""
    known = pages.index("parameters")
    for one_, other in _OPPOSITES:
        for first, second in ((one_, other), (other, one_)):
            if name.startswith(first.lower()):
                found = second.lower() + name[len(first) :]
                if found in known and found != name:
                    return found
    return ""


def _components(meant: str) -> list[tuple[str, str]]:
    found = [shown for name, shown in _COMPONENTS.items() if name in meant] or [meant]
    return [("component(s)", found[0]), *(("", more) for more in found[1:])]


def _about(text: str, option: str) -> str:
    """The description of an option on a parameter's page."""
    lines = text.splitlines()
    for number, line in enumerate(lines[:-1]):
        if option in line.replace(",", " ").split() and lines[number + 1].startswith(":"):
            return lines[number + 1].lstrip(": ").strip()
    return "see its parameter"


@command("SEND EXTRACT GETPARAMINFO", EXTRACT)
@command("SEND REPLICAT GETPARAMINFO", REPLICAT)
@command("SEND GETPARAMINFO", ER)
def getparaminfo(
    session: Session, kinds: Kinds, *, group_name: str, parameter_name: str = "", file: str = ""
) -> Text | Message:
    """Show the parameters that a running process has read, with their values; FILE writes them to a file."""
    found = one(session, kinds, group_name)
    answer = request(supervision.process_of(found).socket, "GETPARAMINFO")
    return _parameter_answer(session, str(found.name), answer, parameter_name, file)


@command("SEND MANAGER GETPARAMINFO")
@command("SEND MGR GETPARAMINFO")
def manager_parameters(session: Session, *, parameter_name: str = "", file: str = "") -> Text | Message:
    """Show the same for Manager."""
    entry = supervision.manager(session.home)
    if entry is None:
        raise StateError("Manager is not running.", hint="START MANAGER")
    return _parameter_answer(session, "MANAGER", request(entry.socket, "GETPARAMINFO"), parameter_name, file)


def _parameter_answer(
    session: Session, name: str, answer: dict[str, Any], parameter_name: str, file: str
) -> Text | Message:
    wanted = parameter_name.partition(".")[0].lower()
    given = [(name, value) for name, value in answer["parameters"] if not wanted or name == wanted]
    lines = [f"{name:<24}: {value}" for name, value in given]
    text = "\n".join(["", f"Sending GETPARAMINFO request to {name} ...", "", str(answer["file"]), *lines, ""])
    if not file:
        return Text("GETPARAMINFO", text + "\n")
    path = session.home.resolve(file)
    with disk_errors("write", path, hint="specify another file in FILE"):
        path.write_text(text + "\n", encoding="utf-8")
    return Message((f"{len(given)} parameters written to {path}.",), apart=True)
