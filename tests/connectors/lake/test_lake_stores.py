"""Lakes in an object store: each form, with and without a catalog, read by the libraries of the form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from batches import Row
from black_hole import BlackHole
from deliveries import BEGIN, Deliveries, ProcessEnded
from lakes import PEOPLE, Lake, image, key_update, person
from object_stores import Bucket
from psycopg.conninfo import conninfo_to_dict
from readers import readers_agree_on_all_tables
from rest_catalog import CATALOG_LOGIN, CLIENT, serving_catalog
from stored_tables import stored_table

from ggshell.clock import FakeClock
from ggshell.connectors.lake.commits import CommitLog, LakeCommit
from ggshell.connectors.lake.forms import delta_state, iceberg_catalog
from ggshell.connectors.lake.maintenance import maintain
from ggshell.connectors.lake.readable import table_names
from ggshell.connectors.lake.store import LakeStore
from ggshell.connectors.lake.target import LakeTarget, TableForm, lake_target
from ggshell.errors import ConflictError, ParameterError, StoreError
from ggshell.home.home import Home
from ggshell.home.maintenance import MaintenanceSettings
from ggshell.record.operation import IoType
from ggshell.types import TableName, TrailPosition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("parquet", "delta", "iceberg-sqlite", "iceberg-postgresql", "iceberg-rest")


@pytest.fixture(params=KINDS)
def lake(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    spark: SparkSession,
) -> Iterator[Lake]:
    """After each test, all readers must find the same rows. Spark cannot read with the login of a PostgreSQL catalog, which
    its Java would need in its environment from its start."""
    made = Lake(tmp_path / "home", TableForm(request.param.partition("-")[0]))
    made.target = LakeTarget(made.form, f"{bucket.location}/a-lake")
    with ExitStack() as stack:
        if request.param == "iceberg-sqlite":
            made.target = made.target._replace(catalog=f"sql+sqlite:///{tmp_path}/catalog.db")
        if request.param == "iceberg-postgresql":
            found = conninfo_to_dict(request.getfixturevalue("north"))
            monkeypatch.setenv("PGPASSWORD", str(found.get("password", "")))
            monkeypatch.setenv("PGHOST", str(found["host"]))
            place = f"{found['user']}@:{found['port']}/{found['dbname']}"
            made.target = made.target._replace(catalog=f"sql+postgresql://{place}")
        if request.param == "iceberg-rest":
            use_catalog(monkeypatch)
            address = stack.enter_context(serving_catalog(tmp_path, f"{bucket.location}/warehouse"))
            made.target = lake_target(made.home, f"iceberg:rest+{address}?warehouse=main")
        target = made.target  # a test may change its own
        yield made
        use_catalog(monkeypatch)
        readers_agree_on_all_tables(target, None if request.param == "iceberg-postgresql" else spark)


def use_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CATALOG_LOGIN.items():
        monkeypatch.setenv(name, value)


def rows(lake: Lake) -> list[Any]:
    people = stored_table(lake, "hr.people").to_pylist()
    return sorted((row["id"], row["name"], str(row["pay"])) for row in people)


def test_batches_are_delivered_once_to_an_object_store(lake: Lake) -> None:
    deliveries = Deliveries(lake)
    first = lake.write([person(number, "Ada", "1") for number in range(1, 6)])
    deliveries.batch(0, BEGIN, first)
    second = lake.write([key_update(PEOPLE, 1, 10), person(11, "Bo", "2")])
    with pytest.raises(ProcessEnded):
        deliveries.batch(1, first, second, commits=False)
    deliveries.batch(1, first, second)
    assert rows(lake) == [(number, "Ada", "1.00") for number in (2, 3, 4, 5, 10)] + [(11, "Bo", "2.00")]
    logged = stored_table(lake, "log")
    assert len(logged) == len(set(logged["rba"].to_pylist())) == 7
    assert set(logged["table"].to_pylist()) == {"people"}
    done = CommitLog(lake.target, "LAKE").latest()
    assert done is not None
    assert (done.batch, done.position) == (1, second)


def test_a_table_with_any_name_is_delivered_to_an_object_store(lake: Lake) -> None:
    """Regression: the log and the data of such a Delta table were in different folders, and its second batch always failed."""
    table = PEOPLE._replace(name=TableName("hr", "Mixed Case é&=+"))
    deliveries, end = Deliveries(lake), BEGIN
    for number in range(3):
        row = Row(table, IoType.INSERT, image(str(number), "Ada", "1"))
        begin, end = end, lake.write([row, *([key_update(table, number - 1, number + 9)] if number else [])])
        deliveries.batch(number, begin, end)
    assert sorted(stored_table(lake, str(table.name))["id"].to_pylist()) == [2, 10, 11]
    assert table_names(lake.target) == [table.name]


@pytest.mark.parametrize("lake", ["delta", "iceberg-rest"], indirect=True)
def test_a_lake_in_an_object_store_is_maintained(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log gets checkpoints, too. The address of this store is not a secure one, which some libraries refuse by default."""
    monkeypatch.setattr(delta_state, "CHECKPOINT_EVERY", 2)
    deliveries, end = Deliveries(lake), BEGIN
    for number in range(4):
        begin, end = end, lake.write([person(number, "Ada", "1")])
        deliveries.batch(number, begin, end)
    log, people = maintain(
        lake.home, "LAKE", lake.target, MaintenanceSettings(), FakeClock(4_000_000_000_000_000)
    ).tables
    assert (log.compacted, log.files, people.compacted, people.files) == (4, 1, 4, 1)
    deliveries.batch(4, end, lake.write([person(4, "Bo", "2")]))
    assert rows(lake) == [*((number, "Ada", "1.00") for number in range(4)), (4, "Bo", "2.00")]


@pytest.mark.parametrize("lake", ["parquet", "iceberg-rest"], indirect=True)
def test_of_two_processes_that_commit_a_batch_one_succeeds(lake: Lake) -> None:
    Deliveries(lake).batch(0, BEGIN, lake.write([person(1, "Ada", "1")]))
    commit = LakeCommit(1, TrailPosition(0, 1000))
    CommitLog(lake.target, "LAKE").add(commit)
    with pytest.raises(ConflictError, match="was committed by another process"):
        CommitLog(lake.target, "LAKE").add(commit)


@pytest.mark.parametrize("lake", ["iceberg-rest"], indirect=True)
def test_a_catalog_that_refuses_a_client_is_reported_without_its_secret(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__CREDENTIAL", f"{CLIENT}:zq9-wrong")
    with pytest.raises(StoreError, match="cannot be used: invalid_client") as refused:
        CommitLog(lake.target, "LAKE")
    assert "zq9" not in str(refused.value)


@pytest.mark.parametrize("lake", ["iceberg-postgresql"], indirect=True)
def test_a_database_that_refuses_the_login_of_a_catalog_is_reported_at_once(lake: Lake) -> None:
    """It is not an outage, after which another attempt could succeed."""
    user = lake.target.catalog.partition("://")[2].partition("@")[0]
    with pytest.raises(StoreError, match=r"cannot be used: .*nobody"):
        iceberg_catalog.catalog_of(lake.target._replace(catalog=lake.target.catalog.replace(f"{user}@", "nobody@")))


@pytest.mark.parametrize("lake", ["iceberg-rest"], indirect=True)
def test_a_catalog_that_stops_answering_delays_a_batch(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(urlsplit(lake.target.catalog).port)
    with closing(BlackHole(int(place))) as line:
        lake.target = lake.target._replace(catalog=lake.target.catalog.replace(place, str(line.port)))
        deliveries, end = Deliveries(lake), lake.write([person(1, "Ada", "1")])
        assert deliveries.persistent_batch(0, BEGIN, end, line.pass_on) == 0
        monkeypatch.setattr(iceberg_catalog, "ANSWER_SECONDS", 1)
        line.swallow()
        assert deliveries.persistent_batch(1, end, lake.write([person(2, "Bo", "2")]), line.pass_on) >= 1
        assert rows(lake) == [(1, "Ada", "1.00"), (2, "Bo", "2.00")]


def test_a_file_is_visible_in_a_store_when_it_is_complete(bucket: Bucket, tmp_path: Path) -> None:
    for location in (bucket.location, str(tmp_path)):
        store = LakeStore(location)
        with pytest.raises(ZeroDivisionError), store.writing("a/file") as sink:
            sink.write(b"a part")
            raise ZeroDivisionError
        assert store.names("a") == []
        with store.writing("a/file") as sink:
            sink.write(b"all")
        assert (store.names("a"), store.read("a/file")) == (["file"], b"all")
        assert not store.create("a/file", b"other")
        assert store.create("a/next", b"other")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("delta:rest+https://host/catalog", "only Iceberg tables have a catalog"),
        ("iceberg:sql+postgresql://host/lake", "requires a warehouse"),
        ("iceberg:sql+postgresql://me:zq9@host/lake?warehouse=s3://b/l", "cannot contain a password"),
    ],
)
def test_a_catalog_that_is_not_valid_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message) as refused:
        lake_target(Home(tmp_path), text)
    assert "zq9" not in str(refused.value)


def test_a_catalog_and_its_warehouse(tmp_path: Path) -> None:
    place = "iceberg:sql+postgresql://host/lake?warehouse=s3://bucket/lake"
    assert lake_target(Home(tmp_path), place)[1:] == ("s3://bucket/lake", "sql+postgresql://host/lake")
    assert lake_target(Home(tmp_path), "iceberg:rest+https://host/c")[1:] == ("rest+https://host/c",) * 2
