"""Runs a web shop's workload: mixed transactions at a steady rate, in its own process, until SIGTERM or the time limit.

    python -m ggshell.demo.workload --dsn DSN [--rate 200] [--seconds 60] [--transactions N] [--seed 7]

The seed determines the sequence of transactions. At the end, one line reports how many were committed.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import psycopg

from ggshell.demo.load import DEFAULT_SEED, SCHEMA
from ggshell.plurals import counted

Row = tuple[Any, ...]


class Totals(NamedTuple):
    """Result of a run: transactions committed and rolled back, and elapsed seconds."""

    committed: int
    rolled_back: int
    seconds: float

    def __str__(self) -> str:
        rate = self.committed / self.seconds if self.seconds else 0.0
        return (
            f"{counted(self.committed, 'transaction')} committed, {self.rolled_back} rolled back "
            f"in {self.seconds:.1f} s ({rate:.0f} a second)"
        )


class _RollBack(Exception):  # noqa: N818 - not an error: a customer cancels
    """Raised inside a transaction to roll it back."""


class Shop:
    """The transactions of the workload. Each method runs its statements inside an open transaction."""

    def __init__(self, connection: psycopg.Connection, seed: int) -> None:
        self._connection = connection
        self._random = random.Random(seed)  # noqa: S311 - reproducible rows, no secrets
        self._seed = seed
        self._number = self._one("SELECT coalesce(max(order_id), 0) FROM orders")[0]
        self._customers = self._one("SELECT coalesce(max(customer_id), 1) FROM customers")[0]
        self._sensor_turn = 0

    def pick(self) -> Callable[[], None]:
        """Choose the next transaction by weight."""
        names = list(_WEIGHTS)
        chosen: Callable[[], None] = getattr(self, self._random.choices(names, weights=list(_WEIGHTS.values()))[0])
        return chosen

    def place_order(self) -> None:
        """Insert an order and its items, update the stock, and write an audit row, in one commit."""
        customer = self._random.randint(1, self._customers)
        order = self._one(
            "INSERT INTO orders (customer_id, ordered, promised, comment) SELECT customer_id, now(), '2 days', %s"
            " FROM customers WHERE customer_id = %s RETURNING order_id",
            (self._random.choice([None, "", "gift", "ring twice\nplease"]), customer),
        )
        if order is None:
            return
        self._number = order[0]
        for line in range(1, self._random.randint(2, 6)):
            sku = self._sku()
            self._do(
                "INSERT INTO order_items (order_id, line, sku, quantity, price) SELECT %s, %s, sku, %s, price FROM products"
                " WHERE sku = %s",
                (order[0], line, self._random.randint(1, 5), sku),
            )
            self._do("UPDATE inventory SET quantity = quantity - 1 WHERE warehouse = 1 AND sku = %s", (sku,))
        self._audit(f"order {order[0]}")

    def pay_order(self) -> None:
        order = self._order()
        self._do(
            "INSERT INTO payments (payment_id, order_id, amount, paid, details) SELECT %s::text::uuid, order_id,"
            " coalesce((SELECT sum(amount) FROM order_items i WHERE i.order_id = o.order_id), 0), now(), %s::json"
            " FROM orders o WHERE order_id = %s AND status = 'new'",
            (f"{self._random.getrandbits(128):032x}", json.dumps({"card": self._random.randint(1000, 9999)}), order),
        )
        self._do("UPDATE orders SET status = 'paid' WHERE order_id = %s AND status = 'new'", (order,))

    def ship_orders(self) -> None:
        """Update many rows in one statement, so that they share a log position."""
        first = self._order()
        self._do(
            "UPDATE orders SET status = 'shipped', comment = NULL WHERE order_id BETWEEN %s AND %s AND status = 'paid'",
            (first, first + self._random.randint(1, 20)),
        )

    def cancel_order(self) -> None:
        order = self._order()
        self._do("DELETE FROM payments WHERE order_id = %s", (order,))
        self._do("DELETE FROM order_items WHERE order_id = %s", (order,))
        self._do("DELETE FROM orders WHERE order_id = %s", (order,))

    def new_customer(self) -> None:
        name = f"{self._random.choice(['Ada', 'Łukasz', 'José', '李'])} {self._random.randint(1, 99999)}"
        row = self._one(
            "INSERT INTO customers (name, email, born, credit_limit, rating, home, notes) VALUES"
            " (%s, %s, %s, %s, 'NaN', ROW(1.5, -2.25)::geo_point, '') RETURNING customer_id",
            (
                name,
                f"{self._random.getrandbits(64):x}@example.org",
                "0044-03-15 BC",
                self._random.randint(0, 10**6) / 100,
            ),
        )
        self._customers = row[0] if row else self._customers
        self._do(
            "INSERT INTO addresses (customer_id, kind, street, city) VALUES (%s, 'home', %s, 'Ærø')",
            (self._customers, f"{self._random.randint(1, 99)} New Street"),
        )

    def move_customer(self) -> None:
        self._do(
            "UPDATE addresses SET street = %s, city = 'Umeå' WHERE address_id = %s",
            (f"{self._random.randint(1, 999)} High Street", self._random.randint(1, 12_000)),
        )
        self._do(
            "UPDATE customers SET notes = NULL WHERE customer_id = %s", (self._random.randint(1, self._customers),)
        )

    def move_stock(self) -> None:
        """Update a primary key: move a row from one warehouse to another."""
        sku, target = self._sku(), self._random.randint(3, 9)
        self._do(
            "UPDATE inventory SET warehouse = %s, counted = '-infinity' WHERE sku = %s AND warehouse ="
            " (SELECT max(warehouse) FROM inventory WHERE sku = %s AND warehouse > 1)",
            (target, sku, sku),
        )

    def rename_sku(self) -> None:
        """Delete and insert the same key in one transaction."""
        warehouse, sku = 1, self._sku()
        found = self._one(
            "DELETE FROM inventory WHERE warehouse = %s AND sku = %s RETURNING quantity", (warehouse, sku)
        )
        if found:
            self._do("INSERT INTO inventory VALUES (%s, %s, %s, now())", (warehouse, sku, found[0] + 10))

    def log_events(self) -> None:
        """Insert one or several rows into a table that has no key."""
        self._do(
            "INSERT INTO events SELECT now() + i * interval '1 ms', %s, '192.168.0.1', jsonb_build_object('i', i), %s + i"
            " FROM generate_series(1, %s) i",
            (self._random.choice(["view", "click"]), self._random.randint(1, 10**9), self._random.randint(1, 6)),
        )

    def correct_event(self) -> None:
        verb = self._random.choice(["UPDATE events SET payload = NULL", "DELETE FROM events"])
        self._do(
            verb + " WHERE ctid = (SELECT ctid FROM events WHERE code > %s LIMIT 1)", (self._random.randint(9, 10**9),)
        )

    def edit_document(self) -> None:
        """Update a document, usually without its long values, which are then missing from the change record."""
        number = self._random.randint(1, 400)
        self._do("UPDATE documents SET revision = revision + 1, meta = meta || %s::jsonb WHERE document_id = %s",
                 (json.dumps({"by": self._random.randint(1, 9)}), number))  # fmt: skip
        if self._random.random() < 0.2:
            text = f"{self._random.getrandbits(256):064x}" * 200
            self._do("UPDATE documents SET body = %s, pages = '{}' WHERE document_id = %s", (text, number))

    def new_document(self) -> None:
        title = f"Report {self._random.randint(1, 10**6)}"
        self._do(
            "INSERT INTO documents (title, body, scan, pages, flags)"
            " VALUES (%s, '', '', ARRAY[[1, 2], [3, NULL]], B'10000001')",
            (title,),
        )

    def measure(self) -> None:
        """Insert rows into several partitions at once, and sometimes move a row to another partition."""
        self._sensor_turn += 1
        sensor = 1000 + self._sensor_turn % 200
        self._do(
            "INSERT INTO measurements SELECT %s, timestamp '2024-06-01' + i * interval '200 days' + %s * interval '1 s',"
            " %s / i, 'ok' FROM generate_series(1, 4) i ON CONFLICT DO NOTHING",
            (sensor, self._random.randint(1, 10**6), self._random.random()),
        )
        if self._random.random() < 0.2:
            self._do(
                "UPDATE measurements SET taken = taken + interval '1 year 1 ms' WHERE (sensor, taken) ="
                " (SELECT sensor, taken FROM measurements WHERE sensor = %s ORDER BY taken LIMIT 1)",
                (sensor,),
            )

    def savepoints(self) -> None:
        """Roll back part of a transaction; the rows of that part must not be replicated."""
        self._audit("kept")
        self._do("SAVEPOINT attempt")
        self._audit("not kept")
        self._do("UPDATE customers SET active = NOT active WHERE customer_id <= 20")
        self._do("ROLLBACK TO SAVEPOINT attempt")
        self._audit("kept as well")

    def change_of_mind(self) -> None:
        self._do("DELETE FROM events WHERE code = %s", (self._random.randint(1, 5),))
        raise _RollBack

    def _audit(self, text: str) -> None:
        self._do(
            'INSERT INTO "Audit Trail" ("User", "When", "select") VALUES (%s, now(), %s)',
            (f"clerk {self._random.randint(1, 9)}", text),
        )

    def _order(self) -> int:
        return self._random.randint(max(1, self._number - 3000), max(1, self._number))

    def _sku(self) -> str:
        return f"SKU-{self._random.randint(1, 2000):05d}"

    def _do(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        self._connection.execute(statement, parameters)

    def _one(self, statement: str, parameters: Sequence[Any] = ()) -> Any:
        return self._connection.execute(statement, parameters).fetchone()


_WEIGHTS = {
    "place_order": 30,
    "pay_order": 14,
    "ship_orders": 6,
    "cancel_order": 3,
    "new_customer": 6,
    "move_customer": 8,
    "move_stock": 4,
    "rename_sku": 4,
    "log_events": 8,
    "correct_event": 3,
    "edit_document": 5,
    "new_document": 2,
    "measure": 5,
    "savepoints": 4,
    "change_of_mind": 3,
}


class Pace:
    """Paces the transactions: transaction ``n`` is due at ``n / rate`` seconds; a late one starts immediately."""

    def __init__(self, rate: float, stop: threading.Event) -> None:
        self._interval = 1 / rate if rate else 0.0
        self._stop = stop
        self._due = time.monotonic()

    def wait(self) -> None:
        """Wait until the next transaction is due or the workload is stopped."""
        self._due += self._interval
        pause = self._due - time.monotonic()
        if pause > 0:
            self._stop.wait(pause)


def run(
    dsn: str,
    *,
    rate: float,
    seconds: float | None = None,
    transactions: int | None = None,
    seed: int = DEFAULT_SEED,
    schema: str = SCHEMA,
    stop: threading.Event | None = None,
) -> Totals:
    """Run until stopped, or for a number of seconds or transactions. ``rate`` 0 means no limit."""
    stop = stop or threading.Event()
    began, counts = time.monotonic(), [0, 0]
    with psycopg.connect(dsn, autocommit=True, options=f"-c search_path={schema} -c timezone=UTC") as connection:
        shop, pace = Shop(connection, seed), Pace(rate, stop)
        while not stop.is_set():
            if seconds is not None and time.monotonic() - began >= seconds:
                break
            if transactions is not None and sum(counts) >= transactions:
                break
            counts[_transact(connection, shop.pick())] += 1
            pace.wait()
    return Totals(counts[0], counts[1], time.monotonic() - began)


def _transact(connection: psycopg.Connection, work: Callable[[], None]) -> int:
    """Run one transaction; return 0 if it was committed, 1 if it was rolled back."""
    try:
        with connection.transaction():
            work()
    except _RollBack:
        return 1
    except psycopg.errors.UniqueViolation:  # the target warehouse already stocks the article
        return 1
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of the workload process."""
    parser = argparse.ArgumentParser(prog="python -m ggshell.demo.workload", description=__doc__)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--rate", type=float, default=200.0, help="transactions per second; 0 for no limit")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--transactions", type=int)
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    parser.add_argument("--schema", default=SCHEMA)
    options = parser.parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    totals = run(stop=stop, **vars(options))
    sys.stdout.write(f"{totals}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
