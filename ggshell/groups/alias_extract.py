"""The process of an alias Extract: has its passive Extract of another home started, and receives that Extract's trail.

It receives the trail as a RECVPATH does. When it is stopped, it has the passive Extract stopped too; when the passive Extract
ends in another way, it abends, so that AUTORESTART in this home starts both again.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

from ggshell.clock import Clock
from ggshell.errors import ConflictError, ConnectionLostError, GgsError, UsageError
from ggshell.groups import recvpath
from ggshell.groups.connection_state import ConnectionState
from ggshell.groups.lifecycle import GroupContext
from ggshell.groups.receivers import access_of, proxy_of, sender_of
from ggshell.groups.reconnecting import attempt
from ggshell.home.checkpoint import GroupOptions, WriteCheckpoint
from ggshell.home.events import Severity
from ggshell.home.home import Home
from ggshell.network.addresses import ReceiverAddress, parse_source
from ggshell.network.dialing import DEFAULT_SOCKET, dial
from ggshell.network.local_writers import local_writer
from ggshell.network.opening import ExtractAction, ExtractAnswer
from ggshell.network.remote_extract import Wait, ask_for_extract
from ggshell.trail.name import TrailName

_LONGEST_NAME: Final = 255
_WAIT_SECONDS: Final = 1.0


def run_alias(context: GroupContext) -> None:
    """Start the passive Extract, receive its trail until stopped, and stop it."""
    state, where = ConnectionState(context.clock), source_of(context).where

    def status(_: dict[str, Any]) -> dict[str, Any]:
        waiting = {"status": f"Waiting for {where}", "read": {}, "write": [], "slot": {}}
        return {**waiting, **state.answer_of_source(None)}

    def wait(descriptor: int) -> bool:
        context.runner.wait([descriptor], _WAIT_SECONDS)
        return not context.runner.stop_requested

    def start() -> ExtractAnswer:
        try:
            return ask_source(
                context.home, context.group, context.checkpoint.options, context.clock, ExtractAction.START, wait
            )
        except ConnectionLostError as error:
            state.failed(error)
            raise

    context.verb("STATUS", status, live=status)
    answer = attempt(context, start)
    if answer is not None:
        _settle(context, answer)
        recvpath.receive(context)
    _stop(context)  # also if this process is stopped before the source has answered: the Extract may start


def source_of(context: GroupContext) -> ReceiverAddress:
    """Return the service of the source home, with the trail if it is known."""
    return parse_source(context.checkpoint.options.source, needs_trail=False)


def _settle(context: GroupContext, answer: ExtractAnswer) -> None:
    """Save what the source home says about the trail. Raises UsageError, ConflictError."""
    target, address = _target(context, answer), source_of(context)._replace(trail=answer.trail)
    options = context.checkpoint.options._replace(source=address.uri, compression=answer.compress)
    context.save(context.checkpoint._replace(write=(target,), options=options))


def ask_source(
    home: Home, group: str, options: GroupOptions, clock: Clock, action: ExtractAction, wait: Wait | None = None
) -> ExtractAnswer:
    """Have the source home of an alias start, stop or show the passive Extract. ``wait``: as of ``ask_for_extract``.

    Raises GgsError."""
    address = parse_source(options.source, needs_trail=False)
    access = access_of(home, options)
    link = dial(address, home, clock, access, DEFAULT_SOCKET._replace(proxy=proxy_of(home, options)))
    with contextlib.closing(link):
        alias = sender_of(home, group, clock, access)
        return ask_for_extract(link, address.where, alias, options.alias_of, action, wait)


def _target(context: GroupContext, answer: ExtractAnswer) -> WriteCheckpoint:
    """Return the trail that the alias writes: the one that the passive Extract names, in this home.

    Raises UsageError if it is outside this home, ConflictError if another group writes it.
    """
    found = context.checkpoint.write
    if found and found[0].trail == answer.trail:
        return found[0]._replace(megabytes=answer.megabytes)
    if not answer.trail.isprintable() or len(answer.trail) > _LONGEST_NAME:
        raise UsageError(f"the source home names a trail that is not valid: {answer.trail[:_LONGEST_NAME]!r}")
    name = TrailName.parse(answer.trail, context.home.root)
    folder, root = name.folder.resolve(), (context.home.root / "dirdat").resolve()
    if not folder.is_relative_to(root) or name.prefix.startswith("."):
        raise UsageError(
            f"trail {answer.trail} of the passive EXTRACT {context.checkpoint.options.alias_of} is not in dirdat of this home",
            hint="use RMTTRAIL ./dirdat/xx in the source home",
        )
    writer = local_writer(context.home, name._replace(folder=folder), but=f"{context.type} {context.group}")
    if writer:
        raise ConflictError(
            f"trail {answer.trail} is already written by {writer}.", hint="use another RMTTRAIL in the source home"
        )
    return WriteCheckpoint(answer.trail, remote=True, megabytes=answer.megabytes)


def _stop(context: GroupContext) -> None:
    """Have the passive Extract stopped; if the source home cannot be reached, it captures until it is stopped there."""
    try:
        ask_source(context.home, context.group, context.checkpoint.options, context.clock, ExtractAction.STOP)
    except ConnectionLostError as error:
        context.report.event(Severity.WARNING, error.code, f"The passive Extract was not stopped: {error}.")
    except GgsError as error:
        context.report.event(Severity.WARNING, error.code, f"The passive Extract was not stopped: {error.located}.")
