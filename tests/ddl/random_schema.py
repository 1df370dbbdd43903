"""A generator of random DDL and DML on schema s: statements that a server mostly accepts, in transactions of every form.

It keeps no model of the schema. It reads the catalog before each statement, so a statement that was refused or rolled back
does no harm.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import psycopg

TYPES = {
    "int": "3",
    "bigint": "30000000000",
    "text": "'some text'",
    "varchar(20)": "'short'",
    "numeric(10,2)": "12.5",
    "boolean": "true",
    "date": "'2026-02-03'",
    "timestamptz": "'2026-02-03 04:05:06+00'",
    "uuid": "'c0ffee00-0000-0000-0000-000000000001'",
    "jsonb": "'{\"a\": 1}'",
    "int[]": "'{1,2}'",
}
_COMPUTED = ("now()", "gen_random_uuid()::text", "clock_timestamp()::text", "random()::text")


class RandomSchema:
    """Runs random statements. ``ddl`` counts the DDL statements that the server has accepted."""

    def __init__(self, connection: psycopg.Connection, seed: int) -> None:
        self._connection = connection
        self._random = random.Random(seed)
        self._number = 0
        self.ddl = 0

    def step(self) -> None:
        """Run one transaction; what the server refuses is rolled back."""
        form = self._random.random()
        statements = [
            statement for _ in range(self._random.choice((1, 1, 1, 2, 4))) if (statement := self._statement())
        ]
        if not statements:
            return
        text = "; ".join(statements)
        if form < 0.1 and not any("CONCURRENTLY" in each for each in statements):
            text = "DO $do$ BEGIN " + "; ".join(f"EXECUTE $x${each}$x$" for each in statements) + "; END $do$"
        elif form < 0.2 and len(statements) > 1:
            text = f"BEGIN; {statements[0]}; SAVEPOINT a; {statements[1]}; ROLLBACK TO SAVEPOINT a; {statements[0]}; COMMIT"
        elif len(statements) > 1 and any("CONCURRENTLY" in each for each in statements):
            text = statements[0]
        try:
            self._connection.execute(text)  # type: ignore[call-overload]
        except psycopg.Error:
            self._connection.execute("ROLLBACK")
            return
        self.ddl += sum(each.split(" ")[0] not in ("INSERT", "UPDATE", "DELETE") for each in statements)

    def _statement(self) -> str:
        return self._random.choice(self._makers())()

    def _makers(self) -> list[Callable[[], str]]:
        rows = [self._insert, self._update, self._delete]
        tables = [self._create_table, self._create_partitioned, self._create_from_query]
        columns = [self._add_column, self._add_computed, self._drop_column, self._rename_column, self._alter_type]
        details = [
            self._not_null,
            self._default,
            self._check,
            self._unique,
            self._foreign_key,
            self._rename,
            self._drop,
        ]
        others = [self._index, self._drop_index, self._view, self._function, self._type, self._sequence, self._comment]
        more = [self._trigger, self._policy, self._statistics, self._grant, self._materialized, self._partition]
        return [*rows, *rows, *rows, *tables, *columns, *columns, *details, *others, *more]

    def _name(self, kind: str) -> str:
        self._number += 1
        return f"{kind}{self._number}"

    def _query(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(text, values).fetchall()  # type: ignore[call-overload,no-any-return]

    def _pick(self, text: str, *values: Any) -> tuple[Any, ...] | None:
        found = self._query(text, *values)
        return self._random.choice(found) if found else None

    def _table(self, kinds: str = "r") -> str | None:
        found = self._pick(
            "SELECT relname FROM pg_class WHERE relnamespace = 's'::regnamespace AND relkind = ANY (%s) AND NOT relispartition"
            " ORDER BY 1",
            list(kinds),
        )
        return None if found is None else f"s.{found[0]}"

    def _columns(self, table: str) -> list[tuple[str, str]]:
        return self._query(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
            " AND NOT attisdropped AND attgenerated = '' AND attidentity = '' ORDER BY attnum",
            table,
        )

    def _value(self, kind: str) -> str:
        if kind in ("integer", "bigint"):
            return str(self._random.randrange(1_000_000))
        known = {"integer": "int", "character varying(20)": "varchar(20)", "timestamp with time zone": "timestamptz"}
        base = known.get(kind, kind.replace("integer", "int"))
        return TYPES.get(base, "NULL")

    def _insert(self) -> str:
        table = self._table("rp")
        columns = self._columns(table) if table else []
        if not columns:
            return ""
        names = ", ".join(name for name, _ in columns)
        return f"INSERT INTO {table} ({names}) VALUES ({', '.join(self._value(kind) for _, kind in columns)})"

    def _update(self) -> str:
        table = self._table("rp")
        columns = self._columns(table) if table else []
        if not columns:
            return ""
        name, kind = self._random.choice(columns)
        return f"UPDATE {table} SET {name} = {self._value(kind)} WHERE {columns[0][0]} IS NOT NULL AND random() < 0.3"

    def _delete(self) -> str:
        table = self._table("rp")
        return f"DELETE FROM {table} WHERE random() < 0.1" if table else ""

    def _create_table(self) -> str:
        kinds = self._random.sample(list(TYPES), self._random.randint(1, 5))
        columns = ["id int PRIMARY KEY" if self._random.random() < 0.8 else "id int"]
        columns += [f"c{number} {kind}" for number, kind in enumerate(kinds)]
        if self._random.random() < 0.2:
            columns.append("made int GENERATED BY DEFAULT AS IDENTITY")
        return f"CREATE TABLE s.{self._name('t')} ({', '.join(columns)})"

    def _create_partitioned(self) -> str:
        name = self._name("p")
        return (
            f"CREATE TABLE s.{name} (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); "
            f"CREATE TABLE s.{name}_low PARTITION OF s.{name} FOR VALUES FROM (0) TO (500000); "
            f"CREATE TABLE s.{name}_rest PARTITION OF s.{name} DEFAULT"
        )

    def _partition(self) -> str:
        found = self._pick(
            "SELECT i.inhrelid::regclass::text, i.inhparent::regclass::text FROM pg_inherits i"
            " JOIN pg_class c ON c.oid = i.inhparent"
            " WHERE c.relnamespace = 's'::regnamespace AND c.relkind = 'p'"
            " AND i.inhrelid::regclass::text LIKE '%%rest' ORDER BY 1"
        )
        return f"ALTER TABLE {found[1]} DETACH PARTITION {found[0]}" if found else ""

    def _create_from_query(self) -> str:
        table = self._table("rp")
        if not table:
            return ""
        name = self._name("q")
        return self._random.choice(
            (f"CREATE TABLE s.{name} AS SELECT * FROM {table}", f"SELECT * INTO s.{name} FROM {table}")
        )

    def _add_column(self) -> str:
        table, (kind, value) = self._table("rp"), self._random.choice(list(TYPES.items()))
        default = self._random.choice(("", "", f" DEFAULT {value}", f" NOT NULL DEFAULT {value}"))
        return f"ALTER TABLE {table} ADD COLUMN {self._name('a')} {kind}{default}" if table else ""

    def _add_computed(self) -> str:
        table, value = self._table("rp"), self._random.choice(_COMPUTED)
        kind = "timestamptz" if value == "now()" else "text"
        return f"ALTER TABLE {table} ADD COLUMN {self._name('a')} {kind} DEFAULT {value}" if table else ""

    def _some_column(self, kinds: str = "rp") -> tuple[str, str, str] | None:
        table = self._table(kinds)
        columns = [each for each in self._columns(table) if each[0] != "id"] if table else []
        return (table, *self._random.choice(columns)) if table and columns else None

    def _drop_column(self) -> str:
        found = self._some_column()
        return f"ALTER TABLE {found[0]} DROP COLUMN {found[1]}" if found else ""

    def _rename_column(self) -> str:
        found = self._some_column()
        return f"ALTER TABLE {found[0]} RENAME COLUMN {found[1]} TO {self._name('r')}" if found else ""

    def _alter_type(self) -> str:
        found = self._some_column()
        if not found:
            return ""
        table, column, kind = found
        if kind == "integer":
            return f"ALTER TABLE {table} ALTER COLUMN {column} TYPE bigint"
        using = f" USING {column}::text || 'x'" if self._random.random() < 0.5 else ""
        return f"ALTER TABLE {table} ALTER COLUMN {column} TYPE text{using}"

    def _not_null(self) -> str:
        found = self._some_column()
        return (
            f"ALTER TABLE {found[0]} ALTER {found[1]} {self._random.choice(('SET', 'DROP'))} NOT NULL" if found else ""
        )

    def _default(self) -> str:
        found = self._some_column()
        return f"ALTER TABLE {found[0]} ALTER {found[1]} SET DEFAULT {self._value(found[2])}" if found else ""

    def _check(self) -> str:
        found = self._some_column()
        if not found:
            return ""
        name = self._name("k")
        add = f"ALTER TABLE {found[0]} ADD CONSTRAINT {name} CHECK ({found[1]} IS NOT NULL OR id >= 0) NOT VALID"
        return self._random.choice((add, f"{add}; ALTER TABLE {found[0]} VALIDATE CONSTRAINT {name}"))

    def _unique(self) -> str:
        found = self._some_column("r")
        return f"ALTER TABLE {found[0]} ADD CONSTRAINT {self._name('u')} UNIQUE (id, {found[1]})" if found else ""

    def _foreign_key(self) -> str:
        one, other = self._table(), self._table()
        if not one or not other:
            return ""
        return f"ALTER TABLE {one} ADD CONSTRAINT {self._name('f')} FOREIGN KEY (id) REFERENCES {other} (id) NOT VALID"

    def _rename(self) -> str:
        table = self._table("rp")
        return f"ALTER TABLE {table} RENAME TO {self._name('n')}" if table else ""

    def _drop(self) -> str:
        kind, relkind = self._random.choice(
            (("TABLE", "r"), ("VIEW", "v"), ("SEQUENCE", "S"), ("MATERIALIZED VIEW", "m"))
        )
        found = self._table(relkind)
        return (
            f"DROP {kind} {found}{self._random.choice(('', ' CASCADE'))}"
            if found and self._random.random() < 0.5
            else ""
        )

    def _index(self) -> str:
        found = self._some_column("r")
        how = self._random.choice(("", "", "CONCURRENTLY "))
        return f"CREATE INDEX {how}{self._name('i')} ON {found[0]} ({found[1]})" if found else ""

    def _drop_index(self) -> str:
        found = self._pick(
            "SELECT relname FROM pg_class WHERE relnamespace = 's'::regnamespace AND relkind = 'i'"
            " AND relname LIKE 'i%%' ORDER BY 1"
        )
        return f"DROP INDEX {self._random.choice(('', 'CONCURRENTLY '))}s.{found[0]}" if found else ""

    def _view(self) -> str:
        table = self._table("rp")
        return f"CREATE VIEW s.{self._name('v')} AS SELECT id FROM {table}" if table else ""

    def _materialized(self) -> str:
        table = self._table("rp")
        return f"CREATE MATERIALIZED VIEW s.{self._name('m')} AS SELECT count(*) FROM {table}" if table else ""

    def _function(self) -> str:
        name, body = self._name("f"), self._random.randrange(100)
        if self._random.random() < 0.3:
            return f"CREATE PROCEDURE s.{name}() LANGUAGE plpgsql AS $p$ BEGIN PERFORM {body}; END $p$"
        return f"CREATE FUNCTION s.{name}(x int) RETURNS int LANGUAGE sql AS 'SELECT x + {body}; SELECT x'"

    def _type(self) -> str:
        name = self._name("y")
        return self._random.choice(
            (
                f"CREATE TYPE s.{name} AS ENUM ('a', 'b'); ALTER TYPE s.{name} ADD VALUE 'c'",
                f"CREATE TYPE s.{name} AS (a int, b text)",
                f"CREATE DOMAIN s.{name} AS int CHECK (VALUE > 0)",
            )
        )

    def _sequence(self) -> str:
        return f"CREATE SEQUENCE s.{self._name('z')} INCREMENT {self._random.randint(1, 9)}"

    def _comment(self) -> str:
        found = self._some_column()
        if not found:
            return ""
        text = f"it''s {self._name('x')}"
        return self._random.choice(
            (f"COMMENT ON TABLE {found[0]} IS '{text}'", f"COMMENT ON COLUMN {found[0]}.{found[1]} IS '{text}'")
        )

    def _trigger(self) -> str:
        table, name = self._table(), self._name("g")
        if not table:
            return ""
        return (
            f"CREATE FUNCTION s.{name}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; "
            f"CREATE TRIGGER {name} BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION s.{name}()"
        )

    def _policy(self) -> str:
        table = self._table()
        return f"CREATE POLICY {self._name('o')} ON {table} USING (true)" if table else ""

    def _statistics(self) -> str:
        found = self._some_column("r")
        return f"CREATE STATISTICS s.{self._name('w')} ON id, {found[1]} FROM {found[0]}" if found else ""

    def _grant(self) -> str:
        table = self._table("rp")
        return f"{self._random.choice(('GRANT SELECT ON', 'GRANT ALL ON'))} {table} TO PUBLIC" if table else ""
