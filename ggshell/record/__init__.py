"""What a change is: frozen values that capture, trail, route and apply share."""

from ggshell.record.change import Areas, ChangeBatch, TransactionHeader, TransactionPiece
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType, TransInd

__all__ = [
    "Areas",
    "ChangeBatch",
    "Column",
    "IoType",
    "TableDefinition",
    "TransInd",
    "TransactionHeader",
    "TransactionPiece",
]
