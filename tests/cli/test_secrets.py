"""No password of a mistyped statement reaches the screen, a file of the home, or a command line."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli.shell import Shell, log_extract

from ggshell.check.cli import main as check
from ggshell.demo.processes import end_processes
from ggshell.language.redaction import redacted, without_secrets
from ggshell.parameters.redacted_file import redacted_lines

MARKER = "zq7marker"
STATEMENTS = (
    f"DBLOGIN USERID ogg@localhost:1/d, PASSWORD {MARKER}",
    f"DBLOGIN USERID ogg/{MARKER}@localhost:1/d",
    f"DBLOGIN USERID postgresql://ogg:{MARKER}@localhost:1/d",
    f"DBLOGIN SOURCEDB d, USERID ogg, PASSWORD '{MARKER}'",
    f"ALTER CREDENTIALSTORE ADD USER ogg@localhost:1/d PASSWORD {MARKER} ALIAS a DOMAIN b",
    f'ALTER CREDENTIALSTORE REPLACE USER ogg@localhost:1/d, PASSWORD "{MARKER}"',
    f"MININGDBLOGIN USERID ogg, PASSWORD {MARKER}",
    f"ENCRYPT PASSWORD {MARKER} AES128 ENCRYPTKEY DEFAULT",
    f"INFO EXTRACT postgresql://ogg:{MARKER}@h/d",
    f"STOP REPLICAT ogg:{MARKER}@h",
    f"ADD EXTRACT e2, EXTTRAILSOURCE postgresql://ogg:{MARKER}@h/d",
    f"ADD EXTRACT e2, EXTTRAILSOURCE ogg/{MARKER}@h/d",
    f"ADD EXTTRAIL postgresql://ogg:{MARKER}@h/d, EXTRACT e2",
    f"ADD EXTRACT e2, EXTTRAILSOURCE ./dirdat/ea, DESC 'from postgresql://ogg:{MARKER}@h/d'",
    f"SET EDITOR postgresql://ogg:{MARKER}@h/d",
    f"DBLOGIN USERID ogg@localhost:1/d, PASSWORD\n{MARKER}",
    f"DBLOGIN USERID ogg@localhost:1/d, PASSWORD ;{MARKER}",
)
PARAMETERS = (
    f"USERID ogg@localhost:1/d, PASSWORD {MARKER}",
    f"USERID ogg/{MARKER}@localhost:1/d",
    f"TARGETDB d, USERID ogg, PASSWORD {MARKER}",
    f"SOURCEDB d, USERID ogg, &\nPASSWORD '{MARKER}'",
    f"TRANLOGOPTIONS ASMUSER sys@asm, ASMPASSWORD {MARKER}",
)
COUNT = 500


def mistype(text: str, chance: random.Random) -> str:
    """A statement with one or two typing errors outside its secret."""
    for _ in range(chance.randint(1, 2)):
        words = text.split(" ")
        place = chance.choice([each for each in range(len(words)) if MARKER not in words[each]])
        word, kind = words[place], chance.randrange(9)
        at = chance.randrange(max(1, len(word)))
        if kind == 0:
            words[place] = word[:at] + word[at + 1 :]
        elif kind == 1:
            words[place] = word[:at] + word[at : at + 2][::-1] + word[at + 2 :]
        elif kind == 2:
            words[place] = word[:at] + chance.choice("XQZ8_") + word[at + 1 :]
        elif kind == 3:
            words[place] = word + word[-1:]
        elif kind == 4 and place and "PASS" not in word.upper():  # otherwise the word after USERID would be the user
            del words[place]
        elif kind == 5:
            words.insert(place, word)
        elif kind == 6:
            words.insert(
                chance.randrange(1, len(words) + 1), chance.choice(["(", ")", "=", "''", '"', ",", "nonsense"])
            )
        elif kind == 7:
            words.append(chance.choice(["nonsense", "PASSWORD", "ALIAS", "'"]))
        else:
            words[place] = word.swapcase()
        text = " ".join(words)
    return text


def mistyped(of: tuple[str, ...], count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [mistype(chance.choice(of), chance) for _ in range(count)]


def assert_no_secret(home: Path, *texts: str) -> None:
    for text in texts:
        place = text.find(MARKER)
        assert place < 0, text[max(0, place - 200) : place + 50]
    for path in home.rglob("*"):
        assert not path.is_file() or MARKER.encode() not in path.read_bytes(), path


@pytest.mark.slow
def test_no_mistyped_statement_shows_or_saves_its_password(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    statements = mistyped(STATEMENTS, COUNT, 29)
    out = [shell.run("--echo", "--continue-on-error", "-c", text) for text in statements[: COUNT // 2]]
    out += [shell.run("--format", "json", "-c", text) for text in statements[COUNT // 2 : COUNT - 100]]
    outputs = [answer.out + answer.err for answer in out]
    session_output = shell.session("\n".join([*statements[COUNT - 100 :], "HISTORY", "EXIT", ""]))
    assert_no_secret(shell.home.root, *outputs, session_output)
    file = shell.home.root.with_name("all.oby")
    file.write_text("\n".join(statements))
    for form in ("text", "json", "junit", "sarif"):
        check(["--format", form, str(file)])
        assert_no_secret(shell.home.root, "".join(capsys.readouterr()))
    answer = shell.run("--echo", "--continue-on-error", str(file))
    assert_no_secret(shell.home.root, answer.out + answer.err)


@pytest.mark.slow
def test_no_mistyped_parameter_shows_its_password(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    lines = mistyped(PARAMETERS, COUNT, 31)
    text = "\n".join(["EXTRACT ext1", *lines, "EXTTRAIL ./dirdat/ea", "TABLE a.*;", ""])
    assert_no_secret(shell.home.root, redacted_lines(text), *(redacted(line, "parameters") for line in lines))
    file = shell.home.root.with_name("ext1.prm")
    file.write_text(text)
    for form in ("text", "json"):
        check(["--format", form, str(file)])
        assert_no_secret(shell.home.root, "".join(capsys.readouterr()))


def test_words_after_an_unknown_parameter_are_not_shown(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        f"DBOPTIONS FOO {MARKER}",
        f"DBOPTIONS FOO, &\n  {MARKER} -- why",
        f"USERIDX joe, PASSWORDX {MARKER}",
        f"USRX joe, PW {MARKER}",
        f"NOSUCHTHING a {MARKER}; NOSUCHTHING a {MARKER}",
        f"-- was: USERID ogg, PASSWORD {MARKER}",
    ]
    text = "\n".join(["EXTRACT ext1", *lines, "EXTTRAIL ./dirdat/ea -- ours", "TABLE a.b,", "  TARGET c.d;", ""])
    shown = redacted_lines(text)
    assert_no_secret(shell.home.root, shown)
    assert len(shown.splitlines()) == len(text.splitlines())
    assert shown.startswith("EXTRACT ext1\nDBOPTIONS FOO *******\nDBOPTIONS FOO, &\n  ******* -- why\n")
    assert shown.endswith("\nEXTTRAIL ./dirdat/ea -- ours\nTABLE a.b,\n  TARGET c.d;\n")
    file = shell.home.root.with_name("ext1.prm")
    file.write_text(text)
    for form in ("text", "json", "junit", "sarif"):
        check(["--format", form, str(file)])
        out = "".join(capsys.readouterr())
        assert_no_secret(shell.home.root, out)
        assert "unexpected FOO" in out


@pytest.mark.parametrize(
    "statement",
    [
        "ADD EXTRACT e2, EXTTRAILSOURCE postgresql://ogg:tiger@h/d",
        "ADD EXTRACT e2, EXTTRAILSOURCE ./dirdat/ea, DESC 'from postgresql://ogg:tiger@h/d'",
        "ADD TRANDATA postgresql://ogg:tiger@h/d",
        "SET EDITOR postgresql://ogg:tiger@h/d",
    ],
)
def test_a_login_is_not_saved_as_a_name(shell: Shell, statement: str) -> None:
    answer = shell.run("-c", statement)
    assert answer.code == 3
    assert "://" in answer.err
    assert "tiger" not in answer.err
    assert not list(shell.home.root.glob("dirchk/*"))


def test_a_statement_after_an_incomplete_password_is_shown_only_if_it_is_valid(shell: Shell) -> None:
    session_output = shell.session("DBLOGIN USERID ogg@h, PASSWORD\n\ntiger\nINFO NOSUCH tiger\nHISTORY\nEXIT\n")
    assert "unknown command *******" in session_output
    assert "2: *******\n" in session_output
    assert "INFO NOSUCH tiger" in session_output  # the second statement after it
    session_output = shell.session("DBLOGIN USERID ogg@h, PASSWORD\nHISTORY\nEXIT\n")
    assert "2: HISTORY" in session_output


@pytest.mark.slow
def test_a_process_with_mistyped_parameters_does_not_show_the_password(shell: Shell) -> None:
    shell.save(log_extract("EXT1"))
    parameters = shell.home.parameters("ext1")
    parameters.write_text("\n".join(["EXTRACT ext1", *mistyped(PARAMETERS, 40, 37), "TABLE a.*;", ""]))
    command = [sys.executable, "-m", "ggshell.cli.main", "--home", str(shell.home.root), "--auto-manager"]
    try:
        run = subprocess.run([*command, "-c", "START ext1"], capture_output=True, text=True, check=False, timeout=60)
        shown = shell.batch("VIEW PARAMS ext1", "VIEW REPORT ext1", "VIEW GGSEVT")
        lines = [path.read_bytes().decode(errors="replace") for path in Path("/proc").glob("[0-9]*/cmdline")]
    finally:
        end_processes(shell.home.root)
    parameters.unlink()  # the only file that is allowed to contain it
    assert_no_secret(shell.home.root, run.stdout, run.stderr, shown.out, shown.err, *lines)
    assert "EXT1" in shell.home.report("EXT1").read_text()


@pytest.mark.parametrize(
    "unit",
    ["a:", "a:(", "a/(", "-", "a:b@", "http://a:b", "PASSWORD ", "PASSWORD;", "DBOPTIONS FOO\n", "pwd:pwd", "$a-"],
)
def test_redaction_takes_linear_time(unit: str) -> None:
    """Four times the text takes about four times as long, not sixteen times."""

    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        began = time.process_time()
        redacted(text)
        redacted(f"DBOPTIONS {text}", "parameters")
        redacted_lines(text)
        without_secrets(f"unexpected {text}", f"DBLOGIN {text}")
        return time.process_time() - began

    seconds(100)  # what is cached
    small = seconds(3_000)
    assert seconds(12_000) < 10 * small + 0.5
