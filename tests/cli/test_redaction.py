"""Secrets are removed from everything that is shown or saved."""

from __future__ import annotations

import ast
import json

import pytest
from cli.shell import Shell
from source_trees import nodes, sources

from ggshell.connectors.logged_in import LoggedIn
from ggshell.connectors.registry import connector_for
from ggshell.language.redaction import masked, redacted, starred, without_secrets

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
def test_no_part_of_a_password_remains(statement: str) -> None:
    assert SECRET not in redacted(statement)
    assert "and more" not in redacted(statement)


def test_the_keywords_that_a_message_lists_are_not_masked() -> None:
    """Regression: the keyword after PASSWORD in the list of what was expected was masked."""
    text = "unexpected x; expected USERID, PASSWORD, USERIDALIAS, DOMAIN"
    assert masked(text) == text
    refused = "unexpected *******; expected USERID, PASSWORD, USERIDALIAS, DOMAIN"
    for statement, kind in (("DBLOGIN SOURCEDB USERIDALIAS x", "commands"), ("SOURCEDB USERIDALIAS x", "parameters")):
        assert without_secrets(text, statement, kind) == refused
    assert SECRET not in masked(f"DBLOGIN USERID ogg, PASSWORD, {SECRET}, DOMAIN")
    assert masked("PASSWORD DOMAIN") == "PASSWORD *******"


def test_other_words_are_unchanged() -> None:
    text = "ADD EXTRACT ext1, TRANLOG, BEGIN NOW, DESC 'the passwords table'"
    assert redacted(text) == text


def test_the_columns_of_an_excerpt_are_unchanged() -> None:
    text = "dblogin userid x password abcdefghijkl wrong"
    assert len(starred(text)) == len(text)
    assert starred(text).startswith("dblogin userid * password ************ ")


@pytest.mark.parametrize(
    ("statement", "shown"),
    [
        ("DBLOGIN USERIDALIAS north, DOMAIN d", "DBLOGIN USERIDALIAS north, DOMAIN d"),
        ("DBLOGIN USERID ogg@h:5432/db, PASSWORD x", "DBLOGIN USERID ogg@h:5432/db, PASSWORD *******"),
        ("DBLOGIN USERID ogg/tiger@h", "DBLOGIN USERID ogg/*******@h"),
        ("DBLOGIN USERID ogg/tiger", "DBLOGIN USERID ogg/*******"),
        ("DBLOGIN USERID ogg:ti@ger@h", "DBLOGIN USERID ogg:*******@h"),
        ("DBLOGIN USERID ogg, PASSWRD tiger", "DBLOGIN USERID *******, ******* *******"),
        ("DBLOGIN USERID ogg, PASSWORDtiger", "DBLOGIN USERID *******, *******"),
        ("DBLOGIN USERID ogg tiger", "DBLOGIN USERID ******* *******"),
        ("DBLGOIN USREID ogg PSASWORD 'tiger", "******* ******* ******* ******* *******"),
        ("SHELL echo a", "SHELL echo a"),
        ("SHELL PGPASSWORD=tiger psql", "SHELL PGPASSWORD=******* psql"),
        ("INFO EXTRAC ext1", "INFO EXTRAC ext1"),
    ],
)
def test_values_that_are_not_secrets_according_to_the_manual_are_shown(statement: str, shown: str) -> None:
    assert redacted(statement) == shown


def test_a_message_does_not_show_a_secret_of_its_statement() -> None:
    assert without_secrets("'tiger' is not expected here", "DBLOGIN USERID ogg PASWORD tiger") == (
        "'*******' is not expected here"
    )


def test_a_login_does_not_print_its_connection_string() -> None:
    assert SECRET not in repr(LoggedIn(connector_for(""), f"password={SECRET}", "u", "d"))


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
    assert "the history does not keep passwords" in out


def test_view_params_masks_passwords(shell: Shell) -> None:
    shell.home.ensure()
    shell.home.parameters("ext1").write_text(f"EXTRACT ext1\nUSERID ogg, PASSWORD {SECRET}\n")
    answer = shell.run("--format", "json", "-c", "VIEW PARAMS ext1")
    assert json.loads(answer.out)["rows"] == [["EXTRACT ext1"], ["USERID ogg, PASSWORD *******"]]


def test_masking_leaves_the_messages_of_the_program_as_they_are() -> None:
    """A hint such as "check the password (ALTER …" would lose the word after the password."""
    changed = []
    for file in sources("ggshell"):
        for call in nodes(file):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "").endswith("Error"):
                texts = [*call.args, *(word.value for word in call.keywords if word.arg == "hint")]
                literals = (ast.literal_eval(text) for text in texts if isinstance(text, ast.Constant))
                changed += [text for text in literals if isinstance(text, str) and masked(text) != text]
    assert changed == []
