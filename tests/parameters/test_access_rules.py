"""ACCESSRULE: which rule decides about a connection, and rules that are not valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.errors import ParameterError
from ggshell.parameters.access_rules import AccessRules, Program
from ggshell.parameters.loading import examine, load_manager


def rules(tmp_path: Path, *lines: str) -> AccessRules:
    """The rules of a Manager file."""
    file = tmp_path / "mgr.prm"
    file.write_text("".join(f"{line}\n" for line in ("PORT 7809", *lines)))
    return load_manager(file).access


def test_without_a_rule_that_fits_a_connection_is_allowed(tmp_path: Path) -> None:
    assert AccessRules().allows(Program.COLLECTOR, "10.1.2.3", "")
    found = rules(tmp_path, "ACCESSRULE, PROG COLLECTOR, IPADDR 10.1.2.3, DENY")
    assert not found.allows(Program.COLLECTOR, "10.1.2.3", "")
    assert found.allows(Program.COLLECTOR, "10.1.2.4", "")
    assert found.allows(Program.MANAGER, "10.1.2.3", "")


def test_rules_without_priorities_apply_in_the_order_of_the_file(tmp_path: Path) -> None:
    """The first example of the vendor's manual."""
    found = rules(
        tmp_path,
        "ACCESSRULE, PROG *, IPADDR 194.168.11.102, ALLOW",
        "ACCESSRULE, PROG *, IPADDR 205.*, ALLOW",
        "ACCESSRULE, PROG *, IPADDR *, DENY",
    )
    allowed = {
        ip: found.allows(Program.MANAGER, ip, "")
        for ip in ("194.168.11.102", "194.168.11.10", "205.1.2.3", "20.5.1.2", "::1")
    }
    assert allowed == dict(zip(allowed, (True, False, True, False, False), strict=True))


def test_priorities_apply_before_the_order_of_the_file(tmp_path: Path) -> None:
    """The second example of the vendor's manual, and a rule without a priority, which comes last."""
    found = rules(
        tmp_path,
        "ACCESSRULE, PROG *, ALLOW",
        "ACCESSRULE, PROG *, DENY, PRI 99",
        "ACCESSRULE, PROG SERVER, ALLOW, PRI 1",
        "ACCESSRULE, PROG GGSCI, IPADDR 122.11.12.13, PRI 1, ALLOW",
    )
    assert found.allows(Program.COLLECTOR, "10.1.2.3", "")
    assert found.allows(Program.SHELL, "122.11.12.13", "")
    assert not found.allows(Program.SHELL, "122.11.12.14", "")
    assert not found.allows(Program.MANAGER, "122.11.12.13", "")


@pytest.mark.parametrize(
    ("name", "programs"),
    [
        ("GGSCI", {Program.SHELL}),
        ("AdminClient", {Program.SHELL}),
        ("mgr", {Program.MANAGER}),
        ("MANAGER", {Program.MANAGER}),
        ("GUI", {Program.MANAGER}),
        ("REPLICAT", {Program.REPLICAT}),
        ("COLLECTOR", {Program.COLLECTOR}),
        ("SERVER", {Program.COLLECTOR}),
        ("*", set(Program)),
    ],
)
def test_every_name_of_a_program_is_known(tmp_path: Path, name: str, programs: set[Program]) -> None:
    found = rules(tmp_path, f"ACCESSRULE, PROG {name}, DENY")
    assert {each for each in Program if not found.allows(each, "10.1.2.3", "")} == programs


@pytest.mark.parametrize(
    ("address", "ip", "fits"),
    [
        ("*", "10.1.2.3", True),
        ("205.168.*.*", "205.168.1.2", True),
        ("205.168.*.*", "205.169.1.2", False),
        ("10.1.*", "10.11.2.3", False),
        ("10.1.0.0/16", "10.1.255.3", True),
        ("10.1.0.0/255.255.0.0", "10.1.255.3", True),
        ("10.1.0.0/16", "10.2.0.3", False),
        ("10.1.2.3", "::ffff:10.1.2.3", True),
        ("::ffff:10.1.2.3", "10.1.2.3", True),
        ("10.1.*", "::ffff:10.1.2.3", True),
        ("FE80::1", "fe80:0:0:0:0:0:0:1%eth0", True),
        ("fe80:*", "fe80::1", True),
        ("10.0.0.0/8", "::1", False),
        ("10.0.0.0/8", "local", False),
    ],
)
def test_addresses_are_compared_whatever_their_form(tmp_path: Path, address: str, ip: str, fits: bool) -> None:
    found = rules(tmp_path, f"ACCESSRULE, PROG *, IPADDR {address}, DENY")
    assert found.allows(Program.COLLECTOR, ip, "") is not fits


@pytest.mark.parametrize("option", ["LOGIN_ID john", "USER john"])
def test_a_rule_for_a_user_decides_when_the_user_is_known(tmp_path: Path, option: str) -> None:
    allowing = rules(tmp_path, f"ACCESSRULE, PROG *, {option}, ALLOW", "ACCESSRULE, PROG *, DENY")
    assert allowing.allows(Program.MANAGER, "10.1.2.3", "john")
    assert not allowing.allows(Program.MANAGER, "10.1.2.3", "jane")
    assert not allowing.allows(Program.MANAGER, "10.1.2.3", "")
    assert allowing.allows(Program.MANAGER, "10.1.2.3")  # it may be john
    denying = rules(tmp_path, f"ACCESSRULE, PROG *, {option}, DENY", "ACCESSRULE, PROG *, IPADDR 10.1.2.3, ALLOW")
    assert not denying.allows(Program.MANAGER, "10.1.2.3", "john")
    assert denying.allows(Program.MANAGER, "10.1.2.3", "jane")
    assert denying.allows(Program.MANAGER, "10.1.2.3")  # it may be someone else


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ACCESSRULE, PROG *, IPADDR 10.1.2.3", "requires ALLOW or DENY"),
        ("ACCESSRULE, PROG NOSUCH, ALLOW", "NOSUCH is not a valid program"),
        ("ACCESSRULE, PROG *, IPADDR south.example.com, DENY", "south.example.com is not a valid address"),
        ("ACCESSRULE, PROG *, IPADDR 10.1.2.300, DENY", "10.1.2.300 is not a valid address"),
        ("ACCESSRULE, PROG *, IPADDR 10.1.0.0/40, DENY", "10.1.0.0/40 is not a valid address"),
        ("ACCESSRULE, PROG *, PRI 100, DENY", "PRI"),
        ("ACCESSRULE, PROG *, ALLOW, DENY", "DENY"),
    ],
)
def test_a_rule_that_is_not_valid_is_refused(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ParameterError) as refused:
        rules(tmp_path, line)
    assert message in str(refused.value)


def test_the_password_of_a_rule_is_noted_as_unsupported(tmp_path: Path) -> None:
    line = "ACCESSRULE, PROG *, USER john, PASSWORD ocean1, ENCRYPTKEY lookup1, ALLOW"
    loaded = examine(f"{line}\n", tmp_path / "mgr.prm", "Manager")
    assert loaded.refusals == []
    assert "their own passwords" in loaded.parameters[0].note
    assert loaded.typed.access.rules[0].login == "john"
