"""FC in a GGSCI session."""

from __future__ import annotations

from cli.shell import Shell


def test_fc_in_a_session(with_groups: Shell) -> None:
    out = with_groups.session("status ext1\nfc\n       pmp\n\nexit\n")
    assert "2> status ext1\nGGSCI" in out
    assert "2..GGSCI" in out
    assert "EXTRACT PMP1: STOPPED" in out


def test_two_slashes_cancel_fc_without_repeating_a_statement(with_groups: Shell) -> None:
    assert with_groups.session("status ext1\nfc 1\n//\nexit\n").count("STOPPED") == 1


def test_fc_without_a_history_and_in_a_batch(shell: Shell) -> None:
    assert "does not contain this statement" in shell.session("fc\nexit\n")
    refused = shell.batch("FC")
    assert (refused.code, "requires an interactive session" in refused.err) == (1, True)
