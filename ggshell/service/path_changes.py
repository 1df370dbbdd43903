"""Changes that requests make to both kinds of paths, as statements: position, rule, size, compression and login."""

from __future__ import annotations

from ggshell.cli.groups import View
from ggshell.home.checkpoint import PathSettings
from ggshell.service.call import Call
from ggshell.service.path_bodies import (
    Endpoint,
    PathBody,
    alias_of,
    compression_of,
    login_of,
    place_of,
    proxy_of,
    rule_of,
    rule_words,
    size_of,
)
from ggshell.service.path_options import path_options
from ggshell.service.refusals import not_stored
from ggshell.service.statement_words import word


def set_up(call: Call, name: str, body: PathBody, remote: Endpoint | None) -> None:
    """Set what the ADD statement of a new path cannot say. ``name``: with its kind; ``remote``: the end in another home."""
    if compression_of(remote):
        call.run(f"ALTER {name} TARGET COMPRESSION ON")
    if proxy := proxy_of(remote):
        call.run(f"ALTER {name} TARGET PROXY {proxy}")
    if (rule := rule_of(body.ruleset)) is not None and rule[0]:
        call.run(f"ALTER {name} {rule_words(rule)}")
    _set_options(call, name, body, PathSettings())
    if place := place_of(body.begin, new=True):
        call.run(f"ALTER {name} BEGIN {place}", told=True)


def _set_options(call: Call, name: str, body: PathBody, before: PathSettings) -> None:
    """Set what ``options`` say and is different; the others have no effect and are not stored."""
    found = path_options(body.options)
    if found.words and found.applied_to(before) != before:
        call.run(f"ALTER {name} OPTIONS {found.words}", told=True)
    if found.others:
        instead = "autoRestart, critical and eofDelayCSecs are supported"
        call.said.append(not_stored(f"{', '.join(found.others)[:200]} in the options of a path", instead))


def change(call: Call, found: View, body: PathBody, remote: Endpoint | None) -> None:
    """Change what differs. ``remote``: the end in another home, None if the request does not name one."""
    kind, options = found.type, found.checkpoint.options
    name = f"{kind} {word(found.group)}"
    if remote is not None:
        if (proxy := proxy_of(remote)) and remote.proxy and remote.proxy.get("uri") != options.path.proxy:
            call.run(f"ALTER {name} TARGET PROXY {proxy}", told=True)
        alias, wanted = alias_of(remote), compression_of(remote)
        if alias and alias != options.access_alias:
            call.run(f"ALTER {name} AUTHENTICATION {login_of(remote)}", told=True)
        if wanted is not None and wanted is not (options.compression is not None):
            call.run(f"ALTER {name} TARGET COMPRESSION {'ON' if wanted else 'OFF'}", told=True)
    if (size := size_of(body.target)) and size != str(found.checkpoint.write[0].megabytes):
        call.run(f"ALTER {name} TARGET SIZEMB {word(size)}", told=True)
    rule = rule_of(body.ruleset)
    if rule is not None and rule != (options.rule_objects, options.rule_excludes):
        call.run(f"ALTER {name} {rule_words(rule)}", told=True)
    _set_options(call, name, body, options.path)
    if place := place_of(body.begin):
        call.run(f"ALTER {name} BEGIN {place}", told=True)
