"""A shell that is connected to the service of another home."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from pathlib import Path

import pytest
from cli.terminal import Terminal
from command_line import run_ggshell
from remote_shell import RemoteShell
from service_client import PASSWORD, RunningService

pytestmark = pytest.mark.slow

STATEMENTS = (
    "ADD EXTRACT e1, SOURCEISTABLE",
    "INFO ALL",
    "INFO EXTRACT *",
    "INFO EXTRACT e1, DETAIL",
    "INFO EXTRACT e1, SHOWCH",
    "INFO nope",
    "STATUS ER *",
    "START EXTRACT e1",
    "STOP EXTRACT e1",
    "STATS EXTRACT e1",
    "LAG EXTRACT *",
    "SEND EXTRACT e1, STATUS",
    "VIEW REPORT e1",
    "VIEW PARAMS e1",
    "INFO PARAM TABLE",
    "INFO EXTTRAIL *",
    "INFO CREDENTIALSTORE",
    "INFO MASTERKEY",
    "INFO HEARTBEATTABLE",
    "INFO TRANDATA s.t",
    "DBLOGIN USERIDALIAS nowhere",
    "INFO USERS",
    "INFO PEERS",
    "INFO MANAGER",
    "INFO SERVICE",
    "TRAIL COUNT FROM ./dirdat/zz",
    "ADD TRACETABLE",
    "DELETE EXTRACT e1",
    "DELETE EXTRACT e1",
)


def unnumbered(text: str) -> str:
    """A text without its numbers: times and ages differ between two runs."""
    return re.sub(r"\d+", "0", text)


@pytest.mark.parametrize("style", ["ggsci", "table", "vertical", "csv", "json", "markdown"])
def test_every_statement_has_the_output_of_a_local_shell(
    service: RunningService, remote: RemoteShell, style: str
) -> None:
    (service.home / "dirprm" / "e1.prm").write_text("EXTRACT e1\nSOURCEISTABLE\nUSERID u, PASSWORD p\nTABLE s.t;\n")
    words = ("--format", style, "--continue-on-error", "-c", "\n".join(STATEMENTS))
    there = remote.run(*words)
    here = run_ggshell("--home", service.home, *words)
    assert unnumbered(there.stdout) == unnumbered(here.stdout)
    assert unnumbered(there.stderr) == unnumbered(here.stderr)
    assert there.returncode == here.returncode == 1
    assert not remote.home.exists()


def test_a_syntax_error_is_found_before_anything_runs(service: RunningService, remote: RemoteShell) -> None:
    done = remote.run("-c", "ADD EXTRACT e5, SOURCEISTABLE; ADD EXTRACT e6, NONSENSE")
    assert (done.returncode, done.stdout) == (3, "")
    assert "E5" not in service.run("INFO ALL")


def test_an_obey_file_is_read_here_and_carried_out_there(remote: RemoteShell, tmp_path: Path) -> None:
    (tmp_path / "inner.oby").write_text("INFO MANAGER\n")
    (tmp_path / "x.oby").write_text(f"ALLOWNESTED\nOBEY {tmp_path}/inner.oby\nSTATUS MANAGER\nSHELL echo here\n")
    done = remote.run(tmp_path / "x.oby")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Manager is DOWN") == 2
    assert done.stdout.endswith("here\n")


def test_statements_that_need_a_shell_in_the_home_are_refused(service: RunningService, remote: RemoteShell) -> None:
    for statement in ("STOP SERVICE", "START SERVICE", "RESTART SERVICE", "LOGDUMP"):
        done = remote.run("-c", statement)
        assert (done.returncode, "needs a shell on the machine of the home" in done.stderr) == (1, True)
    assert "running" in service.run("INFO SERVICE").lower()


def test_the_prompt_shows_the_connection_and_disconnect_ends_it(service: RunningService, remote: RemoteShell) -> None:
    out = remote.session(f"CONNECT {service.url} AS admin\nSTATUS MANAGER\nDISCONNECT\nINFO nope\nDISCONNECT\nEXIT\n")
    assert "1> \nConnected to " in out
    assert f"GGSCI ({service.url} Local) 2> " in out
    assert f"GGSCI ({service.url} Local) 3> \nDisconnected from {service.url}." in out
    assert re.search(r"GGSCI \([^/]*\) 4> .*the home .* does not exist", out)
    assert "ERROR: not connected to a service." in out


def test_the_admin_client_has_its_own_prompt_and_no_home(service: RunningService, remote: RemoteShell) -> None:
    connect = f"CONNECT {service.url} DEPLOYMENT Local AS admin PASSWORD {PASSWORD}"
    text = f"INFO ALL\n{connect}\nSTATUS MANAGER\nDISCONNECT\nHISTORY\nEXIT\n"
    out = remote.session(text, "adminclient")
    assert "ggshell Administration Client" in out
    assert "OGG (not connected) 1> ERROR: not connected to a service.\n  Hint: CONNECT url AS user" in out
    assert f"OGG ({service.url} Local) 3> " in out
    assert "OGG (not connected) 5> " in out
    assert PASSWORD not in out


@pytest.mark.parametrize(
    "connect",
    ["CONNECT http://127.0.0.1:9 AS admin", "connect nonsense as admin", "CONNECT http://h:1 WONDER", "CONNECT"],
)
def test_statements_after_a_failed_connect_do_not_reach_the_local_home(remote: RemoteShell, connect: str) -> None:
    out = remote.session(f"{connect}\nADD CREDENTIALSTORE\nDISCONNECT\nADD CREDENTIALSTORE\nEXIT\n")
    assert "GGSCI (not connected) 2> ERROR: not connected to a service." in out
    assert "Credential store created" in out.partition("4> ")[2]


def test_a_batch_that_continues_after_a_failed_connect_does_not_reach_the_local_home(remote: RemoteShell) -> None:
    for connect in ("CONNECT http://127.0.0.1:9 AS admin", "CONNECT http://h:1 WONDER"):
        done = remote.start("--continue-on-error", "-c", f"{connect}; ADD CREDENTIALSTORE")
        assert (done.returncode, "not connected to a service" in done.stderr) == (1, True)
        assert not remote.home.exists()


def test_a_question_of_a_session_is_asked_here(service: RunningService, remote: RemoteShell) -> None:
    service.run("ADD EXTRACT q1, SOURCEISTABLE; ADD EXTRACT q2, SOURCEISTABLE")
    out = remote.session(f"CONNECT {service.url} AS admin\nDELETE EXTRACT q*\nn\nDELETE EXTRACT q*\ny\nEXIT\n")
    assert out.count("Delete 2 groups of EXTRACT Q* (y/n)? ") == 2
    assert "ERROR: not done." in out
    assert "Q1" not in service.run("INFO ALL")
    service.run("ADD EXTRACT q1, SOURCEISTABLE; ADD EXTRACT q2, SOURCEISTABLE")
    done = remote.run("-c", "DELETE EXTRACT q*")
    assert "a confirmation is required: Delete 2 groups of EXTRACT Q*" in done.stderr
    service.run("DELETE EXTRACT q* !")


def test_stored_credentials_and_tokens_connect(service: RunningService, remote: RemoteShell) -> None:
    token = service.client("otto").post("/authorization").response["accessToken"]
    assert remote.start("-c", f"ADD CREDENTIALS prod USER jane PASSWORD {PASSWORD}").returncode == 0
    assert remote.start("-c", f"ADD CREDENTIALS ci TOKEN {token}").returncode == 0
    for name, role in (("prod", "ADMINISTRATOR"), ("ci", "OPERATOR")):
        done = remote.start("-c", f"CONNECT {service.url} AS {name}; STATUS MANAGER", GGSHELL_PASSWORD="")
        assert (done.returncode, f"with role {role}" in done.stdout) == (0, True), done.stderr
    missing = remote.run("-c", "INFO ALL", user="uma", GGSHELL_PASSWORD="")
    assert (missing.returncode, "the password of uma is required" in missing.stderr) == (2, True)


def test_a_wrong_password_or_deployment_is_refused(service: RunningService, remote: RemoteShell) -> None:
    done = remote.run("-c", "INFO ALL", user="jane", GGSHELL_PASSWORD="wrong-horse-7")
    assert (done.returncode, done.stdout) == (1, "")
    assert "GGS-00906" in done.stderr
    assert "is not valid - check both, or ask a user" in done.stderr
    done = remote.run("--deployment", "South", "-c", "INFO ALL")
    assert (done.returncode, "deployment South does not exist" in done.stderr) == (1, True)


def test_the_hint_of_a_refused_request_is_apart_from_its_message(service: RunningService, remote: RemoteShell) -> None:
    out = remote.session(f"CONNECT {service.url} DEPLOYMENT South AS admin\nEXIT\n")
    assert "ERROR: deployment South does not exist\n  Hint: use Local\n" in out


def test_a_failed_connection_is_json_where_json_is_asked_for(remote: RemoteShell) -> None:
    for words, password, code, status in (
        (("--deployment", "South"), PASSWORD, "GGS-00902", 1),
        ((), "wrong-horse-7", "GGS-00906", 1),
        ((), "", "GGS-00002", 2),
    ):
        done = remote.run("--format", "json", *words, "-c", "INFO ALL", user="uma", GGSHELL_PASSWORD=password)
        found = json.loads(done.stdout)
        assert (done.returncode, done.stderr, found["status"], found["code"]) == (status, "", "error", code)
        assert found["statement"].startswith(f"CONNECT {remote.url} ")
        assert found["hint"]


def test_hints_about_a_missing_password_fit_the_statement(remote: RemoteShell) -> None:
    done = remote.start("-c", "ADD CREDENTIALS prod USER admin")
    assert "specify it with PASSWORD" in done.stderr
    assert "credential store" not in done.stderr


def test_a_role_that_is_too_low_is_refused_and_changes_are_recorded(
    service: RunningService, remote: RemoteShell
) -> None:
    assert remote.run("-c", "INFO ALL", user="uma").returncode == 0
    done = remote.run("-c", "ADD EXTRACT x1, SOURCEISTABLE", user="otto")
    assert (done.returncode, "requires Administrator" in done.stderr) == (1, True)
    done = remote.run("-c", "ADD EXTRACT x1, SOURCEISTABLE; DELETE EXTRACT x1", user="jane")
    assert done.returncode == 0, done.stderr
    assert "GGSCI command (jane@127.0.0.1): ADD EXTRACT x1, SOURCEISTABLE." in (service.home / "ggserr.log").read_text()


def test_a_service_that_has_gone_is_reported_and_a_new_one_is_signed_in_to(
    service: RunningService, remote: RemoteShell
) -> None:
    stop = f"SHELL {' '.join(_shell(service, 'STOP SERVICE'))}"
    start = f"SHELL {' '.join(_shell(service, 'START SERVICE'))}"
    out = remote.session(
        f"CONNECT {service.url} AS admin\n{stop}\nSTATUS MANAGER\n{start}\nSTATUS MANAGER\nSTATUS MANAGER\nEXIT\n"
    )
    third, fifth, sixth = (out.partition(f" {number}> ")[2].partition("GGSCI (")[0] for number in (3, 5, 6))
    assert f"ERROR: the service at {service.url} cannot be reached: Connection refused" in third
    assert "signed in again" in fifth
    assert "Manager is DOWN" in fifth
    assert "database login" not in fifth
    assert "signed in again" not in sixth


def test_a_database_login_that_ended_with_its_session_is_named(service: RunningService, remote: RemoteShell) -> None:
    login = f"duckdb://{service.home}/lost.duckdb"
    restart = f"SHELL {' '.join(_shell(service, 'RESTART SERVICE'))}"
    out = remote.session(f"CONNECT {service.url} AS admin\nDBLOGIN SOURCEDB {login}\n{restart}\nSTATUS MANAGER\nEXIT\n")
    assert re.search(r"signed in again, without the database login \S*lost", out)


def _shell(service: RunningService, statement: str) -> list[str]:
    return [sys.executable, "-m", "ggshell.cli.main", "--home", str(service.home), "-c", f"'{statement}'"]


def test_a_database_login_lasts_from_one_statement_to_the_next(service: RunningService, remote: RemoteShell) -> None:
    login = f"DBLOGIN SOURCEDB duckdb://{service.home}/target.duckdb"
    statements = f"{login}\nADD CHECKPOINTTABLE main.ck\nINFO CHECKPOINTTABLE main.ck"
    out = remote.session(f"CONNECT {service.url} AS admin\n{statements}\nEXIT\n")
    assert re.search(rf"GGSCI \({service.url} Local as \S*target\S*\) 3> ", out)
    assert "main.ck" in out.partition("4> ")[2]
    assert "ERROR" not in out


def test_ctrl_c_ends_the_wait_for_a_statement(service: RunningService, remote: RemoteShell, tmp_path: Path) -> None:
    terminal = Terminal(remote.home, tmp_path, **remote.environment)
    terminal.type(f"connect {service.url} as admin", "2> ")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        statement = f"dblogin userid u@127.0.0.1:{silent.getsockname()[1]}/d, password x"
        os.write(terminal.descriptor, f"{statement}\r".encode())
        with silent.accept()[0]:
            assert "Interrupted." in terminal.interrupt()
            assert "another statement of this session is still being carried out" in terminal.type("info all", "4> ")
    assert terminal.end() == 0


def test_json_output_can_be_read_line_by_line(remote: RemoteShell) -> None:
    done = remote.run("--format", "json", "-c", "INFO ALL; STATUS MANAGER")
    assert [json.loads(line)["status"] for line in done.stdout.splitlines()] == ["ok", "ok"]
