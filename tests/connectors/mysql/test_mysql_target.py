"""MariaDB as a target: exactly once, in few statements, and row by row after an error."""

from __future__ import annotations

import hashlib
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from batches import Row, Tx
from mariadb_servers import execute, numbers
from mysql_deliveries import KEY, MysqlDeliveries
from pipeline.apply.hand_made import (
    batches_after,
    delete,
    image,
    insert,
    key_update,
    trail,
    truncate,
    update,
    workload,
)
from processes import until

from ggshell.clock import FakeClock
from ggshell.connectors.mysql.appliers import MysqlWatermarkTarget, open_target
from ggshell.connectors.mysql.checkpoint_sql import MysqlCheckpointTables
from ggshell.connectors.mysql.ddl_execution import DdlExecution
from ggshell.connectors.mysql.ddl_text import ddl_text
from ggshell.connectors.mysql.literals import literals_of
from ggshell.connectors.mysql.session import connect
from ggshell.errors import ApplyError, ConflictError, RowGoneError
from ggshell.home.checkpoint import ReplicatKind
from ggshell.pipeline.apply.delivery import Delivery
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.error_rules import ErrorRule, Response, Switches
from ggshell.pipeline.apply.mapping import MapRule
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.target import SessionOptions, TargetColumn
from ggshell.record.ddl import DdlStatement, encode_ddl
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image import join_key_update
from ggshell.record.operation import IoType
from ggshell.types import Csn, TableName


@pytest.fixture
def deliveries(mariadb: str) -> Iterator[MysqlDeliveries]:
    found = MysqlDeliveries(mariadb)
    yield found
    found.close()


def _apply(delivery: Delivery, *transactions: Tx) -> None:
    """Apply transactions as one batch, and wait until they are committed."""
    delivery.feed(trail(transactions)[0])
    delivery.flush()


@pytest.mark.parametrize("seed", range(4))
def test_any_sequence_of_changes_gives_the_rows_of_the_source(deliveries: MysqlDeliveries, seed: int) -> None:
    if seed % 2:  # A second unique column: rows may not exchange its values, and changes are not reordered.
        deliveries.execute("ALTER TABLE t ADD COLUMN c int UNIQUE")
    transactions, rows = workload(seed, 60)
    delivery = deliveries.start(group=5)
    for batch in trail(transactions, rows_a_batch=37):
        delivery.feed(batch)
    delivery.flush()
    assert deliveries.content() == rows


@pytest.mark.slow
def test_after_a_crash_at_any_point_everything_is_applied_once(deliveries: MysqlDeliveries) -> None:
    transactions, rows = workload(7, 60)
    batches = trail(transactions, rows_a_batch=11)
    for _ in range(len(batches) + 1):
        delivery = deliveries.start(group=4)
        assert delivery.applied is not None
        for batch in batches_after(batches, delivery.applied.position)[:3]:
            delivery.feed(batch)
        if delivery.applied.csn == Csn(transactions[-1].csn):
            break
        if len(batches_after(batches, delivery.applied.position)) <= 3:
            delivery.flush()
    assert deliveries.content() == rows
    ((csn, low),) = deliveries.execute("SELECT log_csn, log_cmplt_csn FROM checks")
    assert csn == low == str(Csn(transactions[-1].csn))


def test_many_rows_are_few_statements_and_values_arrive_as_they_are(deliveries: MysqlDeliveries) -> None:
    texts = {n: f"{n} ä\t\\ '\" 😀;\0--" for n in range(1, 5001)}
    delivery = deliveries.start(group=100_000)
    changed = [update(n, text, f"{n}.25") for n, text in texts.items()]
    delivery.feed(
        trail([Tx(1, [insert(n) for n in texts]), Tx(2, changed), Tx(3, [delete(n) for n in range(1, 4990)])])[0]
    )
    delivery.flush()
    assert deliveries.content() == {n: texts[n] for n in range(4990, 5001)}
    assert deliveries.execute("SELECT CAST(SUM(b) AS CHAR) FROM t") == [("54947.75",)]


def test_a_truncation_is_in_the_transaction(deliveries: MysqlDeliveries) -> None:
    delivery = deliveries.start()
    _apply(delivery, Tx(1, [insert(1), insert(2)]))
    delivery.feed(trail([Tx(2, [truncate(), insert(3), update(4, "none")])])[0])
    with pytest.raises(ApplyError, match="no row was found to change"):
        delivery.flush()
    assert list(deliveries.content()) == [1, 2]


def test_a_refused_row_is_named_and_earlier_transactions_are_committed(
    deliveries: MysqlDeliveries, tmp_path: Path
) -> None:
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", FakeClock())
    delivery = deliveries.start(discard=discard)
    delivery.feed(trail([Tx(1, [insert(1)]), Tx(2, [insert(2), insert(3, "x" * 101)]), Tx(3, [insert(4)])])[0])
    with pytest.raises(
        ApplyError, match=rf"insert on {deliveries.schema}\.t \(id = 3\) failed: Data too long for column 'a'"
    ):
        delivery.flush()
    assert list(deliveries.content()) == [1]
    assert "x" * 101 in discard.path.read_text()
    assert delivery.applied is not None
    assert delivery.applied.csn == Csn(1)


@pytest.mark.parametrize("value", ["1.005", "NaN", "1e400", "1); DROP TABLE t; --"])
def test_a_number_that_would_change_is_refused_by_name(deliveries: MysqlDeliveries, value: str) -> None:
    delivery = deliveries.start()
    with pytest.raises(
        ApplyError, match=r"column b, decimal\(10,2\), without a change|Out of range value for column 'b'"
    ):
        _apply(delivery, Tx(1, [insert(1, "x", value)]))
    assert deliveries.content() == {}


def test_errors_are_answered_by_the_sqlstates_of_other_databases(deliveries: MysqlDeliveries) -> None:
    deliveries.execute("INSERT INTO t VALUES (1, 'here', 1)")
    rules = [
        ErrorRule("1403", Response.DISCARD),
        ErrorRule("23505", Response.IGNORE),
        ErrorRule("22001", Response.DISCARD),
    ]
    delivery = deliveries.start(responses=Responses(rules))
    _apply(delivery, Tx(1, [insert(1), insert(2, "y" * 200), update(9, "none"), insert(3), delete(8)]))
    assert deliveries.content() == {1: "here", 3: "x"}


def test_a_collision_with_the_unique_value_of_another_row_is_refused_by_its_name(deliveries: MysqlDeliveries) -> None:
    """Regression: the message said that no row was found to change."""
    deliveries.execute("ALTER TABLE t ADD UNIQUE by_a (a)", "INSERT INTO t VALUES (12, 'taken', 1)")
    delivery = deliveries.start(responses=Responses(switches=Switches(collisions=True)))
    with pytest.raises(ApplyError, match=r"Duplicate entry 'taken' for key '(t\.)?by_a'"):
        _apply(delivery, Tx(1, [insert(3, "taken")]))


def test_collisions_are_handled_row_by_row(deliveries: MysqlDeliveries) -> None:
    deliveries.execute("INSERT INTO t VALUES (1, 'old', 1), (5, 'old', 5), (6, 'old', 6)")
    delivery = deliveries.start(responses=Responses(switches=Switches(collisions=True)))
    delivery.feed(
        trail(
            [
                Tx(1, [insert(0), insert(1, "new"), update(2, "none"), delete(3)]),
                Tx(2, [key_update(4, 7, "moved"), key_update(5, 6, "took"), insert(8)]),
            ]
        )[0]
    )
    delivery.flush()
    assert deliveries.content() == {0: "x", 1: "new", 6: "took", 7: "moved", 8: "x"}


def test_a_large_transaction_is_rolled_back_to_its_savepoint_after_an_error(deliveries: MysqlDeliveries) -> None:
    deliveries.execute("INSERT INTO t VALUES (150, 'here', 1)")
    delivery = deliveries.start(responses=Responses([ErrorRule("1", Response.IGNORE)]))
    delivery._open_alone()
    for batch in trail([Tx(1, [insert(n) for n in range(200)])], rows_a_batch=30):
        delivery.feed(batch)
    delivery.flush()
    assert len(deliveries.content()) == 200
    assert deliveries.content()[150] == "here"


@pytest.mark.slow
def test_a_lock_wait_that_is_too_long_is_tried_again(deliveries: MysqlDeliveries) -> None:
    delivery = deliveries.start()
    _apply(delivery, Tx(1, [insert(1), insert(2)]))
    assert deliveries.target is not None
    with deliveries.target._connection.cursor() as own:
        own.execute("SET SESSION innodb_lock_wait_timeout = 1")
    with closing(connect(deliveries.login)) as holder, holder.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE t SET a = 'held' WHERE id = 2")
        release = threading.Timer(1.5, holder.commit)
        release.start()
        _apply(delivery, Tx(2, [update(1, "ours"), update(2, "ours")]))
        release.join()
    assert deliveries.content() == {1: "ours", 2: "ours"}


def test_a_deadlock_is_tried_again(deliveries: MysqlDeliveries) -> None:
    delivery = deliveries.start()
    _apply(delivery, Tx(1, [insert(1), insert(2)]))
    with closing(connect(deliveries.login)) as holder, holder.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE t SET a = 'held' WHERE id = 2")
        cursor.execute(
            f"INSERT INTO t SELECT seq, 'theirs', 0 FROM {numbers(100, 199)}"
        )  # so the victim is the other one
        with ThreadPoolExecutor(1) as pool:
            applied = pool.submit(_apply, delivery, Tx(3, [update(1, "last"), update(2, "last")]))
            waits = "SELECT 1 FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'"
            until("the target waits", lambda: bool(execute(deliveries.login, waits)))
            cursor.execute("UPDATE t SET a = 'theirs' WHERE id = 1")
            holder.rollback()
            applied.result()
    assert deliveries.content() == {1: "last", 2: "last"}


def test_tables_without_transactions_are_refused_unless_allowed(deliveries: MysqlDeliveries) -> None:
    deliveries.execute("ALTER TABLE t ENGINE = MyISAM")
    delivery = deliveries.start()
    with pytest.raises(ApplyError, match="has the engine MyISAM, which does not support transactions") as raised:
        delivery.feed(trail([Tx(1, [insert(1)])])[0])
    assert raised.value.code == "GGS-00484"
    delivery = deliveries.start(options=SessionOptions(any_engine=True))
    _apply(delivery, Tx(1, [insert(1)]))
    assert deliveries.content() == {1: "x"}


def test_a_row_without_its_parent_is_refused_with_what_helps_here(deliveries: MysqlDeliveries) -> None:
    deliveries.execute("CREATE TABLE p (id int PRIMARY KEY)", "ALTER TABLE t ADD FOREIGN KEY (id) REFERENCES p (id)")
    with pytest.raises(ApplyError, match="foreign key constraint fails") as raised:
        _apply(deliveries.start(), Tx(1, [insert(1)]))
    assert "foreign_key_checks = 0, drop the foreign key" in raised.value.hint
    assert "DBOPTIONS" not in raised.value.hint


def test_names_that_are_too_long_are_refused_and_others_need_no_care(deliveries: MysqlDeliveries) -> None:
    deliveries.execute("CREATE TABLE `select` (`Key` int PRIMARY KEY, `a``b %s` text)")
    source = TableDefinition(TableName("hr", "Orders"), (Column("key", "integer"), Column("a`b %s", "text")), (0,))
    rules = [MapRule('hr."Orders"', f"{deliveries.schema}.select")]
    delivery = deliveries.start(rules=rules)
    _apply(delivery, Tx(1, [Row(source, IoType.INSERT, image("1", "%d"))]))
    assert deliveries.execute("SELECT * FROM `select`") == [(1, "%d")]
    delivery = deliveries.start(rules=[MapRule("hr.*", f"{deliveries.schema}.{'x' * 65}")])
    with pytest.raises(ApplyError, match="is too long"):
        delivery.feed(trail([Tx(2, [insert(1)])])[0])


def test_rows_without_a_key_are_found_by_exactly_their_values(deliveries: MysqlDeliveries) -> None:
    deliveries.execute("CREATE TABLE u (a varchar(9), f float, d double)")
    source = TableDefinition(
        TableName("hr", "u"), (Column("a", "text"), Column("f", "real"), Column("d", "double precision")), ()
    )
    rows = [image(a, "0.1", "0.1") for a in ("a", "A", "a ", "a")] + [image(None, None, "1e-300")]
    delivery = deliveries.start()
    delivery.feed(trail([Tx(1, [Row(source, IoType.INSERT, row) for row in rows])])[0])
    delivery.feed(trail([Tx(2, [Row(source, IoType.DELETE, row) for row in rows[1:4:2]])])[0])
    _apply(delivery, Tx(3, [Row(source, IoType.DELETE, rows[4])]))
    assert sorted(deliveries.execute("SELECT a FROM u")) == [("a",), ("a ",)]


def test_children_that_a_delete_of_their_parent_has_removed_are_not_missed(deliveries: MysqlDeliveries) -> None:
    deliveries.execute(
        "CREATE TABLE c (id int PRIMARY KEY, t int, FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE)",
        "INSERT INTO t VALUES (1, 'x', 1)",
        "INSERT INTO c VALUES (5, 1)",
    )
    child = TableDefinition(TableName("hr", "c"), (Column("id", "integer"), Column("t", "integer")), (0,))
    delivery = deliveries.start()
    _apply(delivery, Tx(1, [delete(1), Row(child, IoType.DELETE, image("5"))]))
    assert deliveries.content() == {}


def test_a_child_that_an_update_of_its_parent_has_changed_is_not_missed(deliveries: MysqlDeliveries) -> None:
    """Regression: MySQL logs the rows that a foreign key has changed; the foreign key of the target had changed them before."""
    deliveries.execute(
        "CREATE TABLE c (a int, t int, FOREIGN KEY (t) REFERENCES t (id) ON UPDATE CASCADE)",
        "INSERT INTO t VALUES (1, 'x', 1)",
        "INSERT INTO c VALUES (5, 1)",
    )
    child = TableDefinition(TableName("hr", "c"), (Column("a", "integer"), Column("t", "integer")), ())
    changed = Row(child, IoType.KEY_FIELD_COMP, join_key_update(image("5", "1"), image("5", "2")))
    delivery = deliveries.start()
    _apply(delivery, Tx(1, [key_update(1, 2), changed]))
    assert deliveries.execute("SELECT * FROM c") == [(5, 2)]
    with pytest.raises(ApplyError, match="no row was found"):
        _apply(delivery, Tx(2, [changed]))


def test_a_table_that_changes_between_transactions_is_described_again(deliveries: MysqlDeliveries) -> None:
    delivery = deliveries.start()
    _apply(delivery, Tx(1, [insert(1)]))
    deliveries.execute("ALTER TABLE t MODIFY a varchar(50), CHANGE b b varchar(20)")
    _apply(delivery, Tx(2, [insert(2, "y", "2.50")]))
    assert deliveries.content() == {1: "x", 2: "y"}


def test_a_group_has_one_session_and_needs_its_row(
    deliveries: MysqlDeliveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ggshell.connectors.mysql.target.LOCK_SECONDS", 1)
    delivery = deliveries.start()
    other = MysqlDeliveries.__new__(MysqlDeliveries)
    other.__dict__.update({**deliveries.__dict__, "target": None})
    with pytest.raises(ConflictError, match="another session is applying for group REP1"):
        other.start()
    _apply(delivery, Tx(1, [insert(1)]))
    deliveries.execute("DELETE FROM checks")
    delivery.feed(trail([Tx(2, [insert(2)])])[0])
    with pytest.raises(RowGoneError, match="has no row in checkpoint table"):
        delivery.flush()
    assert deliveries.content() == {1: "x"}


def test_the_note_of_a_ddl_statement_is_not_one_of_the_transactions_of_appliers(deliveries: MysqlDeliveries) -> None:
    """Regression: a parallel Replicat numbered its rows from that of the note on, and then deleted its own mark."""
    with (
        closing(connect(deliveries.login)) as connection,
        closing(open_target(deliveries.setup(ReplicatKind.PARALLEL))) as target,
    ):
        assert isinstance(target, MysqlWatermarkTarget)
        target.start()
        MysqlCheckpointTables(connection).begin_ddl(deliveries.table, "rep1", KEY, "a statement")
        _, ids, sequences = target.start()
        assert (ids, sequences) == ([], [])
        assert MysqlCheckpointTables(connection).begun_ddl(deliveries.table, "rep1", KEY) == "a statement"


SWAP = "RENAME TABLE one TO tmp, two TO one, tmp TO two"
AGAIN = {SWAP: [("one", 2), ("two", 1)], "ALTER TABLE one ADD INDEX (id), ADD CHECK (id > 0)": [("one", 1), ("two", 2)]}


class NoNames:
    """Everything keeps its name."""

    def table(self, name: TableName) -> TableName:
        return name

    other = table

    def schema(self, owner: str) -> str:
        return owner

    session_schema = schema


@pytest.mark.parametrize("statement", AGAIN)
@pytest.mark.parametrize("executed", [True, False])
def test_a_statement_that_a_killed_replicat_has_noted_is_executed_once(
    deliveries: MysqlDeliveries, statement: str, executed: bool
) -> None:
    """Executed again, it would have another result and no error."""
    deliveries.execute(
        *(f"CREATE TABLE {name} (id int PRIMARY KEY)" for name in ("one", "two")),
        "INSERT INTO one VALUES (1)",
        "INSERT INTO two VALUES (2)",
    )
    found = ddl_text(statement, deliveries.schema)
    assert found is not None
    ddl = DdlStatement(found.tag, statement, found.objects, "mysql", (("database", deliveries.schema),))
    told: list[str] = []
    deliveries.start()
    assert deliveries.target is not None
    if executed:
        assert deliveries.target.execute_outside(ddl, NoNames(), lambda *_: None, again=False) is None
    else:
        state = DdlExecution(deliveries.target._connection, lambda: None).state(ddl, NoNames())
        mark = hashlib.sha256(encode_ddl(ddl)).hexdigest()
        with closing(connect(deliveries.login)) as connection:
            MysqlCheckpointTables(connection).begin_ddl(deliveries.table, "rep1", KEY, f"{mark} {state}")
    deliveries.start()
    assert deliveries.target.execute_outside(ddl, NoNames(), lambda _, text: told.append(text), again=True) is None
    assert [(name, deliveries.execute(f"SELECT id FROM {name}")[0][0]) for name in ("one", "two")] == AGAIN[statement]
    assert bool(told) is executed
    indexes = deliveries.execute("SHOW INDEX FROM one")
    assert len(indexes) == (1 if statement == SWAP else 2)


def test_a_refused_statement_is_executed_when_its_table_has_been_repaired(deliveries: MysqlDeliveries) -> None:
    """The change of the table does not mean that the statement was executed."""
    deliveries.execute("CREATE TABLE one (id int PRIMARY KEY, n int)", "INSERT INTO one VALUES (1, 1), (2, 1)")
    statement = "ALTER TABLE one ADD UNIQUE (n)"
    found = ddl_text(statement, deliveries.schema)
    assert found is not None
    ddl = DdlStatement(found.tag, statement, found.objects, "mysql", (("database", deliveries.schema),))
    deliveries.start()
    assert deliveries.target is not None
    assert deliveries.target.execute_outside(ddl, NoNames(), lambda *_: None, again=False) is not None
    deliveries.execute("DELETE FROM one WHERE id = 2", "ALTER TABLE one ADD other int")
    deliveries.start()
    assert deliveries.target.execute_outside(ddl, NoNames(), lambda *_: None, again=True) is None
    assert len(deliveries.execute("SHOW INDEX FROM one")) == 2


def test_deletes_cascade_by_other_tables(deliveries: MysqlDeliveries) -> None:
    deliveries.execute(
        "CREATE TABLE c (id int PRIMARY KEY, t int, FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE)",
        "CREATE TABLE g (id int PRIMARY KEY, c int, FOREIGN KEY (c) REFERENCES c (id) ON DELETE CASCADE)",
        "CREATE TABLE r (id int PRIMARY KEY, g int, FOREIGN KEY (g) REFERENCES g (id))",
    )
    deliveries.start()
    assert deliveries.target is not None
    found = {name: deliveries.target.describe(TableName(deliveries.schema, name)) for name in "cgr"}
    assert {name: [parent.name for parent in table.cascades] for name, table in found.items() if table is not None} == {
        "c": ["t"],
        "g": ["c", "t"],
        "r": [],
    }


def test_the_columns_that_foreign_keys_refer_to_need_not_be_unique(deliveries: MysqlDeliveries) -> None:
    """And their names may be written in another case than in the table."""
    if deliveries.execute("SELECT VERSION() LIKE '%MariaDB%'") == [(0,)]:
        pytest.skip("MySQL 8.4 and later refuse such foreign keys")
    deliveries.execute(
        "CREATE TABLE p (id int PRIMARY KEY, code int, n int, KEY (code, n))",
        "CREATE TABLE c (id int PRIMARY KEY, code int, FOREIGN KEY (CODE) REFERENCES p (CODE))",
    )
    deliveries.start()
    assert deliveries.target is not None
    parent, child = (deliveries.target.describe(TableName(deliveries.schema, name)) for name in "pc")
    assert parent is not None
    assert child is not None
    assert (parent.referenced, parent.referred) == (True, (frozenset({"code"}),))
    assert [(each.columns, each.parent_columns) for each in child.foreign] == [(("code",), ("code",))]
    assert child.referred == ()


def test_a_point_keeps_its_longitude_and_its_latitude(deliveries: MysqlDeliveries) -> None:
    """Regression: MySQL read the longitude as the latitude in the reference systems that name the latitude first."""
    point = struct.pack("<dd", 100, 2).hex().upper()
    column = TargetColumn("c", "point", "point")
    (literal,) = literals_of("point", column)([f"0101000020E6100000{point}".encode()])
    assert deliveries.execute(f"SELECT HEX({literal.decode()})") == [(f"E61000000101000000{point}",)]
