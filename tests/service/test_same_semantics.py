"""A request and the statement that means the same leave the same home."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from command_line import run_ggshell
from home_content import home_content
from service_client import RunningService, add_users

pytestmark = pytest.mark.slow


class Case(NamedTuple):
    """Requests, and the statements that mean the same. ``before``: statements that both homes begin with."""

    requests: tuple[tuple[str, str, Any], ...]
    statements: tuple[str, ...]
    before: tuple[str, ...] = ()


ADDED = ("ADD EXTRACT p1, EXTTRAILSOURCE dirdat/ea", "ADD EXTTRAIL dirdat/eb, EXTRACT p1, MEGABYTES 50")
SOURCE = {"name": "ea", "path": "dirdat/"}
CASES = {
    "an initial load": Case(
        (("POST", "/extracts/L1", {"source": "tables", "description": "load"}),),
        ('ADD EXTRACT l1, SOURCEISTABLE, DESC "load"',),
    ),
    "a pump with its trail": Case(
        (("POST", "/extracts/P1", {"source": SOURCE, "targets": [{"name": "eb", "path": "dirdat/", "sizeMB": 50}]}),),
        ADDED,
    ),
    "a pump at a position": Case(
        (("POST", "/extracts/P1", {"source": SOURCE, "begin": {"sequence": 3, "offset": 0}}),),
        ("ADD EXTRACT p1, EXTTRAILSOURCE dirdat/ea, EXTSEQNO 3, EXTRBA 0",),
    ),
    "another size of a trail": Case(
        (("PATCH", "/extracts/P1", {"targets": [{"name": "eb", "path": "dirdat/", "sizeMB": 99}]}),),
        ("ALTER EXTTRAIL dirdat/eb, EXTRACT p1, MEGABYTES 99",),
        ADDED,
    ),
    "a new description": Case(
        (("PATCH", "/extracts/P1", {"description": "to the south"}),), ('ALTER EXTRACT p1, DESC "to the south"',), ADDED
    ),
    "a rollover": Case((("PATCH", "/extracts/P1", {"rollover": True}),), ("ALTER EXTRACT p1, ETROLLOVER",), ADDED),
    "a deleted pump": Case((("DELETE", "/extracts/P1", None),), ("DELETE EXTRACT p1 !",), ADDED),
    "a Replicat": Case(
        (
            (
                "POST",
                "/replicats/R1",
                {"source": SOURCE, "checkpoint": {"table": "ggadmin.ckpt"}, "mode": {"parallel": True}},
            ),
        ),
        ("ADD REPLICAT r1, PARALLEL, EXTTRAIL dirdat/ea, CHECKPOINTTABLE ggadmin.ckpt",),
    ),
    "an alias": Case(
        (("POST", "/credentials/Lab/north", {"userid": "gg@h:1/d", "password": "a b'c"}),),
        ('ALTER CREDENTIALSTORE ADD USER gg@h:1/d PASSWORD "a b\'c" ALIAS north DOMAIN Lab',),
    ),
    "a replaced and a deleted alias": Case(
        (
            ("PUT", "/credentials/Lab/north", {"userid": "other@h:1/d", "password": "p"}),
            ("POST", "/credentials/Lab/east", {"userid": "x@h:1/d", "password": "p"}),
            ("DELETE", "/credentials/Lab/east", None),
        ),
        ("ALTER CREDENTIALSTORE REPLACE USER other@h:1/d PASSWORD p ALIAS north DOMAIN Lab",),
        ("ALTER CREDENTIALSTORE ADD USER gg@h:1/d PASSWORD q ALIAS north DOMAIN Lab",),
    ),
    "a user": Case(
        (
            ("POST", "/authorizations/Operator/nina", {"credential": "long-enough-1", "info": "night shift"}),
            ("POST", "/authorizations/User/ivan", {"credential": "long-enough-2"}),
            ("PATCH", "/authorizations/User/ivan", {"info": "deputy"}),
            ("DELETE", "/authorizations/User/uma", None),
        ),
        (
            "ADD USER nina, ROLE OPERATOR, PASSWORD long-enough-1, INFO night shift",
            "ADD USER ivan, ROLE USER, PASSWORD long-enough-2",
            "ALTER USER ivan, INFO deputy",
            "DELETE USER uma",
        ),
    ),
    "a master key": Case((("POST", "/masterkey", None),), ("CREATE WALLET", "ADD MASTERKEY")),
    "a path": Case(
        (
            (
                "POST",
                "/sources/DP1",
                {
                    "name": "DP1",
                    "source": {"uri": "trail://localhost/services/v2/sources?trail=dirdat/ea"},
                    "target": {"uri": "trail://localhost/services/v2/targets?trail=dirdat/eb"},
                },
            ),
        ),
        ("ADD DISTPATH dp1 SOURCE dirdat/ea TARGET dirdat/eb",),
    ),
    "a path at a position, with small files": Case(
        (
            (
                "POST",
                "/sources/DP1",
                {
                    "source": {"uri": "trail://localhost/services/v2/sources?trail=dirdat/ea"},
                    "target": {"uri": "file://dirdat/eb", "details": {"trail": {"sizeMB": 7}}},
                    "begin": {"sequence": 2, "offset": 0},
                },
            ),
        ),
        (
            "ADD DISTPATH dp1 SOURCE dirdat/ea TARGET dirdat/eb MEGABYTES 7",
            "ALTER DISTPATH dp1 BEGIN SEQNO 2 RBA 0",
        ),
    ),
    "a deleted path": Case(
        (("DELETE", "/sources/DP1", None),),
        ("DELETE DISTPATH dp1",),
        ("ADD DISTPATH dp1 SOURCE dirdat/ea TARGET dirdat/eb",),
    ),
    "connections": Case(
        (
            ("POST", "/connections/Lab.east", {"credentials": {"userid": "x@h:1/d", "password": "p"}}),
            ("PUT", "/connections/Lab.north", {"credentials": {"userid": "other@h:1/d", "password": "r"}}),
            ("DELETE", "/connections/Lab.west", None),
        ),
        (
            "ALTER CREDENTIALSTORE ADD USER x@h:1/d PASSWORD p ALIAS east DOMAIN Lab",
            "ALTER CREDENTIALSTORE REPLACE USER other@h:1/d PASSWORD r ALIAS north DOMAIN Lab",
            "ALTER CREDENTIALSTORE DELETE USER w@h:1/d ALIAS west DOMAIN Lab",
        ),
        (
            "ALTER CREDENTIALSTORE ADD USER gg@h:1/d PASSWORD q ALIAS north DOMAIN Lab",
            "ALTER CREDENTIALSTORE ADD USER w@h:1/d PASSWORD q ALIAS west DOMAIN Lab",
        ),
    ),
    "versions of the master key": Case(
        (("POST", "/masterkey", None), ("DELETE", "/masterkey/1", None)),
        ("RENEW MASTERKEY", "DELETE MASTERKEY VERSION 1"),
        ("CREATE WALLET", "ADD MASTERKEY"),
    ),
    "the file size of a trail": Case(
        (("PATCH", "/trails/eb", {"sizeMB": 99, "description": "to the south"}),),
        ("ALTER EXTTRAIL dirdat/eb, EXTRACT p1, MEGABYTES 99",),
        ADDED,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_request_leaves_the_home_that_its_statement_leaves(case: Case, tmp_path: Path) -> None:
    told = tmp_path / "told"
    told.mkdir()
    add_users(told)
    asked = RunningService(tmp_path / "asked")
    try:
        for statement in case.before:
            asked.run(statement)
        client = asked.client()
        for method, address, body in case.requests:
            reply = client.send(method, address, body)
            assert reply.status in (200, 201), reply.text
    finally:
        asked.close()
    (told / "dirprm").mkdir(exist_ok=True)
    (told / "dirprm" / "service.prm").touch()
    done = run_ggshell("--home", told, "-c", "\n".join([*case.before, *case.statements]))
    assert done.returncode == 0, done.stdout + done.stderr
    assert home_content(asked.home) == home_content(told)
