"""Secrets are taken out of everything that is shown or kept."""

from __future__ import annotations

import json

import pytest
from shell.ground import Shell

from ggshell.shell.redaction import redacted, redacted_column
from ggshell.shell.session import Login

SECRET = "hunter2secret"


@pytest.mark.parametrize(
    "statement",
    [
        f"dblogin userid ogg@db1,password {SECRET}",
        f"DBLOGIN USERID ogg PASSWORD '{SECRET} and more'",
        f'dblogin userid ogg, password "{SECRET}"',
        f"alter credentialstore add user x password {SECRET} alias y",
        f"dblogin userid postgresql://ogg:{SECRET}@host:5432/db",
        f"dblogin userid 'host=h password={SECRET} user=x'",
        f"dblogin userid ogg password '{SECRET} without an end",
    ],
)
def test_no_part_of_a_password_is_left(statement: str) -> None:
    assert SECRET not in redacted(statement)
    assert "and more" not in redacted(statement)


def test_other_words_stay() -> None:
    text = "ADD EXTRACT ext1, TRANLOG, BEGIN NOW, DESC 'the passwords table'"
    assert redacted(text) == text


def test_a_column_behind_a_password_moves_with_it() -> None:
    text = "dblogin userid x password abcdefghijkl wrong"
    column = text.index("wrong") + 1
    assert redacted(text)[redacted_column(text, column) - 1 :].startswith("wrong")


def test_a_login_does_not_print_its_connection_string() -> None:
    assert SECRET not in repr(Login(f"password={SECRET}", "u", "d"))


@pytest.mark.parametrize("style", ["ggsci", "json", "vertical", "csv", "table", "markdown"])
def test_secrets_are_in_no_output_history_or_log(shell: Shell, style: str) -> None:
    statements = [
        f"alter credentialstore add user u@h:1/d password {SECRET} alias a",
        f"dblogin userid u@localhost:1/d password {SECRET}",
        "history",
        "info credentialstore",
        "view ggsevt",
    ]
    arguments = ["--format", style, "--echo", "--continue-on-error", "-c", "\n".join(statements)]
    answer = shell.run(*arguments)
    assert SECRET not in answer.out + answer.err
    assert "*******" in answer.out
    refused = shell.run("--format", style, "-c", f"dblogin userid u password {SECRET} alias nowhere")
    assert refused.code == 3
    assert SECRET not in refused.out + refused.err
    for path in shell.home.root.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


def test_a_heredoc_session_shows_no_secret(shell: Shell) -> None:
    text = f"dblogin userid u@localhost:1/d password {SECRET} nonsense\nhistory\n!dblogin\nexit\n"
    out = shell.session(text)
    assert SECRET not in out
    assert "a statement with a password is not repeated" in out


def test_view_params_masks_passwords(shell: Shell) -> None:
    shell.home.ensure()
    shell.home.parameters("ext1").write_text(f"EXTRACT ext1\nUSERID ogg, PASSWORD {SECRET}\n")
    answer = shell.run("--format", "json", "-c", "VIEW PARAMS ext1")
    assert json.loads(answer.out)["rows"] == [["EXTRACT ext1"], ["USERID ogg, PASSWORD *******"]]
