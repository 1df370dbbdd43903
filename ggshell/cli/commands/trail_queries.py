"""TRAIL SQL, COUNT, FIND, TOP, GAPS and ASOF: queries about the contents of trails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ggshell.cli import trail_queries as asking
from ggshell.cli.output.tables import aligned
from ggshell.cli.registry import command
from ggshell.cli.results import Listing, Note
from ggshell.cli.session import Session
from ggshell.cli.trail_queries import answered, trails_of
from ggshell.cli.trails import trail_places
from ggshell.errors import NotFoundError, TrailError, UsageError
from ggshell.language.values import split_list
from ggshell.plurals import counted
from ggshell.record.name_patterns import is_name_pattern

if TYPE_CHECKING:
    from ggshell.query.queries.asof import Moment
    from ggshell.query.queries.gaps import Stand, TrailFinding
    from ggshell.query.queries.trails import QueriedTrails
    from ggshell.query.views import QueryAnswer


def key_values(body: str, columns: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
    """Return the columns and their values, in the order of ``columns``.

    Raises UsageError unless each has exactly one value.
    """
    parts = [part.strip() for part in split_list(body.strip()[1:-1]) if part.strip()]
    named: dict[str, str | None] = {}
    for place, part in enumerate(parts):
        name, equals, value = _parted(part)
        if not equals:
            name, value = columns[place] if place < len(columns) else part, part
        named[_spelled(name, columns)] = _value(value)
    if set(named) != set(columns) or len(parts) != len(columns):
        raise UsageError(f"{body} does not match the key ({', '.join(columns)})", hint=f"use KEY ({columns[0]} = 1 …)")
    return columns, tuple(named[name] for name in columns)


def _parted(part: str) -> tuple[str, str, str]:
    """Split a part into column, ``=`` and value; column and ``=`` are empty if there is only a value."""
    if part[0] == "'":
        return "", "", part
    if part[0] == '"' and '"' in part[1:]:
        end = part.index('"', 1) + 1
        rest = part[end:].lstrip()
        return (part[:end], "=", rest[1:].strip()) if rest.startswith("=") else ("", "", part)
    name, equals, value = part.partition("=")
    return name.strip(), equals, value.strip()


def _spelled(name: str, columns: tuple[str, ...]) -> str:
    """Find the column that a name means; case matters only if a column matches exactly."""
    plain = name.strip('"')
    if plain in columns:
        return plain
    return next((column for column in columns if column.lower() == plain.lower()), plain)


def _value(text: str) -> str | None:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].replace(text[0] * 2, text[0])
    return None if text.upper() == "NULL" else text


_TOP = 10
_PAUSE = 3600.0
_FINDING_HEADS = ("check", "state", "trail", "seqno", "rba", "csn", "detail")


@command("TRAIL SQL")
def trail_sql(session: Session, *, sql: str, from_: tuple[str, ...]) -> Listing:
    """Run a SELECT on trails."""
    trails = trails_of(session, from_)
    return answered(trails, trails.ask("TRAIL SQL", sql))


@command("TRAIL COUNT")
def trail_count(
    session: Session, *, from_: tuple[str, ...], by: str = "", only: str = "", since: str = "", until: str = ""
) -> Listing:
    """Count records by table and operation, or by the dimension of BY."""
    from ggshell.query.queries import counts

    trails = trails_of(session, from_)
    answer = counts.count(trails, by.upper(), asking.span_of(session, trails, only, since, until))
    result = answered(trails, answer)
    return result._replace(layout=result.layout + _sums(answer))


def _sums(answer: QueryAnswer) -> str:
    place = answer.columns.index("records")
    records, size, begins = (sum(row[place + more] or 0 for row in answer.rows) for more in range(3))
    begun = f"{counted(begins, 'transaction')} {'begins' if begins == 1 else 'begin'} in it"
    return f"{counted(records, 'record')}, {counted(size, 'byte')} of data, {begun}\n"


@command("TRAIL FIND TRANSACTION")
def trail_find_transaction(session: Session, *, transaction_id: str, from_: tuple[str, ...]) -> Listing:
    """Find the records of a transaction by its XID."""
    from ggshell.query.queries.finding import find_transaction

    trails = trails_of(session, from_)
    answer = find_transaction(trails, xid=transaction_id)
    return answered(trails, answer, f"transaction {transaction_id} was not found.")


@command("TRAIL FIND CSN")
def trail_find_csn(session: Session, *, csn: str, from_: tuple[str, ...]) -> Listing:
    """Find the records of the transaction with a CSN."""
    from ggshell.query.queries.finding import find_transaction

    trails = trails_of(session, from_)
    return answered(trails, find_transaction(trails, csn=csn_text(trails, csn)), f"no transaction has CSN {csn}.")


def csn_text(trails: QueriedTrails, text: str) -> str:
    """Format a CSN as these trails print it. Raises UsageError."""
    from ggshell.query.queries.file_facts import csn_form
    from ggshell.types import Csn

    try:
        return str(csn_form(trails.files, Csn.parse(text)))
    except ValueError:
        raise UsageError(f"{text} is not a valid CSN.", hint="use 00000000/050056B8, 0/50056B8, or a number") from None


@command("TRAIL FIND DDL")
def trail_find_ddl(session: Session, *, object_name: str, from_: tuple[str, ...]) -> Listing:
    """Find the DDL statements on an object."""
    from ggshell.query.queries.finding import find_ddl

    if not is_name_pattern(object_name):
        raise UsageError(f"{object_name} is not a valid name", hint="write schema.name; * and ? are wildcards")
    trails = trails_of(session, from_)
    return answered(trails, find_ddl(trails, object_name), f"no DDL statement on {object_name} was found.")


@command("TRAIL FIND TABLE")
def trail_find_row(session: Session, *, table: str, key: str, from_: tuple[str, ...]) -> Listing:
    """Show the full history of a row."""
    from ggshell.query.queries.finding import find_row

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
) -> Listing:
    """List the largest transactions, the busiest tables, or the busiest minutes."""
    from ggshell.query.queries import counts

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
    layout = "".join(f"\nTop {number} {kind.lower()}\n{asking.answer_text(answer)}" for kind, answer in answers.items())
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
    return Listing(("kind", "rank", "name", "records", "bytes"), rows, layout, asking.unread(trails))


def _name(kind: str, answer: QueryAnswer, row: tuple[object, ...]) -> str:
    heads = {"TRANSACTIONS": ("csn", "xid"), "TABLES": ("owner", "table"), "MINUTES": ("minute",)}[kind]
    return (" " if kind == "TRANSACTIONS" else ".").join(str(row[answer.columns.index(head)]) for head in heads)


@command("TRAIL GAPS")
def trail_gaps(session: Session, *, from_: tuple[str, ...], pauses: float = _PAUSE) -> Listing:
    """Check trails for gaps; the command fails if something is missing or wrong."""
    from ggshell.query.queries.gaps import TrailState, gap_values, gaps

    trails = _trails_with_files(session, from_)
    found = gaps(trails, float(pauses), _stands(session, trails))
    bad = [each for each in found if each.state is TrailState.GAP]
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
    return Listing(_FINDING_HEADS, [gap_values(each) for each in found], layout, (), errors)


def _trails_with_files(session: Session, texts: tuple[str, ...]) -> QueriedTrails:
    """Return the named trails.

    Raises TrailError for a trail that lost all its files, NotFoundError for one without files.
    """
    from ggshell.trail.name import TrailName
    from ggshell.trail.reach import lost_end

    try:
        return trails_of(session, texts)
    except NotFoundError:
        for text in texts:
            path = session.home.resolve(text)
            lost = lost_end(TrailName(path.parent, path.name)) if len(path.name) == 2 else None
            if lost is not None:
                raise lost from None
        raise


def _stands(session: Session, trails: QueriedTrails) -> list[Stand]:
    """The groups of the home that read or write these trails, and whether each can continue from its position."""
    from ggshell.query.queries.gaps import Stand
    from ggshell.trail.name import TrailName
    from ggshell.trail.reach import unreachable

    asked = {(session.home.resolve(trail).resolve(), trail) for trail in _names(trails)}
    return [
        Stand(trail, place.group, unreachable(TrailName.parse(place.trail, session.home.root), place.position))
        for place in trail_places(session.home)
        for path, trail in sorted(asked)
        if session.home.resolve(place.trail).resolve() == path
    ]


def _names(trails: QueriedTrails) -> list[str]:
    from ggshell.query.queries.file_facts import trail_and_number

    return list(dict.fromkeys(trail_and_number(file)[0] for file in trails.files))


def _block(trail: str, found: list[TrailFinding]) -> str:
    rows = [
        (
            str(each.state),
            each.check,
            each.detail,
            "" if each.seqno is None else f"seqno {each.seqno}" + ("" if each.rba is None else f", RBA {each.rba}"),
        )
        for each in found
    ]
    return f"Trail {trail}\n" + "".join(f"  {line}\n" for line in aligned(rows))


@command("TRAIL ASOF CSN")
def trail_as_of_csn(session: Session, *, csn: str, table: str, from_: tuple[str, ...]) -> Listing:
    """Show a table's rows after a transaction."""
    from ggshell.query.queries.asof import Moment

    trails = trails_of(session, from_)
    return _as_of(trails, table, Moment(csn=csn_text(trails, csn)))


@command("TRAIL ASOF TIME")
def trail_as_of_time(
    session: Session, *, table: str, from_: tuple[str, ...], time: str = "", now: bool = False
) -> Listing:
    """Show a table's rows at a time."""
    from ggshell.cli.begin import begin_time
    from ggshell.query.queries.asof import Moment

    return _as_of(
        trails_of(session, from_), table, Moment(time=begin_time("NOW" if now else time, session.clock.now()))
    )


def _as_of(trails: QueriedTrails, table: str, moment: Moment) -> Listing:
    from ggshell.query.queries.asof import as_of
    from ggshell.query.views import QueryAnswer

    definition = asking.definition_of(trails, table)
    found = as_of(trails, definition, moment)
    result = answered(trails, QueryAnswer(found.columns, list(found.rows), found.engine, found.seconds))
    notes = list(result.notes)
    if found.older:
        text = (
            f"{found.older:,} of these rows existed before the trail began;"
            " other unchanged rows are not shown: specify the trail of an initial load as well"
        )
        notes.append(Note("GGS-00712", text))
    if found.unknown:
        number, column = found.unknown[0]
        text = (
            f"{len(found.unknown):,} values are unknown because no record contains them; the first is {column} of row"
            f" {number + 1}"
        )
        notes.append(Note("GGS-00713", text))
    return result._replace(notes=tuple(notes))
