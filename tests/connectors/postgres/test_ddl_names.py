"""The names of schemas and tables in a DDL statement, replaced by those of the target."""

from __future__ import annotations

import pytest

from ggshell.connectors.postgres.ddl_names import renamed, search_path
from ggshell.pipeline.apply.mapping import Mapper, MapRule
from ggshell.pipeline.apply.object_names import NameOptions, ObjectNames
from ggshell.record.ddl import DdlObject, DdlStatement
from ggshell.types import TableName

T, OTHER, INDEX = TableName("a", "t"), TableName("a", "other"), TableName("a", "t_x")
RULES = (MapRule("a.t", "b.new_t"), MapRule("a.*", "b.*"), MapRule('"Odd"."T b"', '"even"."Tb"'))


def names(**options: object) -> ObjectNames:
    return ObjectNames(Mapper(RULES, lambda _: None), NameOptions(**options))  # type: ignore[arg-type]


def renamed_text(text: str, *objects: DdlObject) -> str:
    made = DdlStatement("", text, objects or (DdlObject("TABLE", T, T),), "postgres", (("search_path", "a, public"),))
    return renamed(made, names())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("CREATE TABLE a.t (id int, CHECK (a.f(id) > 0))", "CREATE TABLE b.new_t (id int, CHECK (b.f(id) > 0))"),
        ("CREATE TABLE t (t text)", "CREATE TABLE b.new_t (t text)"),
        ("ALTER TABLE IF EXISTS ONLY t ADD c int", "ALTER TABLE IF EXISTS ONLY b.new_t ADD c int"),
        ("ALTER TABLE other ADD FOREIGN KEY (x) REFERENCES t (id)",
         "ALTER TABLE other ADD FOREIGN KEY (x) REFERENCES b.new_t (id)"),
        ("ALTER TABLE a . t ADD c a.kind", "ALTER TABLE b . new_t ADD c b.kind"),
        ("ALTER TABLE before RENAME TO t", "ALTER TABLE before RENAME TO new_t"),
        ("ALTER TABLE a.t RENAME COLUMN a TO t", "ALTER TABLE b.new_t RENAME COLUMN a TO t"),
        ("ALTER TABLE public.t SET SCHEMA a", "ALTER TABLE public.t SET SCHEMA b"),
        ("CREATE SCHEMA IF NOT EXISTS a", "CREATE SCHEMA IF NOT EXISTS b"),
        ("DROP SCHEMA x, a CASCADE", "DROP SCHEMA x, b CASCADE"),
        ("ALTER SCHEMA x RENAME TO a", "ALTER SCHEMA x RENAME TO b"),
        ("CREATE SCHEMA AUTHORIZATION a", "CREATE SCHEMA AUTHORIZATION a"),
        ("GRANT USAGE ON SCHEMA a TO a", "GRANT USAGE ON SCHEMA b TO a"),
        ("CREATE VIEW v AS SELECT t.a, a.t.b FROM a.t", "CREATE VIEW v AS SELECT t.a, b.new_t.b FROM b.new_t"),
        ("CREATE VIEW a.v AS SELECT a.x FROM a.other AS a", "CREATE VIEW b.v AS SELECT a.x FROM b.other AS a"),
        ("CREATE INDEX ON t (x)", "CREATE INDEX ON b.new_t (x)"),
        ("COMMENT ON COLUMN a.t.c IS 'a.t'", "COMMENT ON COLUMN b.new_t.c IS 'a.t'"),
        ("COMMENT ON COLUMN t.c IS 'x'", "COMMENT ON COLUMN b.new_t.c IS 'x'"),
        ("CREATE TABLE a.o (x int DEFAULT nextval('a.s'))", "CREATE TABLE b.o (x int DEFAULT nextval('b.s'))"),
        ("CREATE TABLE a.o (x int DEFAULT nextval('a.s'::regclass))",
         "CREATE TABLE b.o (x int DEFAULT nextval('b.s'::regclass))"),
        ("CREATE FUNCTION a.f() RETURNS a.t LANGUAGE sql AS 'SELECT * FROM a.t'",
         "CREATE FUNCTION b.f() RETURNS b.new_t LANGUAGE sql AS 'SELECT * FROM a.t'"),
        ("CREATE FUNCTION f() RETURNS int SET search_path TO a, x AS $$ a.t $$ LANGUAGE sql",
         "CREATE FUNCTION f() RETURNS int SET search_path TO b, x AS $$ a.t $$ LANGUAGE sql"),
        ("CREATE TABLE x.t (a int DEFAULT 1.5) -- a.t\n", "CREATE TABLE x.t (a int DEFAULT 1.5) -- a.t\n"),
    ],
)  # fmt: skip
def test_names_of_mapped_tables_and_schemas_are_replaced(text: str, wanted: str) -> None:
    assert renamed_text(text).replace('"', "") == wanted


def test_objects_that_are_not_tables_follow_their_schema() -> None:
    index = DdlObject("INDEX", TableName("a", "t"), OTHER)
    assert renamed_text("DROP INDEX a.t", index) == 'DROP INDEX "b".t'
    assert renamed_text('CREATE TABLE "Odd"."T b" ()') == 'CREATE TABLE "even"."Tb" ()'


def test_the_search_path_is_renamed() -> None:
    found = names()
    assert search_path('"$user", a, public', "joe", found) == '"joe", "b", "public"'
    assert search_path("", "joe", found) == '""'


def test_the_options_of_ddl_decide_what_is_renamed() -> None:
    index = TableName("a", "i")
    assert names(maps=False).table(T) == T
    assert names(derived=False).other(index) == index
    assert names(derived=False).table(T) == TableName("b", "new_t")
    renaming = names(session_schemas={"s": "x"})
    assert (renaming.session_schema("s"), renaming.schema("s")) == ("x", "s")
    assert names(session_schemas={"s": "x"}, maps_schemas=True).table(TableName("s", "t")) == TableName("x", "t")
