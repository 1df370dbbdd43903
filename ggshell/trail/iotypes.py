"""The names of operation types, as Logdump shows and accepts them (SHOW RECTYPE), including types ggshell never writes."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

NAMES: Final = MappingProxyType(
    {
        1: "Abort",
        2: "Commit",
        3: "Delete",
        4: "EndRollback",
        5: "Insert",
        6: "Prepared",
        7: "TMF-Shutdown",
        8: "TransBegin",
        9: "TransRelease",
        10: "Update",
        11: "UpdateComp",
        12: "FileAlter",
        13: "FileCreate",
        14: "FilePurge",
        15: "FieldComp",
        16: "FileRename",
        17: "AuxPointer",
        18: "NetworkCommit",
        19: "NetworkAbort",
        90: "GGSSQLCol",
        100: "GGSPurgedata",
        101: "GGSPurgeFile",
        102: "GGSCreateFile",
        103: "GGSAlterFile",
        104: "GGSRenameFile",
        105: "GGSSetmode",
        106: "GGSChangeLabel",
        107: "GGSControl",
        115: "GGSKeyFieldComp",
        116: "LargeObject",
        117: "GGSKeyFieldComp32",
        132: "SequenceOp",
        134: "GGSUnifiedUpdate",
        135: "GGSUnifiedPKUpdate",
        150: "RestartAbend",
        151: "RestartOK",
        152: "RecoveryEnd",
        160: "DDLOP",
        161: "RecordFragment",
        170: "Metadata",
        200: "GGSUnstructured",
        201: "GGSUnstructured2",
        202: "GGSUnstructured3",
        203: "GGSUnstructured4",
        204: "GGSUnstructured5",
        205: "GGSComment",
        249: "GGSBulkio",
        254: "GGSFileHeader",
        255: "UserType",
    }
)
FILE_HEADER: Final = "FileHeader"
_ALSO: Final = MappingProxyType(
    {
        "UPDATE COMP": 11,
        "PURGEDATA": 100,
        "TRUNCATE": 100,
        "GGSPKUPDATE": 115,
        "PKUPDATE": 115,
        "KEYFIELDCOMP": 115,
        "LOB": 116,
        "GGSSEQUENCEOP": 132,
        "UNIFIEDUPDATE": 134,
        "UNIFIEDPKUPDATE": 135,
        "DDL": 160,
    }
)
_NUMBERS: Final = MappingProxyType({**{name.upper(): number for number, name in NAMES.items()}, **_ALSO})


def io_type_name(number: int) -> str:
    """Return the name of an operation type; ``Type`` and its number if it has no name."""
    return NAMES.get(number, f"Type {number}")


def io_type_number(text: str) -> int:
    """Return the operation type for a name or a number. Raises ValueError for an unknown name."""
    if text.isdigit() and int(text) <= 0xFF:
        return int(text)
    found = _NUMBERS.get(text.upper())
    if found is None:
        raise ValueError(f"{text} is not a valid operation type")
    return found
