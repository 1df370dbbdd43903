"""SQL texts are split and classified as the server does it."""

from __future__ import annotations

import pytest

from ggshell.record.sql_text import Statement, TokenKind, statement_after, statements, tag_of, tokens


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select 1; ; select ';'", ["select 1", "select ';'"]),
        ("a /* ; /* ; */ ; */ b -- ;\n; c", ["a /* ; /* ; */ ; */ b", "c"]),
        ("do $x$ begin; $y$;$y$ end $x$; b", ["do $x$ begin; $y$;$y$ end $x$", "b"]),
        (r"select e'\';', 'a'';', U&'\003b', \"a;\"\"\"; b".replace('\\"', '"'), None),
        (
            "create rule r as on insert to t do (select 1; select 2); b",
            ["create rule r as on insert to t do (select 1; select 2)", "b"],
        ),
        (
            "create function f() returns int begin atomic select case when true then 1 end; select 2; end; b",
            ["create function f() returns int begin atomic select case when true then 1 end; select 2; end", "b"],
        ),
        ("  ;; ", []),
        ("create table t(a int) ;", ["create table t(a int)"]),
    ],
)
def test_a_string_is_split_into_its_statements(text: str, found: list[str] | None) -> None:
    got = [statement.text for statement in statements(text)]
    if found is None:
        assert len(got) == 2
        assert got[1] == "b"
    else:
        assert got == found


def test_names_are_folded_unless_they_are_quoted() -> None:
    found = list(tokens('Shop."Or""ders" $1 U&"x"'))
    assert [token.name for token in found if token.kind is not TokenKind.OTHER][:2] == ["shop", 'Or"ders']


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("create table t(a int)", "CREATE TABLE"),
        ("create unlogged table if not exists t as select 1", "CREATE TABLE AS"),
        ("create table t(a int generated always as (1) stored)", "CREATE TABLE"),
        ("select 1 into t", "SELECT INTO"),
        ("with a as (select 1) select * into t from a", "SELECT INTO"),
        ("select (select 1)", ""),
        ("create or replace temp view v as select 1", "CREATE VIEW"),
        ("create unique index concurrently i on t(a)", "CREATE INDEX"),
        ("create constraint trigger x after insert on t", "CREATE TRIGGER"),
        ("create default conversion a for 'b' to 'c' from d", "CREATE CONVERSION"),
        ("create operator class o for type int using btree as storage int", "CREATE OPERATOR CLASS"),
        ("create text search configuration c (copy=simple)", "CREATE TEXT SEARCH CONFIGURATION"),
        ("alter default privileges grant select on tables to public", "ALTER DEFAULT PRIVILEGES"),
        ("drop materialized view if exists m", "DROP MATERIALIZED VIEW"),
        ("create role r", ""),
        ("create event trigger e on sql_drop execute function f()", ""),
        ("grant select on t to public", "GRANT"),
        ("grant a to b", ""),
        ("revoke all on database d from public", ""),
        ("comment on table t is 'x'", "COMMENT"),
        ("comment on database t is 'x'", ""),
        ("refresh materialized view concurrently m", "REFRESH MATERIALIZED VIEW"),
        ("insert into t values (1)", ""),
    ],
)
def test_a_statement_has_the_tag_of_its_event(text: str, tag: str) -> None:
    assert tag_of(statements(text)[0]) == tag


def _after(text: str, *tags: str) -> str:
    found = statement_after(text, tags[:-1], tags[-1])
    assert isinstance(found, Statement)
    return found.text


def test_a_firing_is_found_by_the_firings_before_it() -> None:
    text = "create table a(); insert into a default values; create table b(); create index on a((1)); create table c()"
    assert _after(text, "CREATE TABLE") == "create table a()"
    assert _after(text, "CREATE TABLE", "CREATE TABLE") == "create table b()"
    assert _after(text, "CREATE TABLE", "CREATE TABLE", "CREATE INDEX", "CREATE TABLE") == "create table c()"
    assert statement_after(text, [], "DROP TABLE") is None


def test_firings_that_were_rolled_back_do_not_count() -> None:
    text = (
        "begin; alter table t add a int; savepoint s; alter table t add b int; rollback to s; alter table t add c int"
    )
    assert _after(text, "ALTER TABLE") == "alter table t add a int"
    assert _after(text, "ALTER TABLE", "ALTER TABLE") == "alter table t add c int"


def test_a_string_that_a_loop_runs_again_begins_again() -> None:
    text = "create table a(); drop table a"
    assert _after(text, "CREATE TABLE", "DROP TABLE", "CREATE TABLE") == "create table a()"
    assert _after(text, "CREATE TABLE", "DROP TABLE", "CREATE TABLE", "DROP TABLE") == "drop table a"
