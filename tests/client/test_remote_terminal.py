"""A connected shell at a terminal: questions about certificates and passwords, completion, and EDIT PARAMS."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cli.terminal import Terminal
from remote_shell import RemoteShell
from service_client import PASSWORD, RunningService

from ggshell.cli.complete import LiveNames, candidates
from ggshell.cli.connecting import connect
from ggshell.cli.options import Options
from ggshell.cli.remote_edit import file_name
from ggshell.cli.session import Session
from ggshell.cli.status_bar import overview
from ggshell.client.credentials import StoredLogin
from ggshell.errors import UsageError


@pytest.fixture
def terminal(secure_remote: RemoteShell, tmp_path: Path) -> Terminal:
    """A shell whose editor appends the text of a file to the file that it edits."""
    editor = tmp_path / "editor.py"
    editor.write_text(f"import sys\nopen(sys.argv[1], 'a').write(open({str(tmp_path / 'more')!r}).read())\n")
    environment = {
        **secure_remote.environment,
        "GGSHELL_PASSWORD": "",
        "EDITOR": f"{sys.executable} {editor}",
        "VISUAL": "",
    }
    return Terminal(secure_remote.home, tmp_path, **environment)


@pytest.mark.slow
def test_a_certificate_and_a_password_are_asked_for(
    secure: RunningService, secure_remote: RemoteShell, terminal: Terminal
) -> None:
    asked = terminal.type(f"connect {secure.url} as admin", r"connect \(yes/no\)\? ")
    assert "SHA-256 fingerprint is\r\n" in asked
    assert "Password" not in asked
    assert "the certificate was not accepted" in terminal.type("no", "2> ")
    assert not secure_remote.pins.exists()
    terminal.type(f"connect {secure.url} as admin", r"connect \(yes/no\)\? ")
    terminal.type("yes", "Password: ")
    connected = terminal.type(PASSWORD, "3> ")
    assert f"GGSCI ({secure.url} Local) 3> " in connected
    assert PASSWORD not in connected
    assert secure_remote.pins.exists()
    asked = terminal.type("alter credentialstore add user u@h:1/d alias a", "Password: ")
    answered = terminal.type("hunter2secret", "4> ")
    assert "altered" in answered
    assert "hunter2secret" not in answered
    terminal.type("add user nina", "New password: ")
    terminal.type("hunter2secret", "Repeat the password: ")
    assert "the two passwords differ" in terminal.type("hunter3secret", "5> ")
    terminal.type("add user nina", "New password: ")
    terminal.type("hunter2secret", "Repeat the password: ")
    assert "User nina added" in terminal.type("hunter2secret", "6> ")
    assert terminal.end() == 0
    assert "hunter2secret" not in (secure.home / "ggserr.log").read_text()


@pytest.mark.slow
def test_a_parameter_file_of_the_other_home_is_edited_here(
    secure: RunningService, secure_remote: RemoteShell, terminal: Terminal, tmp_path: Path
) -> None:
    secure.run("ADD EXTRACT ed1, SOURCEISTABLE")
    file, more = secure.home / "dirprm" / "ed1.prm", tmp_path / "more"
    file.write_text(
        "EXTRACT ed1\nSOURCEISTABLE\nUSERID u@h:1/d, PASSWORD hunter2secret\nEXTFILE ./dirdat/x1\nTABLE a.*;\n"
    )
    assert secure_remote.start("-c", f"CONNECT {secure.url} AS admin !").returncode == 0
    terminal.type(f"connect {secure.url} as admin password {PASSWORD}", "2> ")
    more.write_text("")
    assert "saved" not in terminal.type("edit params ed1", "3> ")
    more.write_text("TABLE b.*;\n")
    assert "ed1.prm is saved at" in terminal.type("edit params ed1", "4> ")
    assert file.read_text().endswith("PASSWORD hunter2secret\nEXTFILE ./dirdat/x1\nTABLE a.*;\nTABLE b.*;\n")
    more.write_text("WONDER\n")
    refused = terminal.type("edit params ed1", "5> ")
    kept = Path(refused.partition("your file is kept as ")[2].split()[0])
    assert kept.read_text().endswith("TABLE b.*;\nWONDER\n")
    assert "WONDER" not in file.read_text()
    assert terminal.end() == 0
    assert not secure_remote.home.exists()
    kept.unlink()
    secure.run("DELETE EXTRACT ed1")


@pytest.mark.slow
def test_completion_and_the_status_bar_are_about_the_other_home(
    service: RunningService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    service.run("ADD EXTRACT done1, SOURCEISTABLE")
    session = Session(Options(home=str(tmp_path / "home")))
    connect(session, service.url, StoredLogin("", "uma", PASSWORD))
    names = LiveNames(session)
    assert [each.text for each in candidates("STOP EXTRACT do", names)] == ["done1"]
    assert [each.text for each in candidates("STOP REPLICAT do", names)] == []
    assert [each.text for each in candidates("INFO EXTTRAIL ", names) if each.about == "trail"] == []
    assert overview(session) == f"{service.url} Local  |  uma, user"
    session.disconnect()
    assert overview(session) == "not connected"
    assert [each.text for each in candidates("STOP EXTRACT do", names)] == []
    session.close()
    service.run("DELETE EXTRACT done1")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("ext1", "ext1.prm"),
        ("EXT1", "ext1.prm"),
        ("mgr", "mgr.prm"),
        ("Manager", "mgr.prm"),
        ("./GLOBALS", "GLOBALS"),
        ("dirprm/Ext1.prm", "Ext1.prm"),
        ("./dirprm/tables.inc", "tables.inc"),
    ],
)
def test_a_parameter_file_is_named_as_in_a_local_shell(name: str, file: str) -> None:
    assert file_name(name) == file


@pytest.mark.parametrize("name", ["/etc/passwd", "dirrpt/x.prm", "../x.prm"])
def test_files_outside_dirprm_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not in dirprm"):
        file_name(name)
