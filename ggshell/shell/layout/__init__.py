"""The layouts of GGSCI: what existing scripts parse.  One module a family of answers, loaded when first needed."""

from __future__ import annotations

from importlib import import_module

from ggshell.shell.results import Message, Result, Text

_MODULES = {
    "InfoAll": "info_all",
    "InfoGroups": "groups",
    "Status": "groups",
    "ManagerStatus": "groups",
    "Stats": "statistics",
    "Lags": "requests",
    "ProcessStatuses": "requests",
    "Transactions": "requests",
    "BoundedStatus": "bounded",
    "CacheStats": "bounded",
    "Timeline": "bounded",
    "Trails": "stores",
    "Credentials": "stores",
    "HeartbeatInfo": "heartbeat",
    "HeartbeatLags": "heartbeat",
    "LagTimes": "heartbeat",
    "LagObjective": "heartbeat",
}


def ggsci(result: Result) -> str:
    """An answer as GGSCI prints it; empty or ending with a newline."""
    if isinstance(result, Message):
        lines = "".join(f"{line}\n" for line in result.lines)
        return f"\n{lines}" if result.apart and lines else lines
    if isinstance(result, Text):
        return result.text if result.text.endswith("\n") or not result.text else result.text + "\n"
    name = type(result).__name__
    if name not in _MODULES:
        own: str = result.layout  # type: ignore[attr-defined]  # a listing brings its own
        return own
    text: str = import_module(f"ggshell.shell.layout.{_MODULES[name]}").LAYOUTS[type(result)](result)
    return text
