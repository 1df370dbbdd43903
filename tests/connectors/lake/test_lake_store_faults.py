"""A store that refuses, loses or tears requests while batches are delivered: each change arrives once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deliveries import BEGIN, Deliveries, ProcessEnded
from lakes import PEOPLE, Lake, key_update, person
from ledger import Ledger
from object_stores import Bucket
from processes import until, until_state
from readers import readers_agree_on_all_tables
from store_faults import Fault, Plan, Request, StoreProxy, at_write, from_request
from stored_tables import stored_table

from ggshell.connectors.lake.target import LakeTarget, TableForm
from ggshell.demo.processes import end_processes
from ggshell.home.checkpoint import GroupKind
from ggshell.home.process_file import ProcessState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_BATCHES = 200
FAULTS = tuple(fault for fault in Fault if fault not in (Fault.NONE, Fault.SILENT))
FAULTY = 0.05
"""The share of requests that fail in the random test; a client tries most of them again itself."""
pytestmark = pytest.mark.slow


@pytest.fixture
def proxy(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreProxy]:
    with StoreProxy(bucket.server.port).running() as made:
        monkeypatch.setenv("AWS_ENDPOINT_URL", made.endpoint)
        yield made


@pytest.fixture
def lake(
    request: pytest.FixtureRequest, tmp_path: Path, bucket: Bucket, proxy: StoreProxy, spark: SparkSession
) -> Iterator[Lake]:
    form, _, catalog = request.param.partition("-")
    made = Lake(tmp_path / "home", TableForm(form))
    made.target = LakeTarget(made.form, f"{bucket.location}/lake", "")
    if catalog:
        made.target = made.target._replace(catalog=f"sql+sqlite:///{tmp_path}/catalog.db")
    yield made
    proxy.reset()
    readers_agree_on_all_tables(made.target, spark)


def step(request: pytest.FixtureRequest, few: int) -> int:
    """Each batch has its fault so many requests later than the one before; with ``--rounds``, at the next request."""
    return 1 if request.config.getoption("--rounds") else few


def delivered_with_faults(lake: Lake, proxy: StoreProxy, plan: Callable[[int], Plan], step: int) -> None:
    """Deliver batches: ``plan(0)`` is for the first one, ``plan(step)`` for the next, until one has no such request.

    Fails unless the lake contains each change once.
    """
    deliveries, first, batches, place = Deliveries(lake), BEGIN, 0, 0
    while True:
        moved = [key_update(PEOPLE, batches, batches + 1000)] if batches else []
        last = lake.write([*moved, person(batches + 1, "Ada", "1")])
        proxy.reset(plan(place))
        failures = deliveries.persistent_batch(batches, first, last, proxy.reset)
        first, batches, place = last, batches + 1, place + step
        if not proxy.faults and not failures:
            break
        assert batches < MOST_BATCHES
    assert batches > 2
    proxy.reset()
    ids = sorted(stored_table(lake, "hr.people")["id"].to_pylist())
    assert ids == [batches, *(number + 1000 for number in range(1, batches))]
    logged = stored_table(lake, "log")["rba"].to_pylist()
    assert len(logged) == len(set(logged)) == 2 * batches - 1


@pytest.mark.parametrize("lake", ["parquet", "delta", "iceberg-sql"], indirect=True)
def test_a_small_object_is_written_with_one_request(lake: Lake, proxy: StoreProxy) -> None:
    last = lake.write([person(1, "Ada", "1")])
    Deliveries(lake).batch(0, BEGIN, last)
    written = [each.path for each in proxy.seen if each.method in ("PUT", "POST")]
    assert len(written) == len(set(written)) > 2
    assert not [path for path in written if "uploads" in path or "partNumber" in path]


@pytest.mark.parametrize(
    ("lake", "fault", "few"),
    [
        ("parquet", Fault.LOST, 1),
        ("delta", Fault.LOST, 1),
        ("delta", Fault.TORN, 1),
        ("iceberg-sql", Fault.LOST, 4),
    ],
    indirect=["lake"],
    ids=lambda value: value.name.lower() if isinstance(value, Fault) else None,
)
def test_a_write_without_an_answer_is_neither_lost_nor_repeated(
    lake: Lake, proxy: StoreProxy, fault: Fault, few: int, request: pytest.FixtureRequest
) -> None:
    """The store has written an object and not said so, or has half of it: the client cannot know which."""
    delivered_with_faults(lake, proxy, lambda number: at_write(number, fault), step(request, few))


@pytest.mark.parametrize(
    ("lake", "fault", "few"),
    [("delta", Fault.UNAVAILABLE, 16), ("iceberg-sql", Fault.LOST, 32)],
    indirect=["lake"],
    ids=lambda value: value.name.lower() if isinstance(value, Fault) else None,
)
def test_an_outage_at_any_moment_loses_nothing_and_doubles_nothing(
    lake: Lake, proxy: StoreProxy, fault: Fault, few: int, request: pytest.FixtureRequest
) -> None:
    """The outage ends when the delivery has noticed it."""
    delivered_with_faults(lake, proxy, lambda number: from_request(number, fault), step(request, few))


@pytest.mark.parametrize(("lake", "few"), [("delta", 10), ("iceberg-sql", 30)], indirect=["lake"])
def test_a_store_that_is_silent_is_noticed_in_time(
    lake: Lake, proxy: StoreProxy, few: int, request: pytest.FixtureRequest
) -> None:
    """It has a request and never answers. With the clients' own time limits, a delivery would wait for minutes."""
    delivered_with_faults(lake, proxy, lambda number: from_request(number, Fault.SILENT), step(request, few))
    assert not proxy.unnoticed


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_random_faults_and_ends_of_the_process_agree_with_a_client_s_ledger(
    lake: Lake, proxy: StoreProxy, request: pytest.FixtureRequest
) -> None:
    """Each request can fail in any way, and the process can end before any write; what was not committed comes again."""
    ledger, first, numbers = Ledger(lake, 3), BEGIN, random.Random(4)
    deliveries, ended = Deliveries(lake), 0

    def plan(_: Request) -> Fault:
        return numbers.choice(FAULTS) if numbers.random() < FAULTY else Fault.NONE

    for number in range(6 * max(1, request.config.getoption("--rounds"))):
        last = ledger.write()
        if numbers.random() < 0.5:
            proxy.reset()
            with pytest.raises(ProcessEnded):
                deliveries.batch(number, first, last, writes=numbers.randrange(2))
            deliveries, ended = Deliveries(lake), ended + 1
            last = ledger.write()
        proxy.reset(plan)
        deliveries.persistent_batch(number, first, last, lambda: None)
        first = last
    proxy.reset()
    assert ended
    ledger.agrees(stored_table(lake, "hr.people")["id"].to_pylist(), stored_table(lake, "log")["rba"].to_pylist())


@pytest.mark.usefixtures("java")
def test_a_replicat_waits_for_its_store_and_stops_while_it_waits(
    tmp_path: Path, bucket: Bucket, proxy: StoreProxy
) -> None:
    lake = Lake(tmp_path / "home", TableForm.DELTA)
    lake.target = LakeTarget(lake.form, f"{bucket.location}/lake")
    lake.write([person(1, "Ada", "1")])
    lake.run(f"ADD REPLICAT lake, SPARK, EXTTRAIL ./dirdat/ea, TARGET 'delta:{lake.target.location}'")
    lake.run("START REPLICAT lake")
    lake.delivered()
    proxy.reset(from_request(0, Fault.UNAVAILABLE))
    lake.write([person(2, "Bo", "2")])
    waiting = f"Waiting for lake {lake.target.location}\n  Waiting since "
    until("LAG shows the outage", lambda: "Waiting since " in lake.run("LAG REPLICAT lake"))
    assert waiting in lake.run("SEND REPLICAT lake, STATUS")
    assert "Waiting since " in lake.run("INFO REPLICAT lake, DETAIL")
    lake.run("STOP REPLICAT lake")
    until_state(lake.home, "LAKE", GroupKind.REPLICAT, ProcessState.STOPPED)
    assert "did not respond after STOP" in lake.home.report("lake").read_text()
    lake.run("START REPLICAT lake")
    until("STATUS shows the outage", lambda: waiting in lake.run("SEND REPLICAT lake, STATUS"))
    assert "Waiting since " in lake.run("LAG REPLICAT lake")
    assert "Delivery for a Lake" in lake.home.report("lake").read_text()
    proxy.reset()
    lake.delivered()
    assert "Reconnected at attempt" in lake.home.report("lake").read_text()
    assert sorted(stored_table(lake, "hr.people")["id"].to_pylist()) == [1, 2]
    assert len(stored_table(lake, "log")) == 2
    end_processes(lake.home.root)
