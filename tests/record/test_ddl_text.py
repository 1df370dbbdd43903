"""A statement's text is split into the command and its comments."""

from __future__ import annotations

import pytest

from ggshell.record.ddl_text import DdlText, has_words, split_comments


@pytest.mark.parametrize(
    ("text", "command", "comments"),
    [
        ("create table t (a int)", "create table t (a int)", ()),
        ("create /* one */ table t -- two\n(a int)", "create   table t  \n(a int)", ("one", "two")),
        ("drop table t /* a /* b */ c */", "drop table t", ("a /* b */ c",)),
        ("drop table t /* open", "drop table t", ("open",)),
        ("comment on table t is '-- it''s /* no */'", "comment on table t is '-- it''s /* no */'", ()),
        (r"select e'\'--' -- x", r"select e'\'--'", ("x",)),
        ('drop table "--t" -- x', 'drop table "--t"', ("x",)),
        ("do $$ begin -- x\nend $$", "do $$ begin -- x\nend $$", ()),
        ("do $f$ /* $$ */ $f$ --x", "do $f$ /* $$ */ $f$", ("x",)),
        ("select $1, a$b$c -- x", "select $1, a$b$c", ("x",)),
        ("create operator +- (leftarg = int)", "create operator +- (leftarg = int)", ()),
        ("", "", ()),
    ],
)
def test_comments_are_separated_from_the_command(text: str, command: str, comments: tuple[str, ...]) -> None:
    assert split_comments(text) == DdlText(command, comments)


@pytest.mark.parametrize(
    ("words", "found"),
    [(("alter", "NOT  null"), True), (("tab",), False), (("null", "drop"), True), (("null not",), False), ((), True)],
)
def test_words_are_found_as_a_whole_in_any_order_and_case(words: tuple[str, ...], found: bool) -> None:
    assert has_words("ALTER TABLE t ALTER a DROP NOT\n NULL", words) is found
