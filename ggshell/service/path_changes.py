"""Changes that requests make to both kinds of paths, as statements: position, rule, size, compression and login."""

from __future__ import annotations

from ggshell.cli.groups import View
from ggshell.service.call import Call
from ggshell.service.path_bodies import (
    Endpoint,
    PathBody,
    alias_of,
    compression_of,
    login_of,
    place_of,
    rule_of,
    rule_words,
    size_of,
)
from ggshell.service.statement_words import word


def set_up(call: Call, name: str, body: PathBody, remote: Endpoint | None) -> None:
    """Set what the ADD statement of a new path cannot say. ``name``: with its kind; ``remote``: the end in another home."""
    if compression_of(remote):
        call.run(f"ALTER {name} TARGET COMPRESSION ON")
    if (rule := rule_of(body.ruleset)) is not None and rule[0]:
        call.run(f"ALTER {name} {rule_words(rule)}")
    if place := place_of(body.begin, new=True):
        call.run(f"ALTER {name} BEGIN {place}", told=True)


def change(call: Call, found: View, body: PathBody, remote: Endpoint | None) -> None:
    """Change what differs. ``remote``: the end in another home, None if the request does not name one."""
    kind, options = found.type, found.checkpoint.options
    name = f"{kind} {word(found.group)}"
    if remote is not None:
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
    if place := place_of(body.begin):
        call.run(f"ALTER {name} BEGIN {place}", told=True)
