"""Long values sent to a target: in linear time, while it sends long answers, and while it accepts no data."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from batches import Row, Tx
from pipeline.apply.hand_made import Replicats, insert, trail, update
from processes import until

from ggshell.connectors.postgres import session

LONG = "x" * (16 << 20)
_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


class CountedFlushes:
    """A libpq connection that counts its flushes."""

    def __init__(self, pgconn: Any) -> None:
        self.__dict__.update(pgconn=pgconn, flushes=0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["pgconn"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.pgconn, name, value)

    def flush(self) -> int:
        self.__dict__["flushes"] += 1
        return int(self.pgconn.flush())


def lengths(replicats: Replicats) -> list[Any]:
    with session.connect(replicats.dsn) as connection:
        return session.execute(connection, "SELECT length(a) FROM t ORDER BY id")


@pytest.mark.parametrize("change", [insert, update])
def test_a_long_value_is_not_copied_for_each_part_sent(replicats: Replicats, change: Callable[[int, str], Row]) -> None:
    """Every flush that ends early moves the rest of the buffer, so there must be few of them for values of any length."""
    replicat = replicats.start()
    replicat.feed(trail([Tx(1, [insert(1)])])[0])
    replicat.flush()
    assert replicats.target is not None
    wire = replicats.target._wire
    counted = CountedFlushes(wire._pgconn)
    wire._pgconn = counted
    replicat.feed(trail([Tx(2, [change(1 if change is update else 2, LONG)])])[0])
    replicat.flush()
    assert lengths(replicats)[-1] == (len(LONG),)
    assert counted.flushes <= 20
    assert counted.nonblocking == 1


def test_long_answers_are_read_while_a_long_value_is_sent(replicats: Replicats) -> None:
    """Otherwise the server waits until its answer is read, and accepts no more of the values."""
    with session.connect(replicats.dsn) as connection:
        connection.execute(
            "CREATE FUNCTION echo() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE WARNING '%', left(NEW.a, 1 << 22); RETURN NEW; END $$;"
            "CREATE TRIGGER echo BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION echo();"
            "ALTER TABLE t ENABLE ALWAYS TRIGGER echo"
        )
    replicat = replicats.start()
    replicat.feed(trail([Tx(1, [insert(number, LONG) for number in range(3)])])[0])
    replicat.flush()
    assert lengths(replicats) == [(len(LONG),)] * 3


def test_other_threads_run_while_a_server_that_waits_for_a_lock_accepts_no_data(
    replicats: Replicats,
) -> None:
    """The thread that answers requests and ends the wait is one of them."""
    replicat = replicats.start()
    with session.connect(replicats.dsn) as holder, session.connect(replicats.dsn) as observer:
        holder.execute("BEGIN; INSERT INTO t VALUES (1, 'first')")

        def end_the_wait() -> None:
            try:
                until("the applying session waits", lambda: session.execute(observer, _WAITING) == [(1,)], 20)
            finally:
                holder.execute("ROLLBACK")

        other = threading.Thread(target=end_the_wait)
        other.start()
        replicat.feed(trail([Tx(1, [insert(number, "x" if number == 1 else LONG) for number in (1, 2, 3)])])[0])
        replicat.flush()
        other.join()
    assert lengths(replicats) == [(1,), (len(LONG),), (len(LONG),)]
