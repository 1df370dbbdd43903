"""What a parameter file names that is written through the service: in the home, in a folder of ALLOWPATH, or for SECURITY."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from service_client import RunningService, ServiceClient

pytestmark = pytest.mark.slow
OUTSIDE = "GGS-00936"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that allows the folder ``allowed`` next to its home."""
    home = tmp_path_factory.mktemp("bounds") / "home"
    (home.parent / "allowed").mkdir()
    running = RunningService(home, f"PLAINTEXT\nALLOWPATH {home.parent}/allowed\n")
    client = running.client()
    assert client.post("/extracts/B1", {"source": "tables", "config": ["EXTRACT b1", "TABLE s.*;"]}).status == 201
    replicat = {"source": {"name": "ea"}, "checkpoint": {"table": "a.b"}}
    assert client.post("/replicats/B2", replicat).status == 201
    lines = ["REPLICAT b2", "MAP s.*, TARGET s.*;"]
    assert client.patch("/replicats/B2", {"config": lines}).status == 200
    yield running
    running.close()


@pytest.fixture
def jane(service: RunningService) -> ServiceClient:
    return service.client("jane")


EXTRACT_LINES = ["EXTTRAIL {}/ea", "RMTTRAIL {}/ea", "EXTFILE {}/ea", "DISCARDFILE {}/x.dsc, PURGE"]
EXTRACT_LINES += ["SOURCEDB redo://{}/redo", "SOURCEDEFS {}/x.def", "USERID 'host=h sslkey={}/k', PASSWORD x"]
REPLICAT_LINES = ["TARGETDB duckdb://{}/x.duckdb", "USERID duckdb://{}/x.duckdb", "DISCARDFILE {}/x.dsc"]


@pytest.mark.parametrize(
    ("address", "line"),
    [
        *(("/extracts/B1", line) for line in EXTRACT_LINES),
        *(("/replicats/B2", line) for line in REPLICAT_LINES),
    ],
)
def test_an_administrator_names_only_places_in_the_home_and_in_allowed_folders(
    service: RunningService, jane: ServiceClient, client: ServiceClient, address: str, line: str
) -> None:
    head, end = ("EXTRACT b1", "TABLE s.*;") if "extract" in address else ("REPLICAT b2", "MAP s.*, TARGET s.*;")
    before = client.get(address).response["config"]
    folders = {"/data": 403, f"{service.home.parent}/other": 403, f"{service.home.parent}/allowed/../other": 403}
    for folder, status in folders.items():
        lines = [head, line.format(folder), end]
        file = f"/config/files/{address[-2:].lower()}.prm"
        for reply in (jane.patch(address, {"config": lines}), jane.put(file, {"lines": lines})):
            assert (reply.status, reply.codes) == (status, [OUTSIDE]), reply.text
            assert line.split(maxsplit=1)[0] in reply.text
    assert client.get(address).response["config"] == before
    for folder in (f"{service.home}/new", f"{service.home.parent}/allowed/new"):
        assert jane.patch(address, {"config": [head, line.format(folder), end]}).status == 200
    assert client.patch(address, {"config": [head, line.format("/data"), end]}).status == 200
    assert client.patch(address, {"config": [head, end]}).status == 200


def test_bounded_recovery_has_its_files_in_the_home(jane: ServiceClient, client: ServiceClient) -> None:
    for user, folder, status in ((jane, "/data/br", 403), (jane, "./br", 200), (client, "/data/br", 200)):
        lines = ["EXTRACT b1", f"BR BRDIR {folder}", "TABLE s.*;"]
        assert user.patch("/extracts/B1", {"config": lines}).status == status
    assert client.patch("/extracts/B1", {"config": ["EXTRACT b1", "TABLE s.*;"]}).status == 200


@pytest.mark.parametrize("line", ["EXTTRAIL {}/ea", "DISCARDFILE {}/x.dsc"])
def test_what_was_written_on_the_machine_stays_allowed(
    service: RunningService, jane: ServiceClient, client: ServiceClient, line: str
) -> None:
    path = service.home / "dirprm" / "b1.prm"
    path.write_text(f"EXTRACT b1\n{line.format('/data')}\nTABLE s.*;\n")
    lines = jane.get("/extracts/B1").response["config"]
    assert jane.patch("/extracts/B1", {"config": [*lines, "TABLE t.*;"]}).status == 200
    assert path.read_text().splitlines() == [*lines, "TABLE t.*;"]
    moved = [each.replace("/data", "/data2") for each in lines]
    assert jane.put("/config/files/b1.prm", {"lines": moved}).codes == [OUTSIDE]
    assert jane.post("/config/files/copy.prm", {"lines": lines}).codes == [OUTSIDE]
    assert client.patch("/extracts/B1", {"config": ["EXTRACT b1", "TABLE s.*;"]}).status == 200


def test_an_included_file_completes_no_line_of_another_file(service: RunningService, jane: ServiceClient) -> None:
    folder = service.home / "dirprm"
    (folder / "b1.prm").write_text("EXTRACT b1\nINCLUDE trail.inc\nINCLUDE late.inc\n#target (ea)\nTABLE s.*;\n")
    inside = "MACRO #target PARAMS (#n) BEGIN EXTTRAIL ./dirdat/#n END;"
    outside = inside.replace("./dirdat", "/data")
    (folder / "trail.inc").write_text(f"{inside}\n")
    (folder / "circle.inc").symlink_to("circle.inc")
    (folder / "other.prm").write_text("INCLUDE circle.inc\n")
    assert jane.put("/config/files/trail.inc", {"lines": [inside, "-- same"]}).status == 200
    for lines in ([outside], [inside, "EXTTRAIL /data/eb"], ["INCLUDE trail2.inc"]):
        if "INCLUDE" in lines[0]:
            (folder / "trail2.inc").write_text(f"{outside}\n")
        assert jane.put("/config/files/trail.inc", {"lines": lines}).codes == [OUTSIDE]
    assert jane.post("/config/files/late.inc", {"lines": [outside]}).codes == [OUTSIDE]
    assert (folder / "trail.inc").read_text() == f"{inside}\n-- same\n"
    (folder / "b1.prm").write_text("EXTRACT b1\nTABLE s.*;\n")


def test_settings_of_the_whole_home_require_security_also_through_an_included_file(
    service: RunningService, jane: ServiceClient, client: ServiceClient
) -> None:
    for lines in (["WALLETLOCATION ./keys"], ["WALLETLOCATION /data/keys"]):
        assert jane.post("/config/files/GLOBALS", {"lines": lines}).status == 403
    assert jane.post("/config/files/w.inc", {"lines": ["WALLETLOCATION ./keys"]}).status == 403
    assert jane.post("/config/files/a.inc", {"lines": ["ALLOWPATH /"]}).status == 403
    assert client.post("/config/files/m.inc", {"lines": ["SESSIONTIMEOUT 1H"]}).status == 201
    settings = client.get("/config/files/service.prm").response["lines"]
    assert client.put("/config/files/service.prm", {"lines": [*settings, "INCLUDE m.inc"]}).status == 200
    assert jane.put("/config/files/m.inc", {"lines": ["METRICS OPEN"]}).status == 403
    assert client.put("/config/files/service.prm", {"lines": settings}).status == 200
    assert jane.put("/config/files/m.inc", {"lines": ["METRICS OPEN"]}).status == 200


def test_manager_purges_no_trails_elsewhere(jane: ServiceClient, service: RunningService) -> None:
    for lines, status in ((["PURGEOLDEXTRACTS /data/*"], 403), (["PURGEOLDEXTRACTS ./dirdat/*"], 201)):
        assert jane.post("/config/files/mgr.prm", {"lines": lines}).status == status
    folder = service.home.parent / "elsewhere"
    folder.mkdir()
    files = [folder / f"ea00000000{number}" for number in range(3)]
    for file in files:
        file.touch()
    body = {"name": "purge", "purgeType": "trails", "useCheckpoints": False}
    for trail in ({"name": "ea", "path": str(folder)}, {"name": "*", "path": str(folder)}, {"name": f"{folder}/ea"}):
        reply = jane.post("/commands/execute", {**body, "trails": [{"name": "*"}, trail]})
        assert (reply.status, reply.codes) == (403, [OUTSIDE])
    assert jane.send("DELETE", f"/trails/ea?path={folder}").codes == [OUTSIDE]
    assert jane.get(f"/trails/ea?path={folder}").codes == [OUTSIDE]
    assert jane.post("/trails/mine", {"name": "ea", "path": str(folder)}).codes == [OUTSIDE]
    assert all(file.exists() for file in files)
    assert jane.post("/commands/execute", {**body, "trails": [{"name": "*"}]}).status == 200


def test_an_alias_names_no_database_file_elsewhere(jane: ServiceClient, client: ServiceClient) -> None:
    login = {"userid": "duckdb:///data/x.duckdb", "password": "x"}
    assert jane.post("/credentials/OracleGoldenGate/duck", login).codes == [OUTSIDE]
    assert client.post("/credentials/OracleGoldenGate/duck", login).status == 201
    assert jane.delete("/credentials/OracleGoldenGate/duck").status == 200


def test_links_in_the_home_show_and_change_no_other_files(service: RunningService, client: ServiceClient) -> None:
    other = service.home.parent / "other.txt"
    other.write_text("-- hidden-text\n")
    paths = [service.home / name for name in ("dirprm/link.prm", "dirprm/link.inc", "GLOBALS", "dirrpt/B1.rpt")]
    kept = service.home / "dirprm" / "b1.prm"
    text = kept.read_text()
    kept.unlink()
    for path in (*paths, kept):
        path.unlink(missing_ok=True)
        path.symlink_to(other)
    addresses = ["/config/files/link.prm", "/config/files/link.inc", "/config/files/GLOBALS", "/extracts/B1"]
    addresses.append("/extracts/B1/info/reports/B1.rpt")
    jane = service.client("jane")
    for address in addresses:
        reply = jane.get(address)
        assert (reply.status, reply.codes, "hidden-text" in reply.text) == (403, [OUTSIDE], False), reply.text
    for address in addresses[:3]:
        assert jane.put(address, {"lines": []}).status == 403
        assert jane.delete(address).status == 403
    assert jane.patch("/extracts/B1", {"config": ["EXTRACT b1"]}).status == 403
    assert "hidden-text" in client.get(addresses[0]).text
    for path in (*paths, kept):
        assert path.is_symlink()
        path.unlink()
    kept.write_text(text)
    assert Path(other).read_text() == "-- hidden-text\n"
