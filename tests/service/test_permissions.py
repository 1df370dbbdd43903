"""The table of permissions: every statement has an entry, HELP SECURITY shows it, and options can require more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import run_ggshell

from ggshell.cli.execute import parse
from ggshell.cli.local_statements import AT_THE_HOME, LOCAL
from ggshell.cli.registry import COMMANDS
from ggshell.errors import HttpError, UsageError
from ggshell.home.home import Home
from ggshell.home.users import Role
from ggshell.language import pages
from ggshell.language.grammar import Parsed
from ggshell.parameters.service_parameters import ServiceParameters
from ggshell.service.named_files import Bounds
from ggshell.service.permissions import ROLES, require_permission
from ggshell.service.sign_in import Principal


def required_role(statement: str, home: Path, name: str = "uma") -> Role:
    """The lowest role that may run a statement."""
    for role in (Role.USER, Role.OPERATOR, Role.ADMINISTRATOR, Role.SECURITY):
        try:
            require_permission(Principal(name, role), parse(statement), Bounds(Home(home)))
        except HttpError as error:
            assert error.status == 403
        else:
            return role
    raise AssertionError(statement)


def test_every_statement_has_exactly_one_entry() -> None:
    keys = set(COMMANDS.load_all())
    assert keys == ROLES.keys() | LOCAL | AT_THE_HOME
    assert not (ROLES.keys() & (LOCAL | AT_THE_HOME)) and not LOCAL & AT_THE_HOME


def page_role(key: str) -> str:
    """The role that HELP SECURITY shows for a statement: that of the longest entry that fits."""
    text = pages.index("topics")["security"].read_text()
    found: dict[str, str] = {}
    for role, entries in re.findall(r"- (USER|OPERATOR|ADMINISTRATOR|SECURITY): ((?:.+\n)(?:  .+\n)*)", text):
        plain, _, actions = " ".join(entries.split()).partition("; SEND with ")
        found |= dict.fromkeys(plain.split(", "), role)
        if key.startswith("SEND ") and key.rsplit(maxsplit=1)[-1] in actions.split(", "):
            found[key] = role
    fitting = [entry for entry in found if f"{key} ".startswith(f"{entry} ")]
    return found[max(fitting, key=len)] if fitting else "none"


def test_help_security_shows_the_table() -> None:
    assert {key: page_role(key) for key in ROLES} == {key: role.name for key, role in ROLES.items()}


@pytest.mark.parametrize(
    ("statement", "role"),
    [
        ("INFO ALL", Role.USER),
        ("VIEW REPORT ./dirrpt/EXT1.rpt", Role.USER),
        ("VIEW REPORT /etc/passwd", Role.SECURITY),
        ("VIEW PARAMS dirrpt/../../x.prm", Role.SECURITY),
        ("SEND EXTRACT e1, SHOWTRANS", Role.USER),
        ("SEND EXTRACT e1, SHOWTRANS, FILE x.txt", Role.ADMINISTRATOR),
        ("SEND EXTRACT e1, SHOWTRANS, FILE /tmp/x.txt", Role.SECURITY),
        ("SEND EXTRACT e1, SHOWTRANS, FILE /tmp/x.txt DETAIL", Role.SECURITY),
        ("SEND MANAGER GETPARAMINFO FILE /tmp/x.txt", Role.SECURITY),
        ("SEND EXTRACT e1, STOP", Role.OPERATOR),
        ("STATS EXTRACT e1, RESET", Role.ADMINISTRATOR),
        ("LAG REPORT FROM north", Role.USER),
        ("LAG REPORT FROM u@h:1/d", Role.ADMINISTRATOR),
        ("LAG REPORT TO lag.html, FROM north", Role.ADMINISTRATOR),
        ("LAG REPORT TO /tmp/lag.html, FROM north", Role.SECURITY),
        ("COMPARE north TO south, TABLE shop.*", Role.OPERATOR),
        ("COMPARE north TO south, TABLE shop.*, REPAIR x.sql", Role.ADMINISTRATOR),
        ("DBLOGIN USERIDALIAS north", Role.USER),
        ("DBLOGIN USERID u@h:1/d, PASSWORD x", Role.ADMINISTRATOR),
        ("TRAIL SQL 'SELECT 1', FROM ./dirdat/ea", Role.SECURITY),
        ("TRAIL COUNT FROM ./dirdat/ea", Role.USER),
        ("TRAIL COUNT FROM ./dirdat/ea, /tmp/x/ea", Role.SECURITY),
        ("TRAIL GAPS FROM /tmp/x/ea", Role.SECURITY),
        ("TRAIL ASOF CSN 1, TABLE s.t, FROM ../east/dirdat/ea", Role.SECURITY),
        ("LAG REPORT FROM ../east/dirlag", Role.SECURITY),
        ("LAG REPORT FROM ./dirlag", Role.USER),
        ("COMPARE /tmp/a TO south, TABLE shop.*", Role.SECURITY),
        ("INFO EXTTRAIL *", Role.USER),
        ("ADD MASTERKEY", Role.ADMINISTRATOR),
        ("RENEW MASTERKEY", Role.ADMINISTRATOR),
        ("DELETE MASTERKEY VERSION 1", Role.ADMINISTRATOR),
        ("UNDELETE MASTERKEY VERSION 1", Role.ADMINISTRATOR),
        ("PURGE WALLET", Role.SECURITY),
        ("ADD EXTTRAIL ./dirdat/ea, EXTRACT e1", Role.ADMINISTRATOR),
        ("ADD EXTTRAIL /tmp/x/ea, EXTRACT e1", Role.SECURITY),
        ("ADD EXTTRAIL \\tmp\\x\\ea, EXTRACT e1", Role.SECURITY),
        ("ADD EXTTRAIL .\\dirdat\\ea, EXTRACT e1", Role.ADMINISTRATOR),
        ("ADD REPLICAT r1, EXTTRAIL /tmp/x/ea", Role.SECURITY),
        ("ADD REPLICAT r1 EXTFILE /tmp/x/ea", Role.SECURITY),
        ("ADD DISTPATH d1 SOURCE ./dirdat/ea TARGET /tmp/x/ea", Role.SECURITY),
        ("ADD DISTPATH d1 SOURCE trail://h:1/services/v2/sources?trail=/tmp/x/ea TARGET ./dirdat/ra", Role.SECURITY),
        ("ADD DISTPATH d1 SOURCE ./dirdat/ea TARGET file:///tmp/x/ea", Role.SECURITY),
        ("ADD DISTPATH d1 SOURCE ./dirdat/ea TARGET file://./dirdat/ra", Role.ADMINISTRATOR),
        ("ADD REPLICAT r1 SPARK, EXTTRAIL ./dirdat/ea, TARGET ./lake", Role.ADMINISTRATOR),
        ("ADD REPLICAT r1 SPARK, EXTTRAIL ./dirdat/ea, TARGET /tmp/lake", Role.SECURITY),
        ("ADD REPLICAT r1 SPARK, EXTTRAIL ./dirdat/ea, TARGET parquet:/tmp/lake", Role.SECURITY),
        ("DBLOGIN USERID duckdb:///tmp/x.duckdb PASSWORD x", Role.SECURITY),
        ("DBLOGIN SOURCEDB redo:///tmp/redo", Role.SECURITY),
        ("DBLOGIN USERID 'host=h sslkey=/tmp/k dbname=d' PASSWORD x", Role.SECURITY),
        ("DBLOGIN USERID 'postgresql://u@h/d?sslkeylogfile=/tmp/k' PASSWORD x", Role.SECURITY),
        ("DBLOGIN USERID 'host=/tmp dbname=d sslrootcert=system' PASSWORD x", Role.ADMINISTRATOR),
        ("COMPARE duckdb:///tmp/x.duckdb TO south, TABLE shop.*", Role.SECURITY),
        ("COMPARE duckdb://x.duckdb TO south, TABLE shop.*", Role.ADMINISTRATOR),
        ("COMPARE south TO delta:/tmp/lake, TABLE shop.*", Role.SECURITY),
        ("COMPARE south TO parquet:../lake, TABLE shop.*", Role.SECURITY),
        ("COMPARE south TO delta:s3://bucket/lake, TABLE shop.*", Role.ADMINISTRATOR),
        ("COMPARE south TO iceberg:./lake, TABLE shop.*", Role.OPERATOR),
        ("ALTER CREDENTIALSTORE ADD USER duckdb:///tmp/x PASSWORD p ALIAS a", Role.SECURITY),
        ("ALTER CREDENTIALSTORE DELETE USER duckdb:///tmp/x ALIAS a", Role.ADMINISTRATOR),
        ("ALTER USER uma, PASSWORD another-horse", Role.USER),
        ("ALTER USER uma, ROLE SECURITY", Role.SECURITY),
        ("ALTER USER jane, PASSWORD another-horse", Role.SECURITY),
        ("INFO PEER", Role.SECURITY),
        (f"ADD PEER south, ADDRESS south:7810, FINGERPRINT {'0f' * 32}", Role.SECURITY),
        ("ADD TRACETABLE", Role.USER),  # not supported: only a note
    ],
)
def test_the_role_of_a_statement_depends_on_its_options_too(tmp_path: Path, statement: str, role: Role) -> None:
    assert required_role(statement, tmp_path) is role


def test_the_role_distribution_runs_no_statement(tmp_path: Path) -> None:
    every = [*ROLES, "ALTER USER dora, PASSWORD another-horse", "ADD TRACETABLE"]
    for key in every:
        parsed = parse(key) if key in every[-2:] else Parsed(key, {}, key)
        with pytest.raises(HttpError, match="only sends trails") as refused:
            require_permission(Principal("dora", Role.DISTRIBUTION), parsed, Bounds(Home(tmp_path)))
        assert refused.value.status == 403


@pytest.mark.parametrize(
    "statement", ["OBEY x.oby", "SHELL ls", "SET FORMAT json", "EDIT PARAMS e1", "STOP SERVICE", "EXIT"]
)
def test_statements_of_a_shell_are_refused_for_every_role(tmp_path: Path, statement: str) -> None:
    with pytest.raises(UsageError, match=r"carried out by the shell|needs a shell on the machine"):
        require_permission(Principal("admin", Role.SECURITY), parse(statement), Bounds(Home(tmp_path)))


@pytest.mark.parametrize("file", ["dirwlt/service.key", "./dircrd/credentials.ggs", "dirpcs/x", "DIRWLT/users.ggs"])
def test_files_with_secrets_are_refused_for_every_role(tmp_path: Path, file: str) -> None:
    with pytest.raises(UsageError, match="does not show files"):
        require_permission(Principal("admin", Role.SECURITY), parse(f"VIEW REPORT {file}"), Bounds(Home(tmp_path)))


@pytest.mark.parametrize(
    "file", ["./ENCKEYS", "keys/cwallet.sso", "dirprm/e1.prm", "./GLOBALS", "x.inc", "own/key.pem"]
)
def test_a_report_is_no_file_with_keys_or_passwords(tmp_path: Path, file: str) -> None:
    bounds = Bounds(Home(tmp_path), secrets=(tmp_path / "own" / "key.pem",))
    with pytest.raises(UsageError, match=r"contains keys|is not a report"):
        require_permission(Principal("admin", Role.SECURITY), parse(f"VIEW REPORT {file}"), bounds)


@pytest.mark.parametrize("file", ["dirprm/e1.prm", "GLOBALS", "dirchk/E1.cpe", "dirdat/../dirprm/x"])
def test_no_statement_writes_parameter_files_and_checkpoints(tmp_path: Path, file: str) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        require_permission(
            Principal("admin", Role.SECURITY), parse(f"SEND MANAGER GETPARAMINFO FILE {file}"), Bounds(Home(tmp_path))
        )


def test_a_folder_of_allowpath_counts_as_the_homes(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    (other / "trails").mkdir(parents=True)
    (other / "secret").mkdir()
    (other / "trails" / "link").symlink_to(other / "secret")
    bounds = Bounds.of(Home(home), ServiceParameters(allowed=(str(other / "trails"),)))
    jane = Principal("jane", Role.ADMINISTRATOR)
    require_permission(jane, parse(f"ADD EXTTRAIL {other}/trails/ea, EXTRACT e1"), bounds)
    require_permission(jane, parse(f"ADD EXTTRAIL {other}/trails/deep/ea, EXTRACT e1"), bounds)
    for folder in ("secret", "trails/link", "trails/../secret", "trails2"):
        with pytest.raises(HttpError, match="is outside the home"):
            require_permission(jane, parse(f"ADD EXTTRAIL {other}/{folder}/ea, EXTRACT e1"), bounds)


def test_view_params_and_view_report_follow_no_link_out_of_the_home(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    for folder in (home / "dirprm", home / "dirrpt", other):
        folder.mkdir(parents=True)
    (other / "x").write_text("secret")
    for name in ("dirprm/e1.prm", "dirrpt/E1.rpt", "dirrpt/E10.rpt", "GLOBALS"):
        (home / name).symlink_to(other / "x")
    (home / "dirrpt" / "E1.dsc").symlink_to(other / "y")
    for statement in (
        *("VIEW PARAMS e1", "VIEW PARAMS GLOBALS", "VIEW GLOBALS"),
        *("VIEW REPORT e1", "VIEW REPORT e10", "VIEW DISCARD e1"),
    ):
        assert required_role(statement, home) is Role.SECURITY, statement
    for statement in ("VIEW PARAMS e2", "VIEW REPORT e2", "VIEW DISCARD e2"):
        assert required_role(statement, home) is Role.USER, statement


def test_symbolic_links_lead_out_of_the_home_except_its_own_folders(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    for folder in (home / "dirrpt", home / "dirwlt", other / "trails"):
        folder.mkdir(parents=True)
    (other / "ea000000000").touch()
    (home / "dirdat").symlink_to(other / "trails")
    assert required_role("TRAIL COUNT FROM ./dirdat/ea", home) is Role.USER
    (home / "link").symlink_to(other)
    (home / "dirdat" / "ra000000000").symlink_to(other / "ea000000000")
    (home / "dirrpt" / "circle").symlink_to("circle")
    for trail in ("./link/ea", "./l*/ea", "./l*/e*", "./dirdat/ra", "./dirdat", "./dirdat/r*", "./dirrpt/circle"):
        assert required_role(f"TRAIL COUNT FROM {trail}", home) is Role.SECURITY, trail
    assert required_role("VIEW REPORT link/ea000000000", home) is Role.SECURITY
    (home / "dirrpt" / "x.rpt").symlink_to(home / "dirwlt" / "users.ggs")
    with pytest.raises(UsageError, match="does not show files of dirwlt"):
        required_role("VIEW REPORT dirrpt/x.rpt", home)


@pytest.mark.slow
def test_the_trails_of_groups_belong_to_the_home_wherever_they_are(tmp_path: Path) -> None:
    home, trail = tmp_path / "home", tmp_path / "other" / "ea"
    statements = f"CREATE SUBDIRS; ADD EXTRACT e1, SOURCEISTABLE; ADD EXTTRAIL {trail}, EXTRACT e1"
    assert run_ggshell("--home", home, "-c", statements).returncode == 0
    assert required_role(f"TRAIL COUNT FROM {trail}", home) is Role.USER
    assert required_role(f"TRAIL COUNT FROM {trail}000000003", home) is Role.USER
    assert required_role(f"TRAIL COUNT FROM {trail.parent}", home) is Role.SECURITY
    assert required_role(f"TRAIL COUNT FROM {trail.parent}/eb", home) is Role.SECURITY
