"""An Iceberg REST catalog for tests: a process that serves a part of the protocol from PyIceberg's SQL catalog.

Every request must carry the token that the OAuth endpoint gives for the client ``lake`` and its secret.
``python rest_catalog.py DATABASE WAREHOUSE`` prints its port.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

CLIENT, SECRET, TOKEN = "lake", "zq9-secret-of-the-catalog", "token-of-the-catalog"

CATALOG_LOGIN = {"PYICEBERG_CATALOG__LAKE__CREDENTIAL": f"{CLIENT}:{SECRET}"}
"""The environment in which its clients find the login."""


@contextmanager
def serving_catalog(folder: Path, warehouse: str) -> Iterator[str]:
    """The address of a catalog that runs during the block."""
    command = [sys.executable, __file__, str(folder / "rest.db"), warehouse]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def _serve(database: str, warehouse: str) -> None:
    from pyiceberg.catalog.rest import CreateTableRequest, TableResponse
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
    from pyiceberg.table import CommitTableRequest, Table

    store = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.region": os.environ["AWS_REGION"]}
    catalog = SqlCatalog("served", uri=f"sqlite:///{database}", warehouse=warehouse, **store)

    def described(table: Table) -> Any:
        found = TableResponse(metadata=table.metadata, metadata_location=table.metadata_location, config={})
        return json.loads(found.model_dump_json(by_alias=True))

    def create(namespace: str, body: bytes) -> Any:
        asked = CreateTableRequest.model_validate({"location": None, **json.loads(body)})
        create = catalog._create_staged_table if asked.stage_create else catalog.create_table
        return described(
            create(
                (namespace, asked.name),
                asked.table_schema,
                asked.location,
                asked.partition_spec,
                asked.write_order,
                asked.properties,
            )
        )

    def commit(namespace: str, name: str, body: bytes) -> Any:
        asked = CommitTableRequest.model_validate_json(body)
        try:
            table: Any = catalog.load_table((namespace, name))
        except NoSuchTableError:
            table = type("New", (), {"name": lambda self: (namespace, name)})()
        done = catalog.commit_table(table, asked.requirements, asked.updates)
        return json.loads(done.model_dump_json(by_alias=True))

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """No log."""

        def answer(self, status: int, body: Any = None) -> None:
            data = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.handle_request(b"")

        def do_POST(self) -> None:
            self.handle_request(self.rfile.read(int(self.headers["Content-Length"])))

        def handle_request(self, body: bytes) -> None:
            parts = [unquote(each) for each in self.path.partition("?")[0].removeprefix("/v1/").split("/")]
            if parts == ["oauth", "tokens"]:
                asked = {name: values[0] for name, values in parse_qs(body.decode()).items()}
                good = (asked.get("client_id"), asked.get("client_secret")) == (CLIENT, SECRET)
                answer = {"access_token": TOKEN, "token_type": "bearer"} if good else {"error": "invalid_client"}
                return self.answer(200 if good else 401, answer)
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                return self.answer(401, {"error": {"message": "no token", "type": "NotAuthorized", "code": 401}})
            try:
                return self.answer(200, self.result(parts, body))
            except NoSuchTableError:
                return self.answer(404, {"error": {"message": "no table", "type": "NoSuchTableException", "code": 404}})
            except CommitFailedException as error:
                return self.answer(409, {"error": {"message": str(error), "type": "Commit", "code": 409}})

        def result(self, parts: list[str], body: bytes) -> Any:
            match (self.command, *parts):
                case ("GET", "config"):
                    return {"defaults": {}, "overrides": {}}
                case ("GET", "namespaces"):
                    return {"namespaces": [list(each) for each in catalog.list_namespaces()]}
                case ("GET", "namespaces", namespace, "tables"):
                    found = catalog.list_tables(namespace)
                    return {"identifiers": [{"namespace": list(each[:-1]), "name": each[-1]} for each in found]}
                case ("POST", "namespaces"):
                    name = json.loads(body)["namespace"]
                    catalog.create_namespace_if_not_exists(tuple(name))
                    return {"namespace": name, "properties": {}}
                case ("POST", "namespaces", namespace, "tables"):
                    return create(namespace, body)
                case ("GET", "namespaces", namespace, "tables", name):
                    return described(catalog.load_table((namespace, name)))
                case ("POST", "namespaces", namespace, "tables", name):
                    return commit(namespace, name, body)
            raise NoSuchTableError(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    _serve(*sys.argv[1:])
