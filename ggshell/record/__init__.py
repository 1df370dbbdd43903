"""What a change is: frozen values that capture, trail, route and apply share."""

from ggshell.record.change import ChangeBatch, TransactionHeader, TransactionPiece
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.operation import IoType, TransInd

__all__ = ["ChangeBatch", "Column", "IoType", "TableDefinition", "TransInd", "TransactionHeader", "TransactionPiece"]
