"""The examples of docs/service.md and docs/operations.md run as written, with the addresses of a real service and databases."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from processes import until
from service_client import RunningService

from ggshell.home.home import Home
from ggshell.home.process_file import ProcessState, read_process_file, state_of

pytestmark = pytest.mark.slow
DOCS = Path(__file__).resolve().parents[2] / "docs"
TABLE = "CREATE SCHEMA shop; CREATE TABLE shop.orders (id int PRIMARY KEY, note text NOT NULL)"


def blocks(title: str) -> str:
    """The shell blocks of a section of docs/service.md."""
    text = (DOCS / "service.md").read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return "\n".join(["set -e", *re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)])


def test_the_replication_over_http_runs_as_written(tmp_path: Path, north: str, south: str) -> None:
    script = blocks("A replication over HTTP").replace("/tmp/over-http", str(tmp_path))  # noqa: S108 - as the page says
    for name, dsn in (("north", north), ("south", south)):
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(TABLE)
        facts = psycopg.conninfo.conninfo_to_dict(dsn)
        login = f"{facts['user']}@{facts['host']}:{facts['port']}/{facts['dbname']}"
        assert f"ggadmin@{name}.example.com:5432/shop" in script
        script = script.replace(f"ggadmin@{name}.example.com:5432/shop", login)
    service = RunningService(tmp_path, "")
    try:
        service.run("START MANAGER")
        script = script.replace("localhost:7810", f"localhost:{service.port}")
        ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
        with psycopg.connect(north, autocommit=True) as connection:
            connection.execute("INSERT INTO shop.orders VALUES (1, 'new')")
        with psycopg.connect(south, autocommit=True) as target:
            until("the row arrives", lambda: target.execute("SELECT id FROM shop.orders").fetchall() == [(1,)])
        assert "GROUPTRANSOPS 500" in (tmp_path / "dirprm" / "rep1.prm").read_text()
        deletion = f"{script.partition('api POST')[0]}{blocks('Deleting it')}"
        stale = "api PUT /config/files/REP1.prm -H 'If-Match: \"old\"' -d '{\"lines\": []}'"
        again = f"{script.partition('api POST')[0]}{stale}"
        refused = subprocess.run(["bash", "-c", again], capture_output=True, text=True, check=False)
        assert "412" in refused.stderr
        deleted = subprocess.run(["bash", "-c", deletion], capture_output=True, text=True, check=False)
        assert deleted.returncode == 0, deleted.stdout[-2000:] + deleted.stderr[-2000:]
        assert not list(tmp_path.glob("ea*")) and not list((tmp_path / "dirprm").glob("*1.prm"))
        with psycopg.connect(north) as connection:
            assert connection.execute(
                "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()"
            ).fetchone() == (0,)
    finally:
        service.close()


def test_the_commands_of_the_systemd_unit_start_and_stop_a_home(tmp_path: Path) -> None:
    unit = (DOCS / "operations.md").read_text().partition("```ini\n")[2].partition("```")[0]
    unit = unit.replace("/opt/ggshell/.venv/bin", str(Path(sys.executable).parent))
    unit = unit.replace("/var/lib/ggshell", str(tmp_path))
    start, stop = (
        shlex.split(re.findall(rf"^{name}=-?(.*)$", unit, re.MULTILINE)[0]) for name in ("ExecStart", "ExecStop")
    )
    service = RunningService(tmp_path)
    home = Home(tmp_path)
    try:
        service.run("STOP SERVICE")
        (tmp_path / "dirprm" / "mgr.prm").write_text("AUTOSTART ER *\nAUTOSTART SERVICE\n")
        manager = subprocess.Popen(start, env=dict(os.environ))
        until("the service runs", lambda: state_of(home.service)[0] is ProcessState.RUNNING)
        kept = read_process_file(home.service)
        manager.kill()
        manager.wait(30)
        manager = subprocess.Popen(start, env=dict(os.environ))
        until("Manager runs again", lambda: state_of(home.manager)[0] is ProcessState.RUNNING)
        assert read_process_file(home.service) == kept
        subprocess.run(stop, check=False, capture_output=True, timeout=120)
        assert manager.wait(60) == 0
        assert state_of(home.service)[0] is ProcessState.STOPPED
    finally:
        service.close()
