"""Who can connect to Spark's driver: with a local driver only this machine, and only with the secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.query.driver import access_settings, java_process
from ggshell.query.session import WarmSession

LISTENING = "0A"
SECRET = {"spark.authenticate.secret": "of the cluster"}
LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")


def test_every_port_of_a_local_driver_is_on_the_loopback_interface(warm: WarmSession) -> None:
    spark = warm.get()
    assert spark.conf.get("spark.authenticate") == "true"
    folder = Path(f"/proc/{java_process(spark).pid}/fd")
    sockets = {each.readlink().name for each in folder.iterdir() if each.is_symlink()}
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    open_at = [each[1].split(":")[0] for each in lines if each[3] == LISTENING and f"socket:[{each[9]}]" in sockets]
    assert open_at
    assert [address for address in open_at if address not in LOOPBACK] == []


@pytest.mark.parametrize(
    ("master", "options", "loopback", "secret", "encrypted"),
    [
        ("local[*]", {}, True, True, False),
        ("spark://localhost:7077", {}, True, False, False),
        ("spark://north:7077", {}, False, False, False),
        ("spark://north:7077", SECRET, False, True, True),
        ("yarn", {}, False, True, True),
        ("k8s://https://north", {}, False, True, True),
    ],
)
def test_a_remote_master_gets_a_secret_and_a_local_one_the_loopback_interface(
    master: str, options: dict[str, str], loopback: bool, secret: bool, encrypted: bool
) -> None:
    found = access_settings(master, options)
    assert (found.get("spark.driver.bindAddress") == "127.0.0.1") is loopback
    assert (found.get("spark.authenticate") == "true") is secret
    for name in ("spark.network.crypto.enabled", "spark.io.encryption.enabled"):
        assert (found.get(name) == "true") is encrypted
