"""Roles, settings and privileges outside of the database, which a dump of it does not contain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ggshell.connectors.move_facts import Grant, RoleFacts, Setting
from ggshell.move.checks.sides import Sides
from ggshell.move.findings import ERROR, WARNING, Finding, listed, subject_of


def missing_roles(sides: Sides) -> Iterator[Finding]:
    """Roles that the target lacks, with the script that creates them."""
    missing = [role for role in sides.source.roles if role.name not in sides.target.role_names]
    used = [role for role in missing if role.used]
    if used:
        names = tuple(role.name for role in used)
        text = f"the target lacks roles that own objects or have privileges on them: {listed(names)}"
        action = "run the script in the target, then set their passwords"
        yield Finding(ERROR, "GGS-01031", subject_of(names, "role"), text, action, names, role_script(missing))
    elif missing:
        names = tuple(role.name for role in missing)
        text = f"the target lacks roles that are members of the owners, or the reverse: {listed(names)}"
        action = "run the script in the target, then set their passwords; omit unused roles"
        yield Finding(WARNING, "GGS-01031", subject_of(names, "role"), text, action, names, role_script(missing))


def role_script(roles: Sequence[RoleFacts]) -> str:
    """The statements that create roles, then their settings and memberships."""
    lines = [role.create for role in roles] + [line for role in roles for line in role.further]
    return "".join(f"{line}\n" for line in lines)


def settings(sides: Sides) -> Iterator[Finding]:
    """Settings of database and roles that differ at the target. Those of roles that it lacks are in the script above."""
    there = set(sides.target.facts.settings())
    lacking = [each for each in sides.source.facts.settings() if each not in there and _applies(each, sides)]
    if lacking:
        names = tuple(_named(each) for each in lacking)
        text = f"settings of the database and of roles are not moved, and the target does not have {listed(names)}"
        script = "".join(f"{sides.target.facts.setting_statement(each)}\n" for each in lacking)
        action = "run those statements of the script in the target that it needs"
        yield Finding(WARNING, "GGS-01032", subject_of(names, "setting"), text, action, names, script)


def _applies(setting: Setting, sides: Sides) -> bool:
    """Whether a setting concerns this database: its own, and those of its roles."""
    if setting.name == "default_transaction_read_only" and not setting.role:
        return False
    used = {role.name for role in sides.source.roles}
    known = not setting.role or setting.of_database or setting.role in used
    return known and (not setting.role or setting.role in sides.target.role_names)


def _named(setting: Setting) -> str:
    return f"{setting.role + ': ' if setting.role else ''}{setting.name} = {setting.value}"


def grants(sides: Sides) -> Iterator[Finding]:
    """Privileges on the database itself that differ."""
    here, there = set(sides.source.facts.grants()), set(sides.target.facts.grants())
    owners = sides.target.role_names
    missing = sorted(each for each in here - there if not each.role or each.role in owners)
    excess = sorted(
        each for each in there - here if (each.role, each.privilege) not in {(h.role, h.privilege) for h in here}
    )
    if missing or excess:
        names = (*(f"+{_granted(each)}" for each in missing), *(f"-{_granted(each)}" for each in excess))
        text = f"privileges on the database itself are not moved; at the target, add (+) or revoke (-): {listed(names)}"
        facts = sides.target.facts
        lines = [facts.grant_statement(each) for each in missing]
        lines += [facts.grant_statement(each, revoke=True) for each in excess]
        script = "".join(f"{line}\n" for line in lines)
        action = "run the script in the target"
        yield Finding(WARNING, "GGS-01033", subject_of(names, "privilege"), text, action, names, script)


def _granted(grant: Grant) -> str:
    return f"{grant.privilege} for {grant.role or 'PUBLIC'}"
