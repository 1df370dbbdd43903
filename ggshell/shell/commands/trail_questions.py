"""TRAIL SQL, COUNT, FIND, TOP, GAPS and ASOF: questions about what trails hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ggshell.errors import TrailError, UsageError
from ggshell.shell import asking
from ggshell.shell.asking import Answered, answered, trails_of
from ggshell.shell.intervals import interval_seconds
from ggshell.shell.key_values import key_values
from ggshell.shell.registry import command
from ggshell.shell.results import Note
from ggshell.shell.session import Session

if TYPE_CHECKING:
    from ggshell.spark.questions.asof import Moment
    from ggshell.spark.questions.gaps import Finding
    from ggshell.spark.questions.trails import Trails
    from ggshell.spark.views import Answer

_TOP = 10
_PAUSE = "1 HOUR"
_FINDING_HEADS = ("check", "state", "trail", "seqno", "rba", "csn", "detail")


@command("TRAIL SQL")
def trail_sql(session: Session, *, sql: str, from_: tuple[str, ...]) -> Answered:
    """The answer to a SELECT about trails."""
    trails = trails_of(session, from_)
    return answered(trails, trails.ask("TRAIL SQL", sql))


@command("TRAIL COUNT")
def trail_count(
    session: Session, *, from_: tuple[str, ...], by: str = "", only: str = "", since: str = "", until: str = ""
) -> Answered:
    """Records by table and operation, or by one thing."""
    from ggshell.spark.questions import counts

    trails = trails_of(session, from_)
    answer = counts.count(trails, by.upper(), asking.span_of(session, trails, only, since, until))
    result = answered(trails, answer)
    return result._replace(layout=result.layout + _sums(answer))


def _sums(answer: Answer) -> str:
    place = answer.columns.index("records")
    records, size, begins = (sum(row[place + more] or 0 for row in answer.rows) for more in range(3))
    return f"{records:,} records, {size:,} bytes of data, {begins:,} transactions begin there\n"


@command("TRAIL FIND TRANSACTION")
def trail_find_transaction(session: Session, *, transaction_id: str, from_: tuple[str, ...]) -> Answered:
    """The records of a transaction by its id."""
    from ggshell.spark.questions.finding import find_transaction

    trails = trails_of(session, from_)
    answer = find_transaction(trails, xid=transaction_id)
    return answered(trails, answer, f"no transaction {transaction_id} is there.")


@command("TRAIL FIND CSN")
def trail_find_csn(session: Session, *, csn: str, from_: tuple[str, ...]) -> Answered:
    """The records of the transaction with a CSN."""
    from ggshell.spark.questions.finding import find_transaction

    trails = trails_of(session, from_)
    return answered(trails, find_transaction(trails, csn=csn_text(trails, csn)), f"no transaction has CSN {csn}.")


def csn_text(trails: Trails, text: str) -> str:
    """A CSN as these trails print it.  Raises UsageError."""
    from ggshell.spark.questions.file_facts import csn_form
    from ggshell.types import Csn

    try:
        return str(csn_form(trails.files, Csn.parse(text)))
    except ValueError:
        raise UsageError(f"{text} is no CSN.", hint="00000000/050056B8, 0/50056B8, or a number") from None


@command("TRAIL FIND TABLE")
def trail_find_row(session: Session, *, table: str, key: str, from_: tuple[str, ...]) -> Answered:
    """The life of a row."""
    from ggshell.spark.questions.finding import find_row

    trails = trails_of(session, from_)
    definition = asking.definition_of(trails, table)
    name = definition.name
    names, values = key_values(key, tuple(definition.columns[index].name for index in definition.identity))
    answer = find_row(trails, name, names, values)
    hidden = ("owner", "table", "io_type", "xid")
    places = [place for place, head in enumerate(answer.columns) if head not in hidden]
    short = answer._replace(
        columns=tuple(answer.columns[place] for place in places),
        rows=[tuple(row[place] for place in places) for row in answer.rows],
    )
    return answered(trails, short, f"no row of {name} has key {key}.")


@command("TRAIL TOP")
def trail_top(
    session: Session,
    *,
    from_: tuple[str, ...],
    number: int = _TOP,
    by: str = "",
    only: str = "",
    since: str = "",
    until: str = "",
) -> Answered:
    """The largest transactions, the busiest tables, the busiest minutes."""
    from ggshell.spark.questions import counts

    trails = trails_of(session, from_)
    span = asking.span_of(session, trails, only, since, until)
    kinds = {
        "TRANSACTIONS": counts.largest_transactions,
        "TABLES": counts.busiest_tables,
        "MINUTES": counts.busiest_minutes,
    }
    if by:
        return answered(trails, kinds[by.upper()](trails, number, span))
    answers = {kind: ask(trails, number, span) for kind, ask in kinds.items()}
    layout = "".join(f"\nTop {number} {kind.lower()}\n{asking.told(answer)}" for kind, answer in answers.items())
    rows = [
        (
            kind.lower(),
            rank,
            _name(kind, answer, row),
            *(row[answer.columns.index(head)] for head in ("records", "bytes")),
        )
        for kind, answer in answers.items()
        for rank, row in enumerate(answer.rows, 1)
    ]
    return Answered(("kind", "rank", "name", "records", "bytes"), rows, layout, asking.unread(trails))


def _name(kind: str, answer: Answer, row: tuple[object, ...]) -> str:
    heads = {"TRANSACTIONS": ("csn", "xid"), "TABLES": ("owner", "table"), "MINUTES": ("minute",)}[kind]
    return (" " if kind == "TRANSACTIONS" else ".").join(str(row[answer.columns.index(head)]) for head in heads)


@command("TRAIL GAPS")
def trail_gaps(session: Session, *, from_: tuple[str, ...], pauses: str = _PAUSE) -> Answered:
    """What is missing; a failure when something is."""
    from ggshell.spark.questions.gaps import State, gap_values, gaps

    trails = trails_of(session, from_)
    found = gaps(trails, interval_seconds(pauses))
    bad = [each for each in found if each.state is State.GAP]
    layout = "\n" + "".join(_block(trail, [each for each in found if each.trail == trail]) for trail in _names(trails))
    errors = (
        (
            TrailError(
                "something is missing or wrong",
                code="GGS-00711",
                where=", ".join(dict.fromkeys(each.trail for each in bad)),
            ),
        )
        if bad
        else ()
    )
    return Answered(_FINDING_HEADS, [gap_values(each) for each in found], layout, (), errors)


def _names(trails: Trails) -> list[str]:
    from ggshell.spark.questions.file_facts import trail_and_number

    return list(dict.fromkeys(trail_and_number(file)[0] for file in trails.files))


def _block(trail: str, found: list[Finding]) -> str:
    rows = [
        (
            str(each.state),
            each.check,
            each.detail,
            "" if each.seqno is None else f"seqno {each.seqno}" + ("" if each.rba is None else f", RBA {each.rba}"),
        )
        for each in found
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, (*widths, 0), strict=True)).rstrip() for row in rows
    ]
    return f"Trail {trail}\n" + "".join(f"  {line}\n" for line in lines)


@command("TRAIL ASOF CSN")
def trail_as_of_csn(session: Session, *, csn: str, table: str, from_: tuple[str, ...]) -> Answered:
    """A table's rows after a transaction."""
    from ggshell.spark.questions.asof import Moment

    trails = trails_of(session, from_)
    return _as_of(trails, table, Moment(csn=csn_text(trails, csn)))


@command("TRAIL ASOF TIME")
def trail_as_of_time(
    session: Session, *, table: str, from_: tuple[str, ...], time: str = "", now: bool = False
) -> Answered:
    """A table's rows at a time."""
    from ggshell.shell.begin import begin_time
    from ggshell.spark.questions.asof import Moment

    return _as_of(
        trails_of(session, from_), table, Moment(time=begin_time("NOW" if now else time, session.clock.now()))
    )


def _as_of(trails: Trails, table: str, moment: Moment) -> Answered:
    from ggshell.spark.questions.asof import as_of
    from ggshell.spark.views import Answer

    definition = asking.definition_of(trails, table)
    found = as_of(trails, definition, moment)
    result = answered(trails, Answer(found.columns, list(found.rows), found.engine, found.seconds))
    notes = list(result.notes)
    if found.older:
        text = (
            f"{found.older:,} of these rows were there before the trail begins;"
            " others that nobody has changed since are not shown: name the trail of an initial load as well"
        )
        notes.append(Note("GGS-00712", text))
    if found.unknown:
        number, column = found.unknown[0]
        text = (
            f"{len(found.unknown):,} values are not known, since no record holds them; the first is {column} of row"
            f" {number + 1}"
        )
        notes.append(Note("GGS-00713", text))
    return result._replace(notes=tuple(notes))
