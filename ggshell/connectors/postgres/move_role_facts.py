"""Roles, settings and privileges that belong to a PostgreSQL database, but that no dump of the database contains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.move_facts import Grant, RoleFacts, Setting
from ggshell.connectors.postgres.session import execute
from ggshell.types import postgres_literal, quote

if TYPE_CHECKING:
    import psycopg

_LISTS: Final = frozenset(
    {
        "local_preload_libraries",
        "search_path",
        "session_preload_libraries",
        "shared_preload_libraries",
        "temp_tablespaces",
        "unix_socket_directories",
    }
)
"""The settings whose stored value is a list of quoted names already."""
_OWN_SETTINGS: Final = "ggshell."
_USED: Final = """
WITH RECURSIVE inside AS MATERIALIZED (
  SELECT 'pg_class'::regclass::oid AS class, oid, relowner AS owner FROM pg_class WHERE relnamespace = ANY (%(schemas)s::oid[])
  UNION ALL
  SELECT 'pg_proc'::regclass, oid, proowner FROM pg_proc WHERE pronamespace = ANY (%(schemas)s::oid[])
  UNION ALL
  SELECT 'pg_type'::regclass, oid, typowner FROM pg_type WHERE typnamespace = ANY (%(schemas)s::oid[])
  UNION ALL
  SELECT 'pg_namespace'::regclass, oid, nspowner FROM pg_namespace WHERE oid = ANY (%(schemas)s::oid[])
  UNION ALL
  SELECT 'pg_default_acl'::regclass, oid, defaclrole FROM pg_default_acl WHERE defaclnamespace = ANY (%(schemas)s::oid[])
  UNION ALL
  SELECT 'pg_policy'::regclass, y.oid, c.relowner FROM pg_policy y JOIN pg_class c ON c.oid = y.polrelid
   WHERE c.relnamespace = ANY (%(schemas)s::oid[])),
used AS MATERIALIZED (
  SELECT owner AS role FROM inside
  UNION
  SELECT d.refobjid FROM pg_shdepend d JOIN inside i ON i.class = d.classid AND i.oid = d.objid
   WHERE d.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
     AND d.refclassid = 'pg_authid'::regclass AND d.deptype IN ('o', 'a', 'r')),
members AS (
  SELECT role FROM used UNION SELECT m.member FROM pg_auth_members m JOIN members b ON b.role = m.roleid AND b.role >= 16384),
needed AS (
  SELECT role FROM members UNION SELECT m.roleid FROM pg_auth_members m JOIN needed b ON b.role = m.member)
SELECT r.oid::bigint, r.rolname, r.oid IN (SELECT role FROM used), r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb,
       r.rolcanlogin, r.rolreplication, r.rolbypassrls, r.rolconnlimit,
       CASE WHEN isfinite(r.rolvaliduntil) THEN r.rolvaliduntil::text END,
       coalesce((SELECT s.setconfig FROM pg_db_role_setting s WHERE s.setrole = r.oid AND s.setdatabase = 0), '{}'),
       coalesce((SELECT jsonb_agg(DISTINCT jsonb_build_array(g.rolname, m.admin_option)) FROM pg_auth_members m
                   JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid), '[]')
  FROM pg_roles r WHERE r.oid IN (SELECT role FROM needed) AND (r.oid >= 16384 OR r.oid = 10) ORDER BY r.rolname"""
_ATTRIBUTES: Final = ("SUPERUSER", "INHERIT", "CREATEROLE", "CREATEDB", "LOGIN", "REPLICATION", "BYPASSRLS")
_SETTINGS: Final = """
SELECT coalesce(r.rolname::text, ''), s.setdatabase <> 0, split_part(c, '=', 1), substr(c, strpos(c, '=') + 1)
  FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = s.setrole CROSS JOIN unnest(s.setconfig) c
 WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database())) ORDER BY 1, 2, 3"""
_GRANTS: Final = """
SELECT coalesce(r.rolname::text, ''), a.privilege_type, bool_or(a.is_grantable)
  FROM pg_database d CROSS JOIN aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
  LEFT JOIN pg_roles r ON r.oid = a.grantee
 WHERE d.datname = current_database() AND a.grantee <> d.datdba GROUP BY 1, 2 ORDER BY 1, 2"""


def roles(connection: psycopg.Connection[Any], schemas: list[int]) -> list[RoleFacts]:
    """Read the roles that own objects of schemas or have privileges on them, with their members and the roles they are in."""
    return [_role(row) for row in execute(connection, _USED, {"schemas": schemas})]


def _role(row: tuple[Any, ...]) -> RoleFacts:
    _, name, used, *attributes, limit, until, config, groups = row
    words = [word if has else f"NO{word}" for word, has in zip(_ATTRIBUTES, attributes, strict=True)]
    words += [f"CONNECTION LIMIT {limit}"] * (limit >= 0) + [f"VALID UNTIL {postgres_literal(until or '')}"] * bool(
        until
    )
    further = [_set(f"ROLE {quote(name)}", *entry.split("=", 1)) for entry in config]
    for group, admin in groups:
        further.append(f"GRANT {quote(group)} TO {quote(name)}{' WITH ADMIN OPTION' * admin};")
    return RoleFacts(name, used, f"CREATE ROLE {quote(name)} {' '.join(words)};", tuple(further))


def _set(subject: str, name: str, value: str) -> str:
    """The statement that stores a setting; without a value of a list it stores an empty text."""
    shown = value if name.lower() in _LISTS and value else postgres_literal(value)
    return f"ALTER {subject} SET {'.'.join(map(quote, name.split('.')))} TO {shown};"


def settings(connection: psycopg.Connection[Any]) -> list[Setting]:
    """Read the settings of the database, of roles, and of roles in the database, without ggshell's own."""
    found = (Setting(*row) for row in execute(connection, _SETTINGS))
    return [setting for setting in found if not setting.name.startswith(_OWN_SETTINGS)]


def setting_statement(database: str, setting: Setting) -> str:
    """The statement that stores a setting in a database or for a role."""
    role = f"ROLE {quote(setting.role)}" if setting.role else "ROLE ALL"
    where = f" IN DATABASE {quote(database)}" if setting.of_database else ""
    subject = f"DATABASE {quote(database)}" if setting.of_database and not setting.role else f"{role}{where}"
    return _set(subject, setting.name, setting.value)


def grants(connection: psycopg.Connection[Any]) -> list[Grant]:
    """Read the privileges on the database. The role PUBLIC has an empty name."""
    return [Grant(*row) for row in execute(connection, _GRANTS)]


def grant_statement(database: str, grant: Grant, *, revoke: bool) -> str:
    """The statement that grants or revokes a privilege on a database."""
    role = quote(grant.role) if grant.role else "PUBLIC"
    if revoke:
        return f"REVOKE {grant.privilege} ON DATABASE {quote(database)} FROM {role};"
    return f"GRANT {grant.privilege} ON DATABASE {quote(database)} TO {role}{' WITH GRANT OPTION' * grant.grantable};"
