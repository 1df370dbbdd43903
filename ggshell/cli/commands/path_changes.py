"""ALTER DISTPATH and ALTER RECVPATH: the position, the target, the rules and the connection of a stopped path."""

from __future__ import annotations

from collections.abc import Callable

from ggshell.cli import registrations
from ggshell.cli.begin import starting_position
from ggshell.cli.commands.path import signing_in, target_trail
from ggshell.cli.groups import PATH, RECVPATH, Kinds, View, require_stopped, select
from ggshell.cli.registry import command
from ggshell.cli.results import Message
from ggshell.cli.session import Session
from ggshell.cli.trails import require_unwritten, same_trail
from ggshell.errors import UsageError
from ggshell.groups.progress import moved_in_trail
from ggshell.home.checkpoint import Checkpoint, GroupOptions, PathSettings, WriteCheckpoint
from ggshell.network.proxy_url import Proxy, ProxyKind, parse_proxy
from ggshell.parameters.remote_hosts import COMPRESS_THRESHOLD

SEQUENCE_DIGITS = 9
_MOST_RETRIES = 10_000
_LONGEST_DELAY = 86_400
_ALTERED = {PATH: "Distribution path altered.", RECVPATH: "Receiver path altered."}


@command("ALTER DISTPATH BEGIN")
def alter_begin(
    session: Session,
    *,
    path_name: str,
    now: bool = False,
    when: str = "",
    seqno: tuple[int | str, ...] = (),
) -> Message:
    """Set a stopped path to another position of its source trail. What the target trail holds is not written again."""
    begin = "NOW" if now else when
    file, rba = (int(seqno[0]), int(seqno[-1])) if seqno else (None, None)
    lines: list[str] = []

    def moved(found: View) -> Checkpoint:
        place = starting_position(session, found.checkpoint.read.trail, begin, file, rba)
        read = found.checkpoint.read._replace(startup=place, recovery=place, current=place, current_time=0)
        lines.append(f"{found.name} continues at {place}.")
        return moved_in_trail(found.checkpoint, place)._replace(read=read, begin=begin, record_time=0, caught_up=0)

    return _altered(session, PATH, path_name, moved, lines)


@command("ALTER DISTPATH TARGET")
@command("ALTER DISTPATH TARGET URI")
def alter_target(session: Session, *, path_name: str, url: str) -> Message:
    """Send to another trail. It continues after what it contains, and otherwise begins at the path's position."""
    writes, receiver = target_trail(url)

    def redirected(found: View) -> Checkpoint:
        before = found.checkpoint.write[0]
        if not receiver and same_trail(session, found.checkpoint.read.trail, writes):
            raise UsageError("a path cannot write to the trail that it reads.")
        if not receiver and (before.is_elsewhere or not same_trail(session, before.trail, writes)):
            require_unwritten(session, writes)
        target = WriteCheckpoint(writes, remote=True, megabytes=before.megabytes, receiver=receiver)
        if (writes, receiver) == (before.trail, before.receiver):
            target = before
        return found.checkpoint._replace(write=(target,), options=found.checkpoint.options._replace(target=url))

    return _altered(session, PATH, path_name, redirected)


@command("ALTER DISTPATH TARGET SIZEMB", PATH)
@command("ALTER RECVPATH TARGET SIZEMB", RECVPATH)
def alter_size(session: Session, kinds: Kinds, *, path_name: str, megabytes: int) -> Message:
    """Set the size of future files of the target trail."""

    def resized(found: View) -> Checkpoint:
        targets = tuple(each._replace(megabytes=megabytes) for each in found.checkpoint.write)
        return found.checkpoint._replace(write=targets)

    return _altered(session, kinds, path_name, resized)


@command("ALTER DISTPATH TARGET FORMAT", PATH)
@command("ALTER RECVPATH TARGET FORMAT", RECVPATH)
@command("ALTER DISTPATH TARGET SEQLEN", PATH)
@command("ALTER RECVPATH TARGET SEQLEN", RECVPATH)
def alter_form(session: Session, kinds: Kinds, *, path_name: str, canonical: bool = True, number: int = 9) -> Message:
    """Accept the only form of a target trail: the canonical format, and files whose numbers have nine digits."""
    if number != SEQUENCE_DIGITS:
        raise UsageError(
            f"{number} is not a valid SEQLEN: the sequence number of a trail file has nine digits, which every Replicat reads",
            hint=f"use SEQLEN {SEQUENCE_DIGITS}",
        )
    return _altered(session, kinds, path_name, lambda found: found.checkpoint)


@command("ALTER DISTPATH TARGET COMPRESSION", PATH)
@command("ALTER RECVPATH TARGET COMPRESSION", RECVPATH)
def alter_compression(
    session: Session,
    kinds: Kinds,
    *,
    path_name: str,
    on: bool = False,
    off: bool = False,
    threshold: int = COMPRESS_THRESHOLD,
) -> Message:
    """Compress what is sent between homes, from a size on, or do not."""
    return _with_options(
        session, kinds, path_name, lambda options: options._replace(compression=None if off else threshold)
    )


@command("ALTER DISTPATH RULE PASSTHRU", PATH)
@command("ALTER RECVPATH RULE PASSTHRU", RECVPATH)
def alter_rule_passthru(session: Session, kinds: Kinds, *, path_name: str, action: str = "INCLUDE") -> Message:
    """Send every table again."""
    return _with_options(
        session, kinds, path_name, lambda options: options._replace(rule_objects=(), rule_excludes=False)
    )


@command("ALTER DISTPATH RULE FILTER", PATH)
@command("ALTER RECVPATH RULE FILTER", RECVPATH)
def alter_rule_filter(
    session: Session, kinds: Kinds, *, path_name: str, objectnames: tuple[str, ...] = (), action: str = "INCLUDE"
) -> Message:
    """Send only some tables, or all but some. The rule replaces the previous one."""
    if not objectnames:
        raise UsageError("RULE FILTER requires OBJECTNAMES.", hint="use OBJECTNAMES schema.table, or RULE PASSTHRU")
    _require_patterns(objectnames)
    excludes = action == "EXCLUDE"
    return _with_options(
        session, kinds, path_name, lambda options: options._replace(rule_objects=objectnames, rule_excludes=excludes)
    )


def _require_patterns(names: tuple[str, ...]) -> None:
    from ggshell.cli.commands.send import require_pattern

    for name in names:
        require_pattern(name)


@command("ALTER DISTPATH TARGET PROXY URI TYPE", PATH)
@command("ALTER RECVPATH TARGET PROXY URI TYPE", RECVPATH)
@command("ALTER RECVPATH SOURCE PROXY URI", RECVPATH)
def alter_proxy(
    session: Session,
    kinds: Kinds,
    *,
    path_name: str,
    url: str,
    http: bool = False,
    socks: bool = False,
    csalias: str = "",
    csdomain: str = "",
) -> Message:
    """Connect through a proxy, or with the URL ``none`` directly again."""
    direct = url.lower() == "none"
    proxy = Proxy("", 0) if direct else parse_proxy(f"{ProxyKind.SOCKS}://{url.rpartition('://')[2]}" if socks else url)
    if http and proxy.kind is not ProxyKind.HTTP:
        raise UsageError(f"{url[:200]} is not the address of an HTTP proxy", hint="use TYPE SOCKS")

    def changed(settings: PathSettings) -> PathSettings:
        if direct:
            return settings._replace(proxy="", proxy_alias="", proxy_domain="")
        return settings._replace(proxy=proxy.url if socks else url, proxy_alias=csalias, proxy_domain=csdomain)

    return _with_settings(session, kinds, path_name, changed)


@command("ALTER DISTPATH OPTIONS", PATH)
@command("ALTER RECVPATH OPTIONS", RECVPATH)
def alter_options(
    session: Session,
    kinds: Kinds,
    *,
    path_name: str,
    autorestart: tuple[str | int, ...] = (),
    critical: str = "",
    eofdelay: int | None = None,
) -> Message:
    """Set when Manager restarts the path, whether it is critical, and how long it waits at the end of its trail."""
    if not autorestart and not critical and eofdelay is None:
        raise UsageError("OPTIONS requires AUTORESTART, CRITICAL or EOFDELAY.", hint="use CRITICAL YES, for example")

    given = dict(zip(map(str, autorestart[::2]), map(int, autorestart[1::2]), strict=True))
    for name, most in (("RETRIES", _MOST_RETRIES), ("DELAY", _LONGEST_DELAY)):
        if given.get(name, 0) > most:
            raise UsageError(f"{name}: {given[name]} is not in the range 0 to {most}")

    def changed(settings: PathSettings) -> PathSettings:
        if autorestart:
            settings = settings._replace(retries=given["RETRIES"], delay=given.get("DELAY", 0))
        if critical:
            settings = settings._replace(critical=critical == "YES")
        return settings if eofdelay is None else settings._replace(eof_delay=eofdelay)

    return _with_settings(session, kinds, path_name, changed)


@command("ALTER DISTPATH AUTHENTICATION", PATH)
@command("ALTER RECVPATH AUTHENTICATION", RECVPATH)
def alter_authentication(
    session: Session, kinds: Kinds, *, path_name: str, certificate: str = "", useridalias: str | tuple[str, ...] = ""
) -> Message:
    """Change how the path signs in to the other home."""
    login = (useridalias,) if isinstance(useridalias, str) else useridalias
    given = ("CERTIFICATE", certificate) if certificate else ("USERIDALIAS", *login)
    return _with_options(session, kinds, path_name, lambda options: signing_in(options, given))


def _with_settings(
    session: Session, kinds: Kinds, pattern: str, change: Callable[[PathSettings], PathSettings]
) -> Message:
    return _with_options(session, kinds, pattern, lambda options: options._replace(path=change(options.path)))


def _with_options(
    session: Session, kinds: Kinds, pattern: str, change: Callable[[GroupOptions], GroupOptions]
) -> Message:
    return _altered(
        session, kinds, pattern, lambda found: found.checkpoint._replace(options=change(found.checkpoint.options))
    )


def _altered(
    session: Session, kinds: Kinds, pattern: str, change: Callable[[View], Checkpoint], lines: list[str] | None = None
) -> Message:
    """Save what ``change`` makes of each path. All must be stopped, since a running process owns its checkpoint.

    ``lines``: what ``change`` says about a path is added to it.
    """
    texts = [] if lines is None else lines
    found, errors = select(session, kinds, pattern)
    for each in found:
        require_stopped(each, "altered")
    for each in found:
        with registrations.held(session, each, "altered") as group:
            group.save(change(group.found))
        texts.append(_ALTERED[kinds])
    return Message(tuple(texts), tuple(errors))
