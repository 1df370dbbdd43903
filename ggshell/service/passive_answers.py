"""The passive Extracts of this home, which their aliases in other homes start, stop and show."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor

from ggshell.cli.commands.info import info_groups
from ggshell.cli.groups import EXTRACT
from ggshell.cli.options import Options
from ggshell.cli.session import Session
from ggshell.errors import DiskError
from ggshell.groups.passive_extract import carry_out
from ggshell.home.home import Home
from ggshell.network.opening import ExtractAction, ExtractAnswer, ExtractRequest
from ggshell.network.proven import Proven
from ggshell.network.remote_group import RemoteGroup


async def answer_alias(home: Home, asked: ExtractRequest, proven: Proven, workers: Executor) -> ExtractAnswer:
    """Carry out the request of an alias. Raises GgsError."""
    alias = RemoteGroup(asked.home, asked.host, asked.group, proven=proven)
    loop = asyncio.get_running_loop()
    try:
        found = await loop.run_in_executor(workers, carry_out, home, asked.extract, asked.action, alias)
    except OSError as error:
        raise DiskError(f"EXTRACT {asked.extract} cannot be used: {error.strerror}") from error
    answer = ExtractAnswer(*found)
    if asked.action is ExtractAction.INFO:
        answer.shown = await loop.run_in_executor(workers, _shown, home, asked.extract)
    return answer


def _shown(home: Home, extract: str) -> str:
    """Return what INFO EXTRACT shows. Raises GgsError."""
    session = Session(Options(home=str(home.root), shell=False))
    try:
        return info_groups(session, EXTRACT, group_name=extract).layout
    finally:
        session.close()
