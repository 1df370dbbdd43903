"""The clocks of two machines differ by two minutes: trails arrive, sign-ins hold, and no value says that time ran backwards."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from full_chain import FullChain

from ggshell.home.certificate import CERTIFICATE
from ggshell.home.home import Home

pytestmark = pytest.mark.slow
NEGATIVE = re.compile(r"(?<![\w.-])-\d+(:\d\d|\.\d+| (second|minute|hour)| ms)")
"""A time before now, where INFO, LAG or STATUS show how long something took."""


@pytest.fixture(params=[120, -120], ids=["ahead", "behind"])
def chain(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, north: str, south: str
) -> Iterator[FullChain]:
    """Two homes; the clock of the target's machine is two minutes ahead or behind."""
    found = FullChain(tmp_path_factory.mktemp("clocks"), north, south, clock=request.param)
    yield found
    found.close()


def shown(chain: FullChain) -> str:
    """What both homes show of their processes."""
    here = chain.run(
        "INFO ALL; INFO EXTRACT *; INFO DISTPATH dp1, DETAIL; LAG EXTRACT *; LAG DISTPATH dp1; SEND DISTPATH dp1 STATUS"
    )
    there = chain.run_there(
        "INFO ALL; INFO REPLICAT rep1, DETAIL; LAG REPLICAT rep1; SEND REPLICAT rep1 STATUS; INFO RECVPATH *; LAG RECVPATH rp1"
        "; STATS REPLICAT rep1; STATS RECVPATH *"
    )
    return here + there


def test_trails_arrive_and_lag_is_never_negative(chain: FullChain) -> None:
    chain.insert(10)
    chain.until_all_arrived()
    text = shown(chain)
    assert not NEGATIVE.search(text), text
    lag = chain.run_there("LAG REPLICAT rep1")
    assert re.search(r"Last record lag 1[23]\d seconds" if chain.clock > 0 else "Last record lag 0 seconds", lag), lag
    with chain.load() as pause:
        for _ in range(2):
            pause.wait(0.2)
            text = shown(chain)
            assert not NEGATIVE.search(text), text
    chain.until_all_arrived()
    client = chain.target.client(verify=str(Home(chain.target.home).resolve(CERTIFICATE)))
    for _ in range(2):  # the second time with the cookie of the session
        assert client.get("/currentuser").response["user"] == "admin"
    token = client.post("/authorization").response["accessToken"]
    bearer = chain.target.client("", verify=str(Home(chain.target.home).resolve(CERTIFICATE)))
    assert bearer.get("/currentuser", headers={"Authorization": f"Bearer {token}"}).status == 200
    lags = [float(each) for each in re.findall(r"(?m)^ggshell_lag_seconds\{.*\} (\S+)$", client.get("//metrics").text)]
    assert lags
    assert all(0 <= each < 300 for each in lags), lags
