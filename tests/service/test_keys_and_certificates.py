"""The master key, the keys of ENCKEYS, encryption profiles, and certificates."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from service_client import RunningService, ServiceClient

from ggshell.clock import FakeClock
from ggshell.home.certificate import CERTIFICATE, KEY, ensure_certificate, read_certificate
from ggshell.home.home import Home

pytestmark = pytest.mark.slow


def names(client: ServiceClient, path: str) -> list[str]:
    return [each["name"] for each in client.get(path).response["items"]]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A home whose service uses TLS, so that it has a certificate."""
    running = RunningService(tmp_path_factory.mktemp("tls"), "")
    yield running
    running.close()


@pytest.fixture
def secure(tls: RunningService) -> ServiceClient:
    return tls.client(verify=str(tls.home / CERTIFICATE))


def made(folder: Path, age: timedelta = timedelta()) -> tuple[str, str]:
    """A certificate and its key, made some time ago."""
    folder.joinpath("dirwlt").mkdir(parents=True)
    ensure_certificate(Home(folder), FakeClock(int((datetime.now(UTC) - age).timestamp() * 1e6)))
    return (folder / CERTIFICATE).read_text(), (folder / KEY).read_text()


def test_versions_of_the_master_key_are_added_marked_and_restored(client: ServiceClient) -> None:
    assert names(client, "/masterkey") == []
    first = client.post("/masterkey")
    assert (first.status, first.codes[-1], first.response["items"][0]["name"]) == (201, "OGG-06142", "1")
    assert client.post("/masterkey").response["items"][0]["name"] == "2"
    assert client.get("/masterkey/2").response["status"] == "current"
    for wanted in ("unavailable", "unavailable", "available"):
        assert client.patch("/masterkey/1", {"status": wanted}).status == 200
        assert client.get("/masterkey/1").response["status"] == wanted
    assert client.patch("/masterkey/1", {"status": "current"}).status == 400
    assert client.delete("/masterkey/1").status == 200
    assert client.get("/masterkey/1").response["status"] == "unavailable"
    assert client.delete("/masterkey/2").status == 409
    assert client.get("/masterkey/x").status == 404


def test_keys_are_added_to_the_key_file_and_never_shown(client: ServiceClient, service: RunningService) -> None:
    assert client.post("/enckeys/superkey", {"bitLength": 128}).status == 201
    assert client.post("/enckeys/SUPERKEY", {"bitLength": 128}).status == 409
    assert client.post("/enckeys/given", {"bitLength": "256", "keyValue": "0x" + "Ab" * 32}).status == 201
    assert client.post("/enckeys/bad", {"bitLength": 256, "keyValue": "0xZZ"}).status == 400
    assert client.post("/enckeys/9bad", {"bitLength": 256}).status == 400
    assert names(client, "/enckeys") == ["superkey", "given"]
    assert client.get("/enckeys/given").response == {"$schema": "ogg:encryptKey", "bitLength": 256}
    assert (service.home / "ENCKEYS").stat().st_mode & 0o077 == 0
    assert client.post("/enckeys/given/encrypt", {"data": "x"}).codes == ["GGS-00904"]
    assert client.delete("/enckeys/given").status == 200
    assert client.delete("/enckeys/given").status == 404


def test_the_wallet_is_the_only_encryption_profile(client: ServiceClient) -> None:
    assert names(client, "/encryption/profiles") == ["LocalWallet"]
    assert client.get("/encryption/profiles/LocalWallet").response["isDefault"] is True
    assert client.get("/encryption/profiles/LocalWallet/valid").response["isValid"] in (True, False)
    assert client.post("/encryption/profiles/okv1", {"type": "okv"}).codes == ["GGS-00904"]
    assert client.post("/encryption/profiles/LocalWallet", {}).status == 409
    assert client.patch("/encryption/profiles/LocalWallet", {"isDefault": True}).status == 409
    assert client.get("/encryption/profiles/okv1").status == 404


def test_the_certificate_of_the_service_is_shown(secure: ServiceClient, tls: RunningService) -> None:
    assert names(secure, "/certificates") == ["client", "server", "truststore"]
    assert names(secure, "/certificates/server") == ["default"]
    facts = read_certificate(tls.home / CERTIFICATE)
    for base in ("/certificates", "/deployments/Local/certificates"):
        info = secure.get(f"{base}/server/default/info").response["certificate"]
        assert (info["fingerprint"], info["isExpired"]) == (facts.fingerprint, False)
        assert secure.get(f"{base}/server/default").response["certificatePem"].startswith("-----BEGIN")
    assert secure.get("/certificates/server/other").status == 404
    assert secure.get("/certificates/none").status == 404
    assert secure.get("/deployments/South/certificates").status == 404


def test_the_private_key_in_the_file_of_the_certificate_is_not_shown(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("joined")
    pem, key = made(home / "other")
    (home / "both.pem").write_text(key + pem)
    running = RunningService(home, "CERTIFICATE both.pem\n")
    try:
        jane = running.client("jane", verify=str(home / "other" / CERTIFICATE))
        admin = running.client(verify=str(home / "other" / CERTIFICATE))
        shown = jane.get("/certificates/server/default")
        assert shown.status == 200, shown.text
        assert shown.response["certificatePem"].strip() == pem.strip()
        assert "PRIVATE" not in shown.text
        for user in (jane, admin):
            refused = user.post("/ggshell/statements", {"statement": "VIEW REPORT ./both.pem"})
            assert (refused.status, "PRIVATE" in refused.text) == (400, False)
    finally:
        running.close()


def test_certificates_of_authorities_are_kept(secure: ServiceClient, tmp_path: Path) -> None:
    base = "/deployments/Local/certificates/truststore"
    pem, _ = made(tmp_path / "good")
    body = {"trustpointBundle": {"trustpointPem": pem}}
    assert secure.post(f"{base}/root", body).status == 201
    assert secure.post(f"{base}/root", body).status == 409
    assert secure.put(f"{base}/root", body).status == 200
    assert names(secure, base) == ["root"]
    assert secure.get(f"{base}/root/info").response["certificate"]["isExpired"] is False
    assert secure.post(f"{base}/bad", {"trustpointBundle": {"trustpointPem": "x"}}).status == 400
    assert secure.post(f"{base}/bad", {}).status == 400
    expired, _ = made(tmp_path / "old", timedelta(days=9000))
    refused = secure.post(f"{base}/old", {"trustpointBundle": {"trustpointPem": expired}})
    assert (refused.status, "expired at" in refused.body["messages"][0]["title"]) == (400, True)
    assert secure.delete(f"{base}/root").status == 200
    assert secure.delete(f"{base}/root").status == 404


def test_the_certificate_of_the_service_is_replaced_with_its_key(
    secure: ServiceClient, tls: RunningService, tmp_path: Path
) -> None:
    address = "/deployments/Local/certificates/server/default"
    pem, key = made(tmp_path / "new")
    _, other = made(tmp_path / "other")
    bundle = {"certificatePem": pem, "privateKeyPem": key}
    assert secure.put(address, {"certificateBundle": {**bundle, "privateKeyPem": other}}).status == 400
    assert secure.put(address, {"certificateBundle": {"certificatePem": pem}}).status == 400
    assert secure.post(address, {"certificateBundle": bundle}).status == 409
    assert secure.delete(address).status == 409
    before = (tls.home / CERTIFICATE).read_text()
    assert secure.put(address, {"certificateBundle": bundle}).status == 200
    assert (tls.home / CERTIFICATE).read_text().strip() == pem.strip() != before.strip()
