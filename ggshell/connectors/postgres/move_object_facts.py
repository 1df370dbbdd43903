"""Extensions, collations and other objects of a PostgreSQL database that a move must know, most of them only by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.move_facts import AvailableExtension, CollationFacts, Extension, Names
from ggshell.connectors.postgres.session import execute
from ggshell.connectors.postgres.slot import PUBLICATION

if TYPE_CHECKING:
    import psycopg

_EXTENSIONS: Final = """
SELECT e.extname, e.extversion,
       coalesce((SELECT array_agg(format('%I.%I', n.nspname, c.relname) ORDER BY 1)
                   FROM unnest(e.extconfig) x JOIN pg_class c ON c.oid = x JOIN pg_namespace n ON n.oid = c.relnamespace
                  WHERE c.relkind = 'r' AND pg_relation_size(c.oid) > 0), '{}')
  FROM pg_extension e WHERE e.extname <> 'plpgsql' ORDER BY 1"""
_AVAILABLE: Final = """
SELECT e.name, e.default_version, array_agg(v.version ORDER BY v.version),
       bool_or(v.version = e.default_version
               AND (r.rolsuper OR NOT v.superuser OR v.trusted AND has_database_privilege(current_database(), 'CREATE')))
  FROM pg_available_extensions e JOIN pg_available_extension_versions v ON v.name = e.name
  CROSS JOIN pg_roles r WHERE r.rolname = current_user GROUP BY 1, 2"""
_COLLATION: Final = """
SELECT {name}, NOT n.nspname = 'pg_catalog', CASE c.collprovider WHEN 'i' THEN 'icu' WHEN 'b' THEN 'builtin' ELSE 'libc' END,
       coalesce(to_jsonb(c)->>'colllocale', to_jsonb(c)->>'colliculocale', c.collcollate, ''), coalesce(c.collversion, ''),
       coalesce(pg_collation_actual_version(c.oid), '')
  FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace"""
_QUALIFIED: Final = "CASE n.nspname WHEN 'pg_catalog' THEN c.collname ELSE format('%%I.%%I', n.nspname, c.collname) END"
_COLLATIONS: Final = f"""
WITH used AS (
  SELECT a.attcollation AS found FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
   WHERE c.relnamespace = ANY (%(schemas)s::oid[]) AND c.relkind IN ('r', 'p', 'm', 'f') AND a.attnum > 0
     AND NOT a.attisdropped
  UNION
  SELECT unnest(x.indcollation) FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid
   WHERE c.relnamespace = ANY (%(schemas)s::oid[]))
{_COLLATION.format(name=_QUALIFIED)}
 WHERE c.oid IN (SELECT found FROM used) AND c.collname NOT IN ('default', 'C', 'POSIX', 'ucs_basic') ORDER BY 1"""
_SYSTEM_COLLATIONS: Final = f"""
{_COLLATION.format(name="c.collname")}
 WHERE n.nspname = 'pg_catalog' AND c.collname = ANY (%s::text[])
   AND c.collencoding IN (-1, (SELECT encoding FROM pg_database WHERE datname = current_database()))"""
_KNOWS_LOCALE: Final = """
SELECT EXISTS (SELECT FROM pg_collation c WHERE c.collprovider = %(provider)s
                  AND (c.collprovider = 'b' OR c.collprovider = 'i' AND pg_collation_actual_version(c.oid) <> ''
                       OR c.collprovider = 'c' AND regexp_replace(lower(c.collcollate), '[-_]', '', 'g')
                                              = regexp_replace(lower(%(rules)s), '[-_]', '', 'g')))"""
_PROVIDERS: Final = {"libc": "c", "icu": "i", "builtin": "b"}
_MISSING_TYPES: Final = "SELECT name FROM unnest(%s::text[]) name WHERE to_regtype(name) IS NULL ORDER BY 1"

_FREE = "NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = '{catalog}'::regclass AND d.objid = {oid} AND d.deptype = 'e')"
_OF_NO_EXTENSION: Final = _FREE.format(catalog="pg_class", oid="c.oid")
_INSIDE: Final = "relnamespace = ANY (%(schemas)s::oid[])"
_COLUMNS: Final = f"""
SELECT format('%%I.%%I.%%I', n.nspname, c.relname, a.attname) || ' (' || format_type(a.atttypid, NULL) || ')'
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype
 WHERE c.{_INSIDE} AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
   AND {_OF_NO_EXTENSION} AND {{condition}} ORDER BY 1"""
_FUNCTIONS: Final = f"""
  FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
 WHERE p.pronamespace = ANY (%(schemas)s::oid[]) AND {_FREE.format(catalog="pg_proc", oid="p.oid")}"""

_QUERIES: Final[Mapping[Names, str]] = {
    Names.RELATIONS: f"""
SELECT format('%%I.%%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.{_INSIDE} AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND {_OF_NO_EXTENSION} ORDER BY 1""",
    Names.ALWAYS_TRIGGERS: f"""
SELECT format('%%I.%%I.%%I', n.nspname, c.relname, name) FROM (
  SELECT tgrelid AS relation, tgname AS name FROM pg_trigger
   WHERE tgenabled IN ('A', 'R') AND NOT tgisinternal AND tgname NOT LIKE 'ggshell\\_%%'
  UNION ALL SELECT ev_class, rulename FROM pg_rewrite WHERE ev_enabled IN ('A', 'R')) f
  JOIN pg_class c ON c.oid = f.relation JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.{_INSIDE} ORDER BY 1""",
    Names.LOCAL_VALUES: _COLUMNS.format(
        condition="coalesce(b.typname, t.typname) IN ('regclass', 'regproc', 'regprocedure', 'regoper', 'regoperator',"
        " 'regconfig', 'regdictionary', 'regnamespace', 'regrole', 'regtype', 'regcollation', 'xid', 'xid8', 'tid', 'cid',"
        " 'pg_lsn', 'pg_snapshot', 'txid_snapshot') AND coalesce(b.typnamespace, t.typnamespace) = 'pg_catalog'::regnamespace"
    ),
    Names.OID_COLUMNS: _COLUMNS.format(condition="(coalesce(b.oid, t.oid) = 'oid'::regtype OR t.typname = 'lo')"),
    Names.BUILT_IN_TYPES: f"""
SELECT DISTINCT format('%%I.%%I', tn.nspname, t.typname) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace tn ON tn.oid = t.typnamespace
 WHERE c.{_INSIDE} AND c.relkind IN ('r', 'p', 'f', 'm') AND a.attnum > 0 AND NOT a.attisdropped
   AND t.typnamespace <> ALL (%(schemas)s::oid[]) AND {_OF_NO_EXTENSION}
   AND {_FREE.format(catalog="pg_type", oid="coalesce(nullif(t.typelem, 0), t.oid)")} ORDER BY 1""",
    Names.ACCESS_METHODS_USED: f"""
SELECT DISTINCT m.amname::text FROM pg_class c JOIN pg_am m ON m.oid = c.relam
 WHERE c.{_INSIDE} AND {_FREE.format(catalog="pg_am", oid="m.oid")} ORDER BY 1""",
    Names.LIBRARIES: f"SELECT DISTINCT p.probin {_FUNCTIONS} AND l.lanname = 'c' ORDER BY 1",
    Names.UNTRUSTED_FUNCTIONS: f"""
SELECT p.oid::regprocedure::text {_FUNCTIONS} AND NOT l.lanpltrusted ORDER BY 1""",
    Names.TABLESPACES_USED: f"""
SELECT DISTINCT s.spcname::text FROM pg_class c JOIN pg_tablespace s ON s.oid = c.reltablespace WHERE c.{_INSIDE} ORDER BY 1""",
    Names.ACCESS_METHODS: "SELECT amname::text FROM pg_am ORDER BY 1",
    Names.TABLESPACES: "SELECT spcname::text FROM pg_tablespace ORDER BY 1",
    Names.ROLES: "SELECT rolname::text FROM pg_roles ORDER BY 1",
    Names.ASSUMED_ROLES: "SELECT rolname::text FROM pg_roles WHERE pg_has_role(oid, 'MEMBER') ORDER BY 1",
    Names.PRELOADED: """
SELECT trim(library) FROM pg_settings s, unnest(string_to_array(replace(s.setting, '"', ''), ',')) library
 WHERE s.name = 'shared_preload_libraries' AND trim(library) <> '' ORDER BY 1""",
    Names.PUBLICATIONS: f"SELECT pubname::text FROM pg_publication WHERE pubname <> '{PUBLICATION}' ORDER BY 1",
    Names.SUBSCRIPTIONS: """
SELECT s.subname || CASE WHEN s.subenabled THEN '' ELSE ' (disabled)' END
  FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid WHERE d.datname = current_database()
 ORDER BY 1""",
    Names.ORIGINS: """
SELECT roname FROM pg_replication_origin WHERE roname !~ '^pg_[0-9]' AND roname NOT LIKE 'ggs\\_mvrep%%' ORDER BY 1""",
    Names.FOREIGN_SERVERS: f"""
SELECT s.srvname::text FROM pg_foreign_server s WHERE {_FREE.format(catalog="pg_foreign_server", oid="s.oid")} ORDER BY 1""",
    Names.EVENT_TRIGGERS: f"""
SELECT e.evtname::text FROM pg_event_trigger e
 WHERE e.evtname NOT LIKE 'ggshell\\_%%' AND {_FREE.format(catalog="pg_event_trigger", oid="e.oid")} ORDER BY 1""",
    Names.OTHER_SLOTS: """
SELECT slot_name::text FROM pg_replication_slots
 WHERE database = current_database() AND NOT temporary AND slot_name NOT LIKE 'ggs\\_%%' ORDER BY 1""",
    Names.MOVE_TRACES: """
SELECT 'slot ' || slot_name FROM pg_replication_slots WHERE database = current_database() AND slot_name LIKE 'ggs\\_mvext_'
 UNION ALL
SELECT 'table ggshell.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = 'ggshell' AND c.relname IN ('move_markers', 'move_checkpoints') ORDER BY 1""",
}


def names(connection: psycopg.Connection[Any], schemas: list[int], kind: Names) -> list[str]:
    """Read a set of names. ``schemas``: the OIDs of the schemas to move."""
    return [str(row[0]) for row in execute(connection, _QUERIES[kind], {"schemas": schemas})]


def extensions(connection: psycopg.Connection[Any]) -> list[Extension]:
    """Read the installed extensions."""
    return [Extension(name, version, tuple(tables)) for name, version, tables in execute(connection, _EXTENSIONS)]


def available_extensions(connection: psycopg.Connection[Any]) -> list[AvailableExtension]:
    """Read the extensions that can be installed."""
    found = execute(connection, _AVAILABLE)
    return [AvailableExtension(name, default, tuple(versions), allowed) for name, default, versions, allowed in found]


def collations(connection: psycopg.Connection[Any], schemas: list[int]) -> list[CollationFacts]:
    """Read the collations that columns and indexes of the schemas name."""
    return [CollationFacts(*row) for row in execute(connection, _COLLATIONS, {"schemas": schemas})]


def system_collations(connection: psycopg.Connection[Any], wanted: Sequence[str]) -> list[CollationFacts]:
    """Read collations that the server has by itself."""
    return [CollationFacts(*row) for row in execute(connection, _SYSTEM_COLLATIONS, [list(wanted)])]


def knows_locale(connection: psycopg.Connection[Any], provider: str, rules: str) -> bool:
    """Whether the server has another collation of the provider, for libc with the same locale."""
    parameters = {"provider": _PROVIDERS[provider], "rules": rules}
    return bool(execute(connection, _KNOWS_LOCALE, parameters)[0][0])


def missing_types(connection: psycopg.Connection[Any], types: Sequence[str]) -> list[str]:
    """Return the types, as quoted names with their schemas, that the database does not have."""
    return [str(row[0]) for row in execute(connection, _MISSING_TYPES, [list(types)])]
