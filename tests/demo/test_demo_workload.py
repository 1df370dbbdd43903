"""The workload: a separate process that stops on request and reports its transactions."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import psycopg

from ggshell.demo.servers import DemoServers
from ggshell.demo.workload import _WEIGHTS, Shop, run


def _tables_changed(dsn: str) -> set[str]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_clear_snapshot()")
        rows = connection.execute("SELECT relname FROM pg_stat_user_tables WHERE n_tup_upd + n_tup_del > 0").fetchall()
    return {name for (name,) in rows}


def test_every_transaction_of_the_table_works(demo: DemoServers) -> None:
    with psycopg.connect(demo.dsn("north"), options="-c search_path=shop") as connection:
        shop = Shop(connection, seed=3)
        for name in _WEIGHTS.keys() - {"change_of_mind"}:
            getattr(shop, name)()
        connection.rollback()


def test_the_workload_changes_many_tables_and_rolls_some_transactions_back(demo: DemoServers) -> None:
    totals = run(demo.dsn("north"), rate=0, transactions=600)
    assert totals.committed + totals.rolled_back == 600
    assert totals.rolled_back > 0
    assert _tables_changed(demo.dsn("north")) >= {"orders", "inventory", "documents", "addresses"}


def test_the_workload_keeps_its_rate(demo: DemoServers) -> None:
    totals = run(demo.dsn("north"), rate=100, transactions=50)
    assert totals.seconds >= 0.45


def test_sigterm_ends_the_process_with_a_count(demo: DemoServers) -> None:
    command = [sys.executable, "-m", "ggshell.demo.workload", "--dsn", demo.dsn("north"), "--rate", "50"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        with psycopg.connect(demo.dsn("north"), autocommit=True) as connection:
            start = connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()
            while True:  # wait until the process has written something
                now = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
                assert start is not None
                assert now is not None
                if now[0] > start[0] + 5:
                    break
                connection.execute("SELECT pg_sleep(0.02)")
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert re.match(r"[\d,]+ transactions? committed, \d+ rolled back in [\d.]+ s", output)
