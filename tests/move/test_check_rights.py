"""Findings about rights, roles and privileges, with logins that are not superusers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest
from move.conftest import OpenSides, run

from ggshell.connectors.postgres import session
from ggshell.move.check import RULES
from ggshell.move.checks import rights, roles, software
from ggshell.move.findings import FindingSeverity

ERROR, WARNING, INFO = FindingSeverity
MOVER = "mover"
_ORIGINS = """
SELECT format('GRANT EXECUTE ON FUNCTION %s TO mover', oid::regprocedure)
  FROM pg_proc WHERE proname ~ '^pg_replication_origin_'"""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two databases, as the superuser and as the role ``mover`` reach them."""

    source: str
    target: str

    @property
    def as_mover(self) -> tuple[str, str]:
        return self.source.replace("user=postgres", f"user={MOVER}"), self.target.replace(
            "user=postgres", f"user={MOVER}"
        )


@pytest.fixture
def pair(older: str, north: str) -> Iterator[Pair]:
    """A source with a table of the role ``app``, and a target; ``mover`` has no rights. All roles of the test are dropped."""
    before = {dsn: _roles(dsn) for dsn in (older, north)}
    for dsn in before:
        run(dsn, f"CREATE ROLE {MOVER} LOGIN")
    run(
        older,
        "CREATE ROLE app;\nCREATE TABLE t (a int PRIMARY KEY);\nALTER TABLE t OWNER TO app",
    )
    yield Pair(older, north)
    for dsn, known in before.items():
        made = _roles(dsn) - known
        run(dsn, "".join(f'DROP OWNED BY "{name}" CASCADE;\n' for name in made))
        run(dsn, "".join(f'DROP ROLE "{name}";\n' for name in made))


def _roles(dsn: str) -> set[str]:
    with psycopg.connect(dsn) as connection:
        return {name for (name,) in connection.execute("SELECT rolname FROM pg_roles").fetchall()}


def test_a_login_without_rights_gets_a_finding_for_each(pair: Pair, sides: OpenSides) -> None:
    both = sides(*pair.as_mover)
    assert [each.code for each in rights.log(both)] == ["GGS-01020"] * 2
    assert [each.code for each in rights.event_triggers(both)] == ["GGS-01021"] * 2
    assert [(each.code, each.subject) for each in rights.tables(both)] == [
        ("GGS-01022", "public.t"),
        ("GGS-01023", "public.t"),
    ]
    assert [each.code for each in rights.database(both)] == ["GGS-01025"] * 2
    assert [each.code for each in rights.applying(both)] == ["GGS-01026", "GGS-01027"] * 2
    assert [each.code for each in rights.visibility(both)] == ["GGS-01030"]


def test_a_login_with_these_rights_is_not(pair: Pair, sides: OpenSides) -> None:
    for dsn in (pair.source, pair.target):
        name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
        run(dsn, f"ALTER ROLE {MOVER} REPLICATION BYPASSRLS;\nGRANT CREATE ON DATABASE {name} TO {MOVER}")
        run(dsn, f"GRANT SET ON PARAMETER session_replication_role TO {MOVER};\nGRANT pg_monitor TO {MOVER}")
        with session.connect(dsn) as connection:
            for (statement,) in session.execute(connection, _ORIGINS):
                session.execute(connection, statement)
    run(pair.source, f"GRANT app TO {MOVER}")
    run(pair.target, f"CREATE ROLE app;\nGRANT app TO {MOVER}")
    both = sides(*pair.as_mover)
    rules = (rights.log, rights.tables, rights.database, rights.applying, rights.owners)
    assert [each for rule in (*rules, rights.visibility) for each in rule(both)] == []


def test_every_rule_works_without_rights(pair: Pair, sides: OpenSides) -> None:
    both = sides(*pair.as_mover)
    assert {each.code for rule in RULES for each in rule(both)} > {"GGS-01020"}


def test_row_security_that_hides_rows_is_found(pair: Pair, sides: OpenSides) -> None:
    run(pair.source, f"ALTER TABLE t ENABLE ROW LEVEL SECURITY;\nGRANT SELECT ON t TO {MOVER}")
    codes = {each.code: each for each in rights.tables(sides(*pair.as_mover))}
    assert set(codes) == {"GGS-01022", "GGS-01024"}
    assert [each.code for each in rights.tables(sides(pair.source, pair.target))] == []


def test_owners_that_the_login_of_the_target_cannot_be_are_found(pair: Pair, sides: OpenSides) -> None:
    run(pair.target, "CREATE ROLE app")
    (found,) = rights.owners(sides(*pair.as_mover))
    assert (found.code, found.objects, found.script) == ("GGS-01028", ("app",), found.script)
    assert 'GRANT "app" TO "mover";' in found.script
    assert list(rights.owners(sides(pair.source, pair.target))) == []


def test_functions_and_extensions_for_superusers_are_found(pair: Pair, sides: OpenSides) -> None:
    script = "CREATE FUNCTION f() RETURNS trigger LANGUAGE c AS '$libdir/autoinc', 'autoinc';\nCREATE EXTENSION pg_buffercache"
    run(pair.source, script)
    both = sides(*pair.as_mover)
    assert [(each.code, each.subject) for each in rights.superuser_functions(both)] == [("GGS-01029", "f()")]
    refused = [each for each in software.extensions(both) if each.code == "GGS-01036"]
    assert [(each.subject, each.script) for each in refused] == [
        ("pg_buffercache", 'CREATE EXTENSION "pg_buffercache";\n')
    ]
    both = sides(pair.source, pair.target)
    assert list(rights.superuser_functions(both)) == []
    assert [each.code for each in software.extensions(both)] == []
    run(pair.target, "CREATE EXTENSION pg_buffercache")
    assert [each.code for each in software.extensions(sides(*pair.as_mover))] == []


def test_missing_roles_come_with_a_script_that_makes_them(pair: Pair, sides: OpenSides) -> None:
    run(
        pair.source,
        "CREATE ROLE \"the reader\" LOGIN CONNECTION LIMIT 5 VALID UNTIL '2040-01-01' PASSWORD 'secret-word';\n"
        'CREATE ROLE readers NOINHERIT;\nGRANT SELECT ON t TO readers;\nGRANT readers TO "the reader" WITH ADMIN OPTION;\n'
        'ALTER ROLE "the reader" SET search_path TO a, "B";\nALTER ROLE "the reader" SET work_mem TO \'9MB\';\n'
        "CREATE ROLE nobody_here;\nGRANT pg_read_all_stats TO app",
    )
    (found,) = roles.missing_roles(sides(pair.source, pair.target))
    assert (found.code, found.severity, found.objects) == ("GGS-01031", ERROR, ("app", "readers"))
    assert "secret-word" not in found.script
    assert "SCRAM" not in found.script
    assert "nobody_here" not in found.script
    run(pair.target, found.script)
    assert list(roles.missing_roles(sides(pair.source, pair.target))) == []
    columns = "rolname, rolcanlogin, rolinherit, rolconnlimit, rolvaliduntil, rolconfig"
    query = f"SELECT {columns} FROM pg_roles WHERE rolname IN ('app', 'readers', 'the reader') ORDER BY 1"
    with psycopg.connect(pair.source) as here, psycopg.connect(pair.target) as there:
        made = there.execute(query).fetchall()
        assert len(made) == 3
        assert made == here.execute(query).fetchall()
        assert there.execute("SELECT pg_has_role('the reader', 'readers', 'MEMBER WITH ADMIN OPTION')").fetchone() == (
            True,
        )


def test_members_of_the_needed_roles_are_only_a_warning(pair: Pair, sides: OpenSides) -> None:
    run(pair.source, "CREATE ROLE person;\nGRANT app TO person")
    run(pair.target, "CREATE ROLE app")
    (found,) = roles.missing_roles(sides(pair.source, pair.target))
    assert (found.severity, found.objects) == (WARNING, ("person",))


def test_only_the_roles_of_the_schemas_are_needed(pair: Pair, sides: OpenSides) -> None:
    run(pair.source, "CREATE SCHEMA s;\nCREATE TABLE s.t (a int);\nCREATE ROLE other;\nGRANT SELECT ON s.t TO other")
    assert [each.objects for each in roles.missing_roles(sides(pair.source, pair.target, "s"))] == [("other",)]


def test_settings_of_roles_are_compared(pair: Pair, sides: OpenSides) -> None:
    name = psycopg.conninfo.conninfo_to_dict(pair.source)["dbname"]
    run(
        pair.source,
        f"ALTER ROLE app SET work_mem TO '9MB';\nALTER ROLE app IN DATABASE {name} SET \"DateStyle\" TO 'German'",
    )
    run(pair.source, f"ALTER ROLE {MOVER} SET work_mem TO '8MB'")
    run(pair.target, "CREATE ROLE app")
    (found,) = roles.settings(sides(pair.source, pair.target))
    assert found.objects == ("app: work_mem = 9MB", "app: DateStyle = German")
    run(pair.target, found.script)
    assert list(roles.settings(sides(pair.source, pair.target))) == []


def test_the_script_of_privileges_makes_them_equal(pair: Pair, sides: OpenSides) -> None:
    run(pair.target, "CREATE ROLE app")
    name = psycopg.conninfo.conninfo_to_dict(pair.source)["dbname"]
    run(
        pair.source,
        f"REVOKE ALL ON DATABASE {name} FROM PUBLIC;\nGRANT CONNECT ON DATABASE {name} TO app WITH GRANT OPTION",
    )
    (found,) = roles.grants(sides(pair.source, pair.target))
    assert found.code == "GGS-01033"
    assert found.objects == ("+CONNECT for app", "-CONNECT for PUBLIC", "-TEMPORARY for PUBLIC")
    run(pair.target, found.script)
    assert list(roles.grants(sides(pair.source, pair.target))) == []
