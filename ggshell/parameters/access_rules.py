"""The rules of ACCESSRULE: which programs, addresses and users may connect to this home."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from ggshell.parameters.lines import Parameter

LOWEST_PRIORITY: Final = 100
"""The priority of a rule without PRI: after every rule with one."""
_PATTERN: Final = re.compile(r"[0-9A-Fa-f.:*]+")

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


class Program(StrEnum):
    """What connects."""

    SHELL = "GGSCI"
    """A shell that is connected with CONNECT."""
    MANAGER = "MGR"
    """A client of the REST API."""
    REPLICAT = "REPLICAT"
    """An initial load that sends its rows to a Replicat."""
    COLLECTOR = "COLLECTOR"
    """A path or a pump that sends trails."""


_PROGRAMS: Final = {
    "GGSCI": Program.SHELL,
    "ADMINCLIENT": Program.SHELL,
    "MGR": Program.MANAGER,
    "MANAGER": Program.MANAGER,
    "GUI": Program.MANAGER,
    "REPLICAT": Program.REPLICAT,
    "COLLECTOR": Program.COLLECTOR,
    "SERVER": Program.COLLECTOR,
}


class AccessRule(NamedTuple):
    """One rule.

    ``pattern``: of addresses, as text with ``*``; ``network``: instead of a pattern; ``login``: a user, empty for all users;
    ``allow``: false for DENY.
    """

    programs: frozenset[Program]
    pattern: str
    network: IpNetwork | None
    login: str
    priority: int
    allow: bool

    def covers(self, program: Program, address: str) -> bool:
        """Whether the rule is about connections of a program from an address, as ``plain_address`` returns it."""
        if program not in self.programs:
            return False
        if self.network is None:
            return fnmatchcase(address, self.pattern)
        try:
            return ipaddress.ip_address(address) in self.network
        except ValueError:
            return False


class AccessRules(NamedTuple):
    """The rules of a parameter file, the first to apply first."""

    rules: tuple[AccessRule, ...] = ()

    def allows(self, program: Program, ip: str, login: str | None = None) -> bool:
        """Whether a connection is allowed: the first rule that matches applies, and without one it is allowed.

        ``login``: the user, empty for none. None if the user is not known yet: then the result is whether the rules allow
        the connection for any user.
        """
        address = plain_address(ip)
        for rule in self.rules:
            if not rule.covers(program, address):
                continue
            if not rule.login or rule.login == login or (login is None and rule.allow):
                return rule.allow
        return True


def access_rules(found: Iterable[Parameter]) -> AccessRules:
    """Return the rules of a file: in the order of PRI, and those with the same PRI in the order of the file."""
    rules = [access_rule(item) for item in found if item.name == "ACCESSRULE"]
    return AccessRules(tuple(sorted(rules, key=lambda rule: rule.priority)))


def access_rule(item: Parameter) -> AccessRule:
    """Return the rule of an ACCESSRULE. Raises ParameterError."""
    arguments = item.args
    if "allow" not in arguments and "deny" not in arguments:
        raise item.wrong("ACCESSRULE requires ALLOW or DENY", page="ACCESSRULE")
    wanted = str(arguments.get("prog", "*"))
    programs = frozenset(program for name, program in _PROGRAMS.items() if fnmatchcase(name, wanted.upper()))
    if not programs:
        raise item.wrong(f"{wanted} is not a valid program", "prog", hint=f"use {', '.join(_PROGRAMS)} or *")
    pattern, network = _addresses(item)
    login = str(arguments.get("login_id", "") or arguments.get("user", ""))
    return AccessRule(programs, pattern, network, login, arguments.get("pri", LOWEST_PRIORITY), "allow" in arguments)


def _addresses(item: Parameter) -> tuple[str, IpNetwork | None]:
    """Return the pattern, or the network, of IPADDR. Raises ParameterError."""
    text = str(item.args.get("ipaddr", "*"))
    if "*" in text and _PATTERN.fullmatch(text):
        return text.lower(), None
    try:
        return "", ipaddress.ip_network(plain_address(text), strict=False)
    except ValueError:
        raise item.wrong(
            f"{text[:80]} is not a valid address",
            "ipaddr",
            hint="use an IP address, a pattern (205.168.*) or a network (10.1.0.0/16)",
        ) from None


def plain_address(text: str) -> str:
    """Return an IP address in one form: without a zone, and as IPv4 if it is an IPv4 address within IPv6."""
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return text
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)
