"""EXTTRAIL, RMTTRAIL, EXTFILE and RMTFILE, with the settings that apply to them: ENCRYPTTRAIL, FORMAT RELEASE."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ggshell.language.unsupported import CODE
from ggshell.parameters.lines import Parameter
from ggshell.parameters.remote_hosts import RemoteHost, remote_host

_TRAILS = ("EXTTRAIL", "RMTTRAIL", "EXTFILE", "RMTFILE")
_ALGORITHMS = {"aes128": "AES128", "aes192": "AES192", "aes256": "AES256", "aes": "AES128"}


IDLE_CODE = "GGS-00575"
IDLE = "ENCRYPTTRAIL has no effect: it applies only to trails that follow it, and none do"
IDLE_HINT = "move ENCRYPTTRAIL above EXTTRAIL"


class Encryption(NamedTuple):
    """ENCRYPTTRAIL. An empty ``key_name`` means the wallet's master key."""

    algorithm: str = "AES256"
    key_name: str = ""


class FileRules(NamedTuple):
    """The EXTFILE and RMTFILE options for the files that an initial load writes.

    ``task``: the Replicat that RMTTASK names, which applies the load as soon as it is complete.
    """

    remote: bool = False
    megabytes: int = 2000
    purge: bool = False
    task: str = ""


class TrailStatement(NamedTuple):
    """An EXTTRAIL or RMTTRAIL line, or an EXTFILE or RMTFILE line (``file``).

    ``release``: FORMAT RELEASE, empty for the newest. ``host``: the RMTHOST of a remote trail or file. ``remote``: RMTTRAIL,
    RMTFILE or RMTTASK.
    """

    trail: str
    release: str = ""
    encryption: Encryption | None = None
    file: FileRules | None = None
    host: RemoteHost | None = None
    remote: bool = False


def trail_statements(found: Iterable[Parameter]) -> tuple[TrailStatement, ...]:
    """The trails of a file in order. Raises ParameterError for an unsupported encryption algorithm.

    A remote trail before every RMTHOST belongs to the first one: it is never meant to be written here.
    """
    reader = _Reader()
    for item in found:
        reader.read(item)
    return tuple(reader.statements)


def require_same_tables(found: Iterable[Parameter]) -> None:
    """Raise ParameterError if a file has other TABLE lines below one trail than below another: every trail has them all."""
    sections: list[tuple[Parameter, set[str]]] = []
    for item in found:
        if item.name in _TRAILS:
            if not sections or sections[-1][1]:  # trails without a TABLE between share what follows
                sections.append((item, set()))
        elif item.name == "TABLE" and sections:
            sections[-1][1].add(" ".join(item.text.split()[1:]))
    for trail, tables in sections[1:]:
        if tables and tables != sections[0][1]:
            name = trail.args.get("trail") or trail.args["file"]
            raise trail.wrong(
                f"{trail.name} {name} cannot have other tables than {sections[0][0].name} above: every trail receives all"
                " tables of the file",
                code=CODE,
                hint="use one Extract or pump for each trail",
            )


class _Reader:
    """Reads the lines of a file in order: a trail takes the encryption and the RMTHOST that are in effect at its line."""

    def __init__(self) -> None:
        self.statements: list[TrailStatement] = []
        self._encryption: Encryption | None = None
        self._host: RemoteHost | None = None

    def read(self, item: Parameter) -> None:
        """Read one parameter; those that do not concern trails have no effect."""
        if item.name == "ENCRYPTTRAIL":
            self._encryption = encryption_of(item)
        elif item.name == "NOENCRYPTTRAIL":
            self._encryption = None
        elif item.name == "RMTHOST":
            self._take_host(remote_host(item))
        elif item.name == "RMTTASK":
            self.statements.append(_task(item, self._host))
        elif item.name in ("EXTTRAIL", "RMTTRAIL"):
            self._add(item, item.args["trail"], None)
        elif item.name in ("EXTFILE", "RMTFILE"):
            rules = FileRules(item.name == "RMTFILE", item.args.get("megabytes", 2000), "purge" in item.args)
            self._add(item, item.args["file"], rules)

    def _take_host(self, host: RemoteHost) -> None:
        """Use a host from here on, and for the remote trails above the first one."""
        if self._host is None:
            self.statements = [each._replace(host=host) if each.remote else each for each in self.statements]
        self._host = host

    def _add(self, item: Parameter, trail: str, rules: FileRules | None) -> None:
        remote = item.name.startswith("RMT")
        host = self._host if remote else None
        self.statements.append(TrailStatement(trail, _release(item), self._encryption, rules, host, remote))


def _release(item: Parameter) -> str:
    """The release of FORMAT RELEASE, empty for the newest."""
    release: str = item.args.get("format", ("", ""))[1]
    return release


def task_trail(group: str) -> str:
    """Return the trail of the loads that a task applies, the same in every home."""
    return f"./dirtmp/task-{group.upper()}/tk"


def _task(item: Parameter, host: RemoteHost | None) -> TrailStatement:
    """The trail of RMTTASK. RMTHOST may follow it."""
    group = str(item.args["group"]).upper()
    return TrailStatement(task_trail(group), _release(item), None, FileRules(True, purge=True, task=group), host, True)


def idle_encryption(found: Iterable[Parameter]) -> tuple[Parameter, ...]:
    """Every ENCRYPTTRAIL without a trail below it, if the file has a trail that is written unencrypted."""
    waiting: Parameter | None = None
    idle: list[Parameter] = []
    clear = 0
    encrypts = False
    for item in found:
        if item.name in ("ENCRYPTTRAIL", "NOENCRYPTTRAIL"):
            encrypts = item.name == "ENCRYPTTRAIL"
            if waiting is not None and not encrypts:
                idle.append(waiting)
            waiting = item if encrypts else None
        elif item.name in _TRAILS:
            waiting, clear = None, clear + (not encrypts)
    idle += [waiting] if waiting is not None else []
    return tuple(idle) if clear else ()


def encryption_of(item: Parameter) -> Encryption:
    """The ENCRYPTTRAIL settings. Raises ParameterError for an unsupported algorithm."""
    if "blowfish" in item.args:
        raise item.wrong(
            "BLOWFISH is not supported: it is no longer secure", "blowfish", hint="use ENCRYPTTRAIL AES256"
        )
    algorithm = next((name for word, name in _ALGORITHMS.items() if word in item.args), "AES256")
    return Encryption(algorithm, str(item.args.get("keyname", "")))
