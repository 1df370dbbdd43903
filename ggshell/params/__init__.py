"""Parameter files: text to typed, checked parameters."""

from ggshell.params.files import (
    ExtractParameters,
    Globals,
    LoginParameters,
    ManagerParameters,
    MapStatement,
    PurgeRule,
    ReplicatParameters,
    RestartRule,
    TableStatement,
    load_extract,
    load_globals,
    load_manager,
    load_replicat,
)

__all__ = [
    "ExtractParameters",
    "Globals",
    "LoginParameters",
    "ManagerParameters",
    "MapStatement",
    "PurgeRule",
    "ReplicatParameters",
    "RestartRule",
    "TableStatement",
    "load_extract",
    "load_globals",
    "load_manager",
    "load_replicat",
]
