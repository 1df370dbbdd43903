"""A real Prometheus scrapes the service, and promtool checks the metrics, the alert rules and the configuration."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from processes import until
from prometheus_tools import find_prometheus
from service_client import RunningService, ServiceClient, free_port

pytestmark = pytest.mark.slow
PAGES = Path(__file__).resolve().parents[2] / "docs" / "monitoring"


@pytest.fixture(scope="module")
def tools() -> Path:
    found = find_prometheus()
    if found is None:
        pytest.skip("this machine has no Prometheus, and Debian's package cannot be downloaded")
    return found


def promtool(tools: Path, *words: object, text: str = "") -> str:
    """Run promtool; returns its output, and fails with it."""
    done = subprocess.run(
        [tools / "promtool", *map(str, words)], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def groups(service: RunningService) -> RunningService:
    """A home with a group of each kind."""
    service.run("ADD EXTRACT ext1, SOURCEISTABLE")
    service.run("ADD REPLICAT rep1, EXTTRAIL ./dirdat/eb, NODBCHECKPOINT")
    return service


def test_metrics_follow_the_conventions(tools: Path, groups: RunningService, client: ServiceClient) -> None:
    assert promtool(tools, "check", "metrics", text=client.get("//metrics").text) == ""


def test_each_alert_fires_when_its_condition_holds(tools: Path) -> None:
    assert "SUCCESS" in promtool(tools, "test", "rules", PAGES / "alerts_test.yml")


def test_every_alert_has_a_test_and_an_action() -> None:
    rules = (PAGES / "alerts.yml").read_text()
    names = re.findall(r"- alert: (\w+)", rules)
    tested = set(re.findall(r'alertname=\\?"(\w+)', (PAGES / "alerts_test.yml").read_text()))
    assert set(names) == tested
    assert rules.count("action:") == len(names)


def test_the_scrape_configuration_is_valid(tools: Path) -> None:
    promtool(tools, "check", "config", "--syntax-only", PAGES / "prometheus.yml")


def test_dashboard_and_alerts_use_metrics_that_the_service_has() -> None:
    source = "".join(path.read_text() for path in (PAGES.parents[1] / "ggshell" / "service").glob("*metrics.py"))
    known = set(re.findall(r'"(ggshell_\w+)"', source))
    known |= {f"{name}_total" for name in known}
    used = set(re.findall(r"ggshell_\w+", (PAGES / "dashboard.json").read_text() + (PAGES / "alerts.yml").read_text()))
    assert used <= known
    assert json.loads((PAGES / "dashboard.json").read_text())["panels"]


@pytest.fixture
def prometheus(tools: Path, groups: RunningService, tmp_path: Path) -> Iterator[str]:
    """The address of a Prometheus that scrapes the service every second."""
    port = free_port()
    configuration = tmp_path / "prometheus.yml"
    configuration.write_text(
        f"global:\n  scrape_interval: 1s\nrule_files: [{PAGES / 'alerts.yml'}]\nscrape_configs:\n"
        f"  - job_name: ggshell\n    static_configs: [{{targets: ['127.0.0.1:{groups.port}']}}]\n"
    )
    words = [f"--config.file={configuration}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    server = subprocess.Popen(
        [tools / "prometheus", *words, f"--web.listen-address=127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield f"http://127.0.0.1:{port}"
    server.terminate()
    server.wait(30)


def query(address: str, text: str) -> list[dict[str, object]]:
    """The result of a query; empty while Prometheus is starting."""
    try:
        answer = requests.get(f"{address}/api/v1/query", params={"query": text}, timeout=10).json()
    except requests.RequestException:
        return []
    found: list[dict[str, object]] = answer["data"]["result"]
    return found


def test_a_real_prometheus_scrapes_the_service(prometheus: str) -> None:
    until("the service is scraped", lambda: bool(query(prometheus, 'up{job="ggshell"} == 1')))
    assert {each["metric"]["group"] for each in query(prometheus, "ggshell_group_up")} == {"EXT1", "REP1"}  # type: ignore[index]
    assert query(prometheus, "scrape_samples_post_metric_relabeling > 10")
