"""Refusals in transactions with DDL: DDLERROR for statements, REPERROR for the rows around them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from batches import Row, Tx
from connectors.postgres.ddl_batches import NAME, NEW, add_column, create_made, ddl, feed, made, query, run, wider
from pipeline.apply.hand_made import Replicats, insert, trail, update

from ggshell.clock import SystemClock
from ggshell.connectors.postgres import session
from ggshell.connectors.postgres.target import TRIGGER_FIRES
from ggshell.errors import ApplyError, TransactionAbortedError
from ggshell.pipeline.apply.counters import OperationCounters
from ggshell.pipeline.apply.ddl_choices import DdlChoices
from ggshell.pipeline.apply.discard import DiscardFile
from ggshell.pipeline.apply.error_rules import DEFAULT, ErrorRule, Response
from ggshell.pipeline.apply.responses import Responses
from ggshell.pipeline.apply.target import SessionOptions
from ggshell.record.ddl import DdlColumn
from ggshell.record.ddl_responses import (
    DdlAnswer,
    DdlErrorRule,
    DdlErrors,
    DdlResponse,
    DdlSubstitution,
    DdlSubstitutions,
)
from ggshell.record.ddl_rules import DdlCondition, DdlRules, DdlScope
from ggshell.record.operation import IoType
from ggshell.types import TableName

DUPLICATE = ddl("ALTER TABLE hr.t ADD COLUMN a text", "ALTER TABLE")
TRANSACTIONS = (
    Tx(1, [insert(1), create_made(), made(1), DUPLICATE, made(2), add_column(), wider(2, "c")]),
    Tx(2, [wider(3, "d"), made(3)]),
)


def errors(response: DdlResponse, *states: str, retries: int = 0) -> DdlChoices:
    return DdlChoices(errors=DdlErrors((DdlErrorRule(states, DdlAnswer(response, retries)),)))


@pytest.mark.parametrize("response", [DdlResponse.IGNORE, DdlResponse.DISCARD])
@pytest.mark.parametrize("limit", [None, 2])
def test_an_error_is_ignored_or_discarded_alone(
    replicats: Replicats, tmp_path: Path, response: DdlResponse, limit: int | None
) -> None:
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", SystemClock())
    found: Counter[str] = Counter()
    replicat = replicats.start(
        limit=limit,
        discard=discard,
        ddl=errors(response, "42701"),
        counters=OperationCounters(
            applied=lambda _s, _t, io_type, number: found.update({"ddl": number if io_type == IoType.DDL else 0}),
            discarded=lambda _s, _t, io_type, number: found.update({"discards": number}),
            ignored=lambda _s, _t, io_type, number: found.update({"ignores": number}),
        ),
    )
    feed(replicat, trail(TRANSACTIONS, rows_a_batch=3))
    assert query(replicats, "SELECT count(*), count(c) FROM t") == [(3, 2)]
    assert query(replicats, "SELECT count(*) FROM made") == [(3,)]
    discards = response is DdlResponse.DISCARD
    assert +found == {"ddl": 2, "discards" if discards else "ignores": 1}
    assert discard.path.exists() is discards
    if discards:
        assert "DDL = ALTER TABLE hr.t ADD COLUMN a text" in discard.path.read_text()
        assert "Problem replicating hr.t to public.t" in discard.path.read_text()


def test_other_errors_still_stop(replicats: Replicats) -> None:
    with pytest.raises(ApplyError, match="SQLSTATE 42701"):
        feed(replicats.start(ddl=errors(DdlResponse.IGNORE, "42P07")), trail(TRANSACTIONS))
    assert query(replicats, "SELECT count(*) FROM t") == [(0,)]


def test_a_statement_is_retried_before_the_response(replicats: Replicats) -> None:
    responses = Responses()
    choices = errors(DdlResponse.IGNORE, retries=2)
    for attempt in (1, 2):
        with pytest.raises(TransactionAbortedError, match=f"attempt {attempt} of 2"):
            feed(replicats.start(ddl=choices, responses=responses), trail(TRANSACTIONS))
        assert query(replicats, "SELECT count(*) FROM t") == [(0,)]
    feed(replicats.start(ddl=choices, responses=responses), trail(TRANSACTIONS))
    assert query(replicats, "SELECT count(*), count(c) FROM t") == [(3, 2)]


@pytest.mark.parametrize("response", [Response.DISCARD, Response.IGNORE])
def test_a_refused_row_after_a_statement_is_answered_alone(
    replicats: Replicats, tmp_path: Path, response: Response
) -> None:
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", SystemClock())
    responses = Responses([ErrorRule(DEFAULT, response)])
    rows: list[Row] = [
        insert(1),
        insert(1),
        create_made(),
        made(1),
        made(1),
        add_column(),
        wider(2, "c"),
        update(9, "x"),
    ]
    feed(replicats.start(discard=discard, responses=responses), trail([Tx(1, rows), Tx(2, [wider(3, "d")])], 2))
    assert query(replicats, "SELECT count(*), count(c) FROM t") == [(3, 2)]
    assert query(replicats, "SELECT count(*) FROM made") == [(1,)]


def test_a_refused_row_after_a_statement_stops_and_leaves_nothing(replicats: Replicats) -> None:
    with pytest.raises(ApplyError, match=r"insert on public\.made \(id = 1\)"):
        feed(replicats.start(), trail([Tx(1, [insert(1)]), Tx(2, [create_made(), made(1), made(1)])]))
    assert query(replicats, "SELECT count(*), to_regclass('made') FROM t") == [(1, None)]


def test_a_whole_transaction_with_ddl_is_discarded(replicats: Replicats, tmp_path: Path) -> None:
    discard = DiscardFile(tmp_path / "rep1.dsc", "REP1", SystemClock())
    responses = Responses([ErrorRule(DEFAULT, Response.TRANSDISCARD)])
    batches = trail([Tx(1, [insert(1)]), Tx(2, [insert(2), add_column(), insert(1)]), Tx(3, [insert(3)])])
    with pytest.raises(TransactionAbortedError):
        feed(replicats.start(discard=discard, responses=responses), batches)
    feed(replicats.start(discard=discard, responses=responses), batches)
    assert query(replicats, "SELECT id FROM t ORDER BY id") == [(1,), (3,)]
    assert "ALTER TABLE t ADD COLUMN c text" in discard.path.read_text()


def test_the_rules_of_ddl_choose_statements_and_texts(replicats: Replicats) -> None:
    rules = DdlRules((DdlCondition(True, DdlScope.MAPPED), DdlCondition(False, operation="CREATE")))
    texts = DdlSubstitutions((DdlSubstitution("column c", "COLUMN IF NOT EXISTS d"),))
    unmapped = ddl("CREATE TABLE other.x (id int)", "ALTER TABLE", TableName("other", "x"))
    told: list[str] = []
    choices = DdlChoices(rules=rules, substitutions=texts, reports=True, noted=lambda _, text: told.append(text))
    feed(
        replicats.start(ddl=choices),
        trail([Tx(1, [insert(1), create_made(), add_column(), unmapped])]),
    )
    assert query(replicats, "SELECT d, to_regclass('made')::text FROM t") == [(None, None)]
    assert [text.partition(":")[0] for text in told] == [
        "CREATE TABLE, scope MAPPED, is excluded",
        "ALTER TABLE, scope MAPPED, is executed",
        "ALTER TABLE, scope UNMAPPED, is excluded",
    ]


def test_a_target_table_that_differs_is_reported(replicats: Replicats) -> None:
    run(replicats, "ALTER TABLE t ADD COLUMN own text")
    told: list[tuple[str, str]] = []
    columns = tuple(DdlColumn(n, name, "text", 25) for n, name in enumerate(("id", "a", "b", "c", "more"), 1))
    added = ddl("ALTER TABLE t ADD COLUMN c text", "ALTER TABLE", columns=columns)
    feed(replicats.start(ddl=DdlChoices(warned=lambda code, text: told.append((code, text)))), trail([Tx(1, [added])]))
    assert told == [
        (
            "GGS-00577",
            "After ALTER TABLE, target table public.t differs from source table hr.t: it is without more and with own.",
        )
    ]


def test_settings_and_role_are_those_of_the_statement_only(replicats: Replicats) -> None:
    run(
        replicats,
        "DROP ROLE IF EXISTS ddl_maker",
        "CREATE ROLE ddl_maker",
        "GRANT CREATE ON SCHEMA public TO ddl_maker",
    )
    told: list[str] = []
    fields = {"settings": (("search_path", "hr"), ("DateStyle", "SQL, DMY"), ("unknown.one", "x"))}
    statements = [
        ddl("CREATE TABLE made (id int PRIMARY KEY, v text)", "CREATE TABLE", NEW.name, role="ddl_maker", **fields),
        ddl("ALTER TABLE t ADD d date DEFAULT '02/03/2024'", "ALTER TABLE", NAME, role="nobody_here", **fields),
        ddl("ALTER TABLE t ADD e date DEFAULT '05/03/2024'", "ALTER TABLE", NAME, role="nobody_here", **fields),
    ]
    replicat = replicats.start(ddl=DdlChoices(noted=lambda _, text: told.append(text)))
    assert replicats.target is not None
    feed(replicat, trail([Tx(1, [statements[0], made(1), *statements[1:], insert(1)])]))
    assert query(replicats, "SELECT d::text, e::text FROM t") == [("2024-03-02", "2024-03-05")]
    assert query(replicats, "SELECT relowner::regrole::text FROM pg_class WHERE oid = 'made'::regclass") == [
        ("ddl_maker",)
    ]
    assert len(told) == 1
    assert "nobody_here" in told[0]
    with session.connect(replicats.dsn) as connection:
        connection.execute("DROP OWNED BY ddl_maker; DROP ROLE ddl_maker")


def test_deferred_constraints_do_not_block_a_statement(replicats: Replicats) -> None:
    run(replicats, "ALTER TABLE t ADD UNIQUE (a) DEFERRABLE")
    replicat = replicats.start(options=SessionOptions(defer_constraints=True))
    feed(replicat, trail([Tx(1, [insert(1), add_column()])]))
    assert query(replicats, "SELECT count(c), count(*) FROM t") == [(0, 1)]


@pytest.mark.parametrize("text", ["", "SELECT FROM"])
def test_a_statement_that_cannot_be_executed_is_refused_by_name(replicats: Replicats, text: str) -> None:
    with pytest.raises(ApplyError, match=r"refuses ALTER TABLE of hr\.t"):
        feed(replicats.start(), trail([Tx(1, [ddl(text, "ALTER TABLE")])]))
    with pytest.raises(ApplyError, match=r"statement of oracle"):
        feed(replicats.start(), trail([Tx(1, [ddl("ALTER TABLE t", "ALTER TABLE", database="oracle")])]))


@pytest.mark.parametrize("options", [SessionOptions(), SessionOptions(suppress_triggers=True)])
def test_a_trigger_that_also_fires_for_applied_rows_is_reported(replicats: Replicats, options: SessionOptions) -> None:
    told: list[str] = []
    function = "CREATE FUNCTION hr.g() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$"
    trigger = "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION public.g()"
    rows = [
        ddl(function, "CREATE FUNCTION", TableName("hr", "g"), "FUNCTION"),
        ddl(trigger, "CREATE TRIGGER", TableName("hr", "g"), "TRIGGER"),
    ]
    choices = DdlChoices(noted=lambda _, text: told.append(text))
    feed(replicats.start(ddl=choices, options=options), trail([Tx(1, rows)]))
    assert [text for text in told if "SUPPRESSTRIGGERS" in text] == (
        [] if options.suppress_triggers else [TRIGGER_FIRES.format("hr.g")]
    )
