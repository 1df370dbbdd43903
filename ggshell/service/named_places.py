"""What the parameters and statements name that is on the machine, and the decision for each: one table of either kind.

The checks apply to what comes through the service. A shell on the machine, and files that were written there, are not limited.
A test compares both tables with the syntax lines of all pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from ggshell.cli.commands.path import source_trail, target_trail
from ggshell.cli.commands.recvpath import own_trail
from ggshell.cli.commands.view import discard_file, parameter_file
from ggshell.connectors.registry import connector_for, delivery_connector
from ggshell.errors import GgsError, UsageError
from ggshell.home.checkpoint import ReplicatKind
from ggshell.service.named_files import Bounds, require_inside

if TYPE_CHECKING:
    from ggshell.home.home import Home
    from ggshell.service.sign_in import Principal


class PlaceUse(Enum):
    """What happens to that which an argument names, and so where it may be."""

    READ = auto()
    """It is read: in the home or in a folder of ALLOWPATH."""
    WRITTEN = auto()
    """It is created, changed or deleted: as READ, but no parameter file and no checkpoint."""
    PATTERN = auto()
    """A pattern of trails whose files are deleted: as WRITTEN."""
    LOGIN = auto()
    """A login: the files that it names, as READ."""
    SOURCE = auto()
    """An alias, a login, or a folder or file that is read."""
    PATH_SOURCE = auto()
    """The address of a trail that is read."""
    PATH_TARGET = auto()
    """The address of a trail that is written. That of a receiver names no file of this home."""
    OWN_TARGET = auto()
    """The address of a trail of this home that is written."""
    ADDRESS = auto()
    """The address of another home's service, which decides about its own files."""
    LAKE = auto()
    """A lake: its folder, as WRITTEN."""
    PARAMETERS = auto()
    """A group or a parameter file, which is shown without its passwords."""
    REPORT = auto()
    """A report of a group."""
    DISCARD_FILE = auto()
    """A discard file of a group, which DISCARDFILE can name: as REPORT_FILE."""
    REPORT_FILE = auto()
    """A file that is shown as it is: as READ, but no parameter file, because it can contain passwords."""
    INCLUDED = auto()
    """A file that becomes part of a parameter file: in the home or a folder of ALLOWPATH, for every role."""
    SECURED = auto()
    """A setting of the whole home: only the role SECURITY may set it, regardless of the value."""
    COMPARED = auto()
    """It is only compared with what the home has. Nothing is opened."""
    UNUSED = auto()
    """This version does not support it, as the page states."""


PARAMETERS: Final[Mapping[tuple[str, str], PlaceUse]] = {
    ("ALLOWOUTPUTDIR", "directory"): PlaceUse.COMPARED,
    ("ALLOWPATH", "directory"): PlaceUse.SECURED,
    ("BR", "brdir"): PlaceUse.WRITTEN,
    ("CACHEMGR", "cachedirectory"): PlaceUse.UNUSED,
    ("CERTIFICATE", "file"): PlaceUse.SECURED,
    ("CERTIFICATE", "key"): PlaceUse.SECURED,
    ("CHARMAP", "file"): PlaceUse.UNUSED,
    ("CLIENTCA", "file"): PlaceUse.SECURED,
    ("CREDENTIALSTORELOCATION", "directory"): PlaceUse.UNUSED,
    ("CUSEREXIT", "library"): PlaceUse.UNUSED,
    ("DEFSFILE", "file"): PlaceUse.UNUSED,
    ("DISCARDFILE", "file"): PlaceUse.WRITTEN,
    ("EXTFILE", "file"): PlaceUse.WRITTEN,
    ("EXTTRAIL", "trail"): PlaceUse.WRITTEN,
    ("FETCHUSERID", "userid"): PlaceUse.LOGIN,
    ("GENLOADFILES", "file"): PlaceUse.UNUSED,
    ("INCLUDE", "file"): PlaceUse.INCLUDED,
    ("OBEY", "file"): PlaceUse.INCLUDED,
    ("PURGEOLDEXTRACTS", "trail"): PlaceUse.PATTERN,
    ("RMTFILE", "file"): PlaceUse.WRITTEN,
    ("RMTHOST", "params"): PlaceUse.UNUSED,
    ("RMTHOSTOPTIONS", "params"): PlaceUse.UNUSED,
    ("RMTTRAIL", "trail"): PlaceUse.WRITTEN,
    ("SOURCEDB", "source"): PlaceUse.LOGIN,
    ("SOURCEDB", "userid"): PlaceUse.LOGIN,
    ("SOURCEDEFS", "file"): PlaceUse.READ,
    ("TARGETDB", "source"): PlaceUse.LOGIN,
    ("TARGETDB", "userid"): PlaceUse.LOGIN,
    ("TARGETDB LIBFILE", "file"): PlaceUse.UNUSED,
    ("TARGETDEFS", "file"): PlaceUse.UNUSED,
    ("TRACE", "file"): PlaceUse.UNUSED,
    ("TRACE2", "file"): PlaceUse.UNUSED,
    ("TRANLOGOPTIONS", "altarchivelogdest"): PlaceUse.UNUSED,
    ("TRANLOGOPTIONS", "altlogdest"): PlaceUse.UNUSED,
    ("TRANLOGOPTIONS", "asmuser"): PlaceUse.LOGIN,
    ("TRANLOGOPTIONS", "mininguser"): PlaceUse.LOGIN,
    ("USERID", "userid"): PlaceUse.LOGIN,
    ("VAM", "library"): PlaceUse.UNUSED,
    ("WALLETLOCATION", "directory"): PlaceUse.SECURED,
}
"""The use of each argument of a parameter, by the key of the syntax line and the name of the argument."""

STATEMENTS: Final[Mapping[tuple[str, str], PlaceUse]] = {
    ("ADD DISTPATH", "source"): PlaceUse.PATH_SOURCE,
    ("ADD DISTPATH", "target"): PlaceUse.PATH_TARGET,
    ("ALTER DISTPATH TARGET", "url"): PlaceUse.PATH_TARGET,
    ("ALTER DISTPATH TARGET URI", "url"): PlaceUse.PATH_TARGET,
    ("ALTER DISTPATH TARGET PROXY URI TYPE", "url"): PlaceUse.ADDRESS,
    ("ALTER RECVPATH TARGET PROXY URI TYPE", "url"): PlaceUse.ADDRESS,
    ("ALTER RECVPATH SOURCE PROXY URI", "url"): PlaceUse.ADDRESS,
    ("ADD RECVPATH", "source"): PlaceUse.ADDRESS,
    ("ADD RECVPATH", "target"): PlaceUse.OWN_TARGET,
    ("ADD EXTRACT", "extfilesource"): PlaceUse.UNUSED,
    ("ADD EXTRACT", "exttrailsource"): PlaceUse.READ,
    ("ADD EXTRACT", "params"): PlaceUse.UNUSED,
    ("ADD EXTRACT", "report"): PlaceUse.UNUSED,
    ("ADD EXTRACT", "vamtrailsource"): PlaceUse.UNUSED,
    ("ADD EXTTRAIL", "trail"): PlaceUse.WRITTEN,
    ("ADD REPLICAT", "exttrail"): PlaceUse.READ,
    ("ADD REPLICAT", "params"): PlaceUse.UNUSED,
    ("ADD REPLICAT", "report"): PlaceUse.UNUSED,
    ("ADD REPLICAT EXTFILE", "file"): PlaceUse.READ,
    ("ADD REPLICAT EXTFILE", "params"): PlaceUse.UNUSED,
    ("ADD REPLICAT EXTFILE", "report"): PlaceUse.UNUSED,
    ("ADD REPLICAT SPARK", "exttrail"): PlaceUse.READ,
    ("ADD REPLICAT SPARK", "target"): PlaceUse.LAKE,
    ("ADD REPLICAT SPECIALRUN", "params"): PlaceUse.UNUSED,
    ("ADD REPLICAT SPECIALRUN", "report"): PlaceUse.UNUSED,
    ("ADD RMTTRAIL", "trail"): PlaceUse.WRITTEN,
    ("ADD TRANDATA", "journal"): PlaceUse.UNUSED,
    ("ALTER CREDENTIALSTORE ADD USER", "userid"): PlaceUse.LOGIN,
    ("ALTER CREDENTIALSTORE DELETE USER", "userid"): PlaceUse.COMPARED,
    ("ALTER CREDENTIALSTORE REPLACE USER", "userid"): PlaceUse.LOGIN,
    ("ALTER EXTRACT", "journal"): PlaceUse.UNUSED,
    ("ALTER EXTTRAIL", "trail"): PlaceUse.WRITTEN,
    ("ALTER REPLICAT", "extfile"): PlaceUse.UNUSED,
    ("ALTER REPLICAT", "exttrail"): PlaceUse.READ,
    ("ALTER REPLICAT", "params"): PlaceUse.UNUSED,
    ("ALTER REPLICAT", "report"): PlaceUse.UNUSED,
    ("ALTER RMTTRAIL", "trail"): PlaceUse.WRITTEN,
    ("COMPARE TO", "repair"): PlaceUse.WRITTEN,
    ("COMPARE TO", "source"): PlaceUse.SOURCE,
    ("COMPARE TO", "target"): PlaceUse.SOURCE,
    ("LOAD TO", "source"): PlaceUse.SOURCE,
    ("LOAD TO", "target"): PlaceUse.SOURCE,
    ("DBLOGIN SOURCEDB", "source"): PlaceUse.LOGIN,
    ("DBLOGIN SOURCEDB", "userid"): PlaceUse.LOGIN,
    ("DBLOGIN USERID", "userid"): PlaceUse.LOGIN,
    ("DELETE EXTTRAIL", "trail"): PlaceUse.WRITTEN,
    ("DELETE RECVPATH", "trail"): PlaceUse.COMPARED,
    ("DELETE RMTTRAIL", "trail"): PlaceUse.WRITTEN,
    ("STATS RECVPATH", "trail"): PlaceUse.COMPARED,
    ("INFO EXTTRAIL", "trail"): PlaceUse.COMPARED,
    ("INFO RECVPATH", "trail"): PlaceUse.COMPARED,
    ("INFO RMTTRAIL", "trail"): PlaceUse.COMPARED,
    ("LAG REPORT", "from_"): PlaceUse.SOURCE,
    ("LAG REPORT", "to"): PlaceUse.WRITTEN,
    ("MERGE WALLET", "directory"): PlaceUse.READ,
    ("PURGE EXTTRAIL", "trail"): PlaceUse.WRITTEN,
    ("SEND EXTRACT GETPARAMINFO", "file"): PlaceUse.WRITTEN,
    ("SEND EXTRACT SHOWTRANS", "file"): PlaceUse.WRITTEN,
    ("SEND GETPARAMINFO", "file"): PlaceUse.WRITTEN,
    ("SEND MANAGER GETPARAMINFO", "file"): PlaceUse.WRITTEN,
    ("SEND MGR GETPARAMINFO", "file"): PlaceUse.WRITTEN,
    ("SEND REPLICAT GETPARAMINFO", "file"): PlaceUse.WRITTEN,
    ("SEND SHOWTRANS", "file"): PlaceUse.WRITTEN,
    ("TRAIL ASOF CSN", "from_"): PlaceUse.READ,
    ("TRAIL ASOF TIME", "from_"): PlaceUse.READ,
    ("TRAIL COUNT", "from_"): PlaceUse.READ,
    ("TRAIL FIND CSN", "from_"): PlaceUse.READ,
    ("TRAIL FIND DDL", "from_"): PlaceUse.READ,
    ("TRAIL FIND TABLE", "from_"): PlaceUse.READ,
    ("TRAIL FIND TRANSACTION", "from_"): PlaceUse.READ,
    ("TRAIL GAPS", "from_"): PlaceUse.READ,
    ("TRAIL SQL", "from_"): PlaceUse.READ,
    ("TRAIL TOP", "from_"): PlaceUse.READ,
    ("VIEW DISCARD", "report"): PlaceUse.DISCARD_FILE,
    ("VIEW PARAMS", "file"): PlaceUse.PARAMETERS,
    ("VIEW REPORT", "file"): PlaceUse.REPORT_FILE,
    ("VIEW REPORT", "report"): PlaceUse.REPORT,
}
"""The same for the statements that the service carries out."""

SHOWN: Final[Mapping[str, tuple[PlaceUse, str]]] = {"VIEW GLOBALS": (PlaceUse.PARAMETERS, "GLOBALS")}
"""The files of statements that show one without naming it."""

_WRITING: Final = frozenset(
    {PlaceUse.WRITTEN, PlaceUse.PATTERN, PlaceUse.PATH_TARGET, PlaceUse.OWN_TARGET, PlaceUse.LAKE}
)
_EXACT: Final = frozenset(
    {
        *(PlaceUse.PATTERN, PlaceUse.LOGIN, PlaceUse.LAKE),
        *(PlaceUse.PARAMETERS, PlaceUse.REPORT, PlaceUse.REPORT_FILE, PlaceUse.DISCARD_FILE),
    }
)
_NOTHING: Final = frozenset({PlaceUse.COMPARED, PlaceUse.UNUSED, PlaceUse.INCLUDED, PlaceUse.SECURED})


def require_use(bounds: Bounds, principal: Principal, use: PlaceUse, value: Any, named: str = "") -> None:
    """Check what an argument names. ``named``: the parameter, for the message.

    ``SECURED`` and ``INCLUDED`` are checked where parameter files are written. Raises HttpError 403, UsageError.
    """
    if use in _NOTHING:
        return
    for text in _texts(value):
        for place in _places(bounds.home, use, text):
            if use in (PlaceUse.REPORT_FILE, PlaceUse.DISCARD_FILE):
                _require_no_parameters(bounds.home, place)
            require_inside(bounds, principal, place, named=named, written=use in _WRITING, exact=use in _EXACT)


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of an argument, which can have several values or words after its value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _texts(each)


def _places(home: Home, use: PlaceUse, text: str) -> list[str]:
    """Return the files, folders and trails that a value names. A value that is not valid names none: the statement fails."""
    if use in (PlaceUse.LOGIN, PlaceUse.SOURCE):
        files = [str(path) for path in connector_for(text).files(home.root, text)]
        return files if files or use is PlaceUse.LOGIN else [text]
    try:
        if use is PlaceUse.PATH_SOURCE:
            return [source_trail(text)]
        if use is PlaceUse.PATH_TARGET:
            trail, receiver = target_trail(text)
            return [] if receiver else [trail]  # the receiver decides about its own trails
        if use is PlaceUse.OWN_TARGET:
            return [own_trail(text)]
        if use is PlaceUse.ADDRESS:
            return []
        if use is PlaceUse.LAKE:
            return [delivery_connector(ReplicatKind.LAKE).folder_target(home, text, "").location]
    except GgsError:
        return []
    if use is PlaceUse.PARAMETERS:
        return [str(parameter_file(home, text))]
    if use is PlaceUse.DISCARD_FILE:
        return [str(discard_file(home, text))]
    return [str(home.report(text))] if use is PlaceUse.REPORT else [text]


def _require_no_parameters(home: Home, text: str) -> None:
    path = home.resolve(text)
    with suppress(OSError, RuntimeError):
        path = path.resolve()
    kept = path.is_relative_to((home.root / "dirprm").resolve()) or path == home.globals.resolve()
    if kept or path.suffix.lower() in (".prm", ".inc", ".oby"):
        raise UsageError(f"{text[:200]} is not a report", hint="show a parameter file with VIEW PARAMS")
