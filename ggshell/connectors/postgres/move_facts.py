"""A PostgreSQL database as the check before a move reads it. Nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ggshell.connectors.move_facts import (
    AvailableExtension,
    Capacity,
    CollationFacts,
    DumpProgram,
    Extension,
    Grant,
    Locale,
    Names,
    OpenWork,
    Rights,
    RoleFacts,
    SequenceFacts,
    ServerFacts,
    Setting,
    TableFacts,
)
from ggshell.connectors.postgres import move_object_facts as objects
from ggshell.connectors.postgres import move_role_facts as roles
from ggshell.connectors.postgres import move_server_facts as servers
from ggshell.connectors.postgres import move_table_facts as tables
from ggshell.connectors.postgres import slot
from ggshell.connectors.postgres.schema_trandata_sql import SCHEMA
from ggshell.connectors.postgres.session import execute

if TYPE_CHECKING:
    import psycopg

_SCHEMAS: Final = """
SELECT n.nspname, n.oid::bigint FROM pg_namespace n
 WHERE n.nspname NOT LIKE 'pg\\_%%' AND n.nspname NOT IN ('information_schema', %s)
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_namespace'::regclass AND d.objid = n.oid AND d.deptype = 'e')
 ORDER BY 1"""


class PostgresMoveFacts:
    """The facts of one database. ``schemas``: those to move, empty for all of users."""

    def __init__(self, connection: psycopg.Connection[Any], conninfo: str, schemas: Sequence[str]) -> None:
        self._connection = connection
        self._conninfo = conninfo
        found = {str(name): int(oid) for name, oid in execute(connection, _SCHEMAS, [SCHEMA])}
        self.schemas = tuple(name for name in found if not schemas or name in schemas)
        self.missing_schemas = tuple(name for name in schemas if name not in found)
        self._oids = [found[name] for name in self.schemas]

    def server(self) -> ServerFacts:
        return servers.server(self._connection)

    def capacity(self) -> Capacity:
        return servers.capacity(self._connection)

    def locale(self) -> Locale:
        return servers.locale(self._connection)

    def rights(self) -> Rights:
        return servers.rights(self._connection, self._conninfo)

    def tables(self) -> list[TableFacts]:
        return tables.tables(self._connection, self._oids)

    def sequences(self) -> list[SequenceFacts]:
        return tables.sequences(self._connection, self._oids)

    def roles(self) -> list[RoleFacts]:
        return roles.roles(self._connection, self._oids)

    def settings(self) -> list[Setting]:
        return roles.settings(self._connection)

    def setting_statement(self, setting: Setting) -> str:
        return roles.setting_statement(self._connection.info.dbname, setting)

    def grants(self) -> list[Grant]:
        return roles.grants(self._connection)

    def grant_statement(self, grant: Grant, *, revoke: bool = False) -> str:
        return roles.grant_statement(self._connection.info.dbname, grant, revoke=revoke)

    def extensions(self) -> list[Extension]:
        return objects.extensions(self._connection)

    def available_extensions(self) -> list[AvailableExtension]:
        return objects.available_extensions(self._connection)

    def collations(self) -> list[CollationFacts]:
        return objects.collations(self._connection, self._oids)

    def system_collations(self, names: Sequence[str]) -> list[CollationFacts]:
        return objects.system_collations(self._connection, names)

    def knows_locale(self, provider: str, rules: str) -> bool:
        return objects.knows_locale(self._connection, provider, rules)

    def missing_types(self, types: Sequence[str]) -> list[str]:
        return objects.missing_types(self._connection, types)

    def open_work(self) -> list[OpenWork]:
        return servers.open_work(self._connection)

    def large_objects(self) -> int:
        return int(execute(self._connection, "SELECT count(*) FROM pg_largeobject_metadata")[0][0])

    def free_disk(self) -> int | None:
        return slot.free_disk(self._connection)

    def dump_program(self, source: int, target: int) -> DumpProgram | None:
        return servers.dump_program(source, target)

    def names(self, kind: Names) -> list[str]:
        return objects.names(self._connection, self._oids, kind)
