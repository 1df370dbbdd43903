"""EXTTRAIL, RMTTRAIL, EXTFILE and RMTFILE with what stands above them: ENCRYPTTRAIL, FORMAT RELEASE."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ggshell.errors import ParameterError
from ggshell.params.lines import Parameter

_ALGORITHMS = {"aes128": "AES128", "aes192": "AES192", "aes256": "AES256", "aes": "AES128"}


class Encryption(NamedTuple):
    """ENCRYPTTRAIL; an empty ``key_name`` means the wallet's master key."""

    algorithm: str = "AES256"
    key_name: str = ""


class FileRules(NamedTuple):
    """What EXTFILE and RMTFILE say of the files that an initial load writes."""

    remote: bool = False
    megabytes: int = 2000
    purge: bool = False


class TrailStatement(NamedTuple):
    """An EXTTRAIL or RMTTRAIL line, or an EXTFILE or RMTFILE line (``file``); ``release``: FORMAT RELEASE, empty for the
    newest."""

    trail: str
    release: str = ""
    encryption: Encryption | None = None
    file: FileRules | None = None


def trail_statements(found: Iterable[Parameter], path: Path) -> tuple[TrailStatement, ...]:
    """The trails of a file in order.  Raises ParameterError for an algorithm that there is not."""
    encryption: Encryption | None = None
    result: list[TrailStatement] = []
    for item in found:
        if item.name == "ENCRYPTTRAIL":
            encryption = _encryption(item, path)
        elif item.name == "NOENCRYPTTRAIL":
            encryption = None
        elif item.name in ("EXTTRAIL", "RMTTRAIL"):
            result.append(TrailStatement(item.args["trail"], item.args.get("format", ("", ""))[1], encryption))
        elif item.name in ("EXTFILE", "RMTFILE"):
            rules = FileRules(item.name == "RMTFILE", item.args.get("megabytes", 2000), "purge" in item.args)
            release = item.args.get("format", ("", ""))[1]
            result.append(TrailStatement(item.args["file"], release, encryption, rules))
    return tuple(result)


def _encryption(item: Parameter, path: Path) -> Encryption:
    if "blowfish" in item.args:
        raise ParameterError(
            "BLOWFISH is not supported: it is no longer safe", where=f"{path}:{item.line}", hint="ENCRYPTTRAIL AES256"
        )
    algorithm = next((name for word, name in _ALGORITHMS.items() if word in item.args), "AES256")
    return Encryption(algorithm, str(item.args.get("keyname", "")))
