"""DDL, DDLERROR, DDLSUBST and DDLOPTIONS in a file, and what they decide about statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.errors import ParameterError
from ggshell.parameters.ddl_rules import DdlOptions
from ggshell.parameters.loading import load_extract, load_replicat
from ggshell.parameters.process_parameters import ExtractParameters, ReplicatParameters
from ggshell.record.ddl import DdlObject, DdlStatement
from ggshell.record.ddl_responses import DdlAnswer, DdlResponse
from ggshell.record.ddl_rules import DdlRules, DdlScope, scope_of
from ggshell.types import TableName

ORDERS = TableName("shop", "orders")
MAPPED, UNMAPPED, OTHER = DdlScope.MAPPED, DdlScope.UNMAPPED, DdlScope.OTHER


def statement(tag: str, text: str = "", kind: str = "", name: TableName = ORDERS, table: TableName | None = ORDERS):
    text = text or f"{tag} shop.orders /* from the app */"
    return DdlStatement(tag, text, (DdlObject(kind or tag.partition(" ")[2], name, table),))


CREATE = statement("CREATE TABLE", "create table shop.orders (id int, note text default 'secret') -- ticket 12")
INDEX = statement("CREATE INDEX", "create index i on shop.orders (id)", name=TableName("shop", "i"))
RENAMING = statement("ALTER TABLE", "alter table shop.orders rename column a to b", "TABLE COLUMN")
COMMENT = statement("COMMENT", "comment on table shop.orders is 'rename it'", "TABLE")
SCHEMA = statement("CREATE SCHEMA", "create schema shop", name=TableName("", "shop"), table=None)
GRANT = DdlStatement("GRANT", "grant select on all tables in schema shop to app")


def extract(folder: Path, *lines: str) -> ExtractParameters:
    path = folder / "ext1.prm"
    path.write_text("\n".join(["EXTRACT ext1", *lines, "TABLE shop.*;", ""]))
    return load_extract(path)


def replicat(folder: Path, *lines: str) -> ReplicatParameters:
    path = folder / "rep1.prm"
    path.write_text("\n".join(["REPLICAT rep1", *lines, "MAP shop.*, TARGET store.*;", ""]))
    return load_replicat(path)


def rules(folder: Path, line: str) -> DdlRules:
    found = extract(folder, line).ddl
    assert found is not None
    return found


def test_an_extract_captures_no_ddl_by_default_and_a_replicat_applies_all(tmp_path: Path) -> None:
    assert extract(tmp_path).ddl is None
    assert replicat(tmp_path).ddl.takes(GRANT, OTHER)
    assert not replicat(tmp_path, "DDL EXCLUDE ALL").ddl.takes(CREATE, MAPPED)
    assert rules(tmp_path, "DDL").takes(GRANT, OTHER)


@pytest.mark.parametrize(
    ("found", "scope"),
    [(CREATE, MAPPED), (INDEX, MAPPED), (SCHEMA, OTHER), (GRANT, OTHER), (RENAMING, MAPPED)],
)
def test_a_scope_is_decided_by_the_object_or_its_table(found: DdlStatement, scope: DdlScope) -> None:
    assert scope_of(found, ORDERS.__eq__) is scope
    assert scope_of(found, lambda name: False) is (UNMAPPED if scope is MAPPED else OTHER)


@pytest.mark.parametrize(
    ("line", "taken", "left"),
    [
        ("DDL INCLUDE OPTYPE create", [CREATE, INDEX, SCHEMA], [RENAMING, COMMENT, GRANT]),
        ("DDL INCLUDE OBJTYPE 'table'", [CREATE, RENAMING, COMMENT], [INDEX, SCHEMA, GRANT]),
        ("DDL INCLUDE OPTYPE RENAME", [RENAMING], [CREATE, COMMENT]),
        ("DDL INCLUDE OPTYPE ALTER", [RENAMING], [CREATE]),
        ("DDL INCLUDE OBJNAME shop.ord*", [CREATE, INDEX, RENAMING], [SCHEMA, GRANT]),
        ('DDL INCLUDE OBJNAME "shop.?"', [INDEX], [CREATE]),
        ('DDL INCLUDE OBJNAME "shop"."ORDERS"', [], [CREATE, INDEX]),
        ("DDL INCLUDE OBJNAME *.*", [CREATE, INDEX], [SCHEMA, GRANT]),
        ("DDL INCLUDE ALLOWEMPTYOWNER OBJNAME *.*", [CREATE, SCHEMA], [GRANT]),
        ("DDL INCLUDE ALLOWEMPTYOBJECT OBJNAME *.*", [CREATE, GRANT], [SCHEMA]),
        ("DDL INCLUDE INSTR 'SECRET'", [CREATE], [INDEX]),
        ("DDL INCLUDE INSTR 'ticket'", [], [CREATE]),
        ("DDL INCLUDE INSTRCOMMENTS 'Ticket 1'", [CREATE], [INDEX]),
        ("DDL INCLUDE INSTRCOMMENTSWORDS '12 ticket'", [CREATE], [INDEX]),
        ("DDL INCLUDE INSTRCOMMENTSWORDS '1'", [], [CREATE]),
        ("DDL INCLUDE INSTRWORDS 'orders \"rename column\"'", [RENAMING], [COMMENT, CREATE]),
        ("DDL INCLUDE ALL, EXCLUDE OBJTYPE INDEX, EXCLUDE INSTR 'secret'", [RENAMING, GRANT], [INDEX, CREATE]),
        ("DDL EXCLUDE OPTYPE CREATE, INCLUDE ALL", [RENAMING], [CREATE]),
        ("DDL INCLUDE OPTYPE CREATE OBJTYPE INDEX, INCLUDE OPTYPE COMMENT", [INDEX, COMMENT], [CREATE]),
    ],
)
def test_options_select_statements(
    tmp_path: Path, line: str, taken: list[DdlStatement], left: list[DdlStatement]
) -> None:
    found = rules(tmp_path, line)
    assert [each for each in (*taken, *left) if found.takes(each, scope_of(each, ORDERS.__eq__))] == taken


def test_scopes_select_statements(tmp_path: Path) -> None:
    for word in DdlScope:
        found = rules(tmp_path, f"DDL INCLUDE {word}")
        assert [scope for scope in DdlScope if found.takes(CREATE, scope)] == [word]


def test_objname_in_a_replicat_means_the_target_of_a_mapped_object(tmp_path: Path) -> None:
    found = replicat(tmp_path, "DDL INCLUDE MAPPED OBJNAME store.*, INCLUDE UNMAPPED OBJNAME shop.*").ddl
    assert found.takes(CREATE, MAPPED, TableName("store", "orders"))
    assert not found.takes(CREATE, MAPPED, TableName("other", "orders"))
    assert found.takes(CREATE, UNMAPPED)


@pytest.mark.parametrize(
    ("state", "found", "answer"),
    [
        ("42P07", INDEX, DdlAnswer(DdlResponse.IGNORE)),
        ("42P07", CREATE, DdlAnswer(DdlResponse.DISCARD, 3, 5.0)),
        ("42701", CREATE, DdlAnswer(DdlResponse.IGNORE, 10, 60.0)),
        ("23505", CREATE, DdlAnswer(DdlResponse.DISCARD, 3, 5.0)),
        ("23505", SCHEMA, DdlAnswer(DdlResponse.ABEND)),
    ],
)
def test_the_first_fitting_ddlerror_answers_and_default_comes_last(
    tmp_path: Path, state: str, found: DdlStatement, answer: DdlAnswer
) -> None:
    errors = replicat(
        tmp_path,
        "DDLERROR DEFAULT DISCARD, RETRYOP, MAXRETRIES 3, RETRYDELAY 5 INCLUDE OBJTYPE 'TABLE'",
        "DDLERROR 42P07 IGNORE INCLUDE OBJTYPE 'INDEX'",
        "DDLERROR 1430 IGNORE RETRYOP IGNOREMISSINGOBJECTS",
    ).ddl_errors
    assert errors.answer(state, found, MAPPED) == answer
    assert errors.ignores_missing


def test_an_extract_skips_statements_after_its_start(tmp_path: Path) -> None:
    assert extract(tmp_path, "DDLERROR RESTARTSKIP 5").ddl_errors.skips_at_start == 5


def test_texts_are_substituted_in_the_order_of_the_file(tmp_path: Path) -> None:
    lines = (
        "DDLSUBST 'SECRET' WITH 'it''s'",
        "DDLSUBST \"it's\" WITH ''",
        "DDLSUBST int WITH bigint INCLUDE OPTYPE ALTER",
    )
    found = extract(tmp_path, *lines).ddl_substitutions.of(CREATE, MAPPED)
    assert found.text == "create table shop.orders (id int, note text default '') -- ticket 12"
    assert extract(tmp_path).ddl_substitutions.of(CREATE, MAPPED) is CREATE


@pytest.mark.parametrize(("when", "end"), [("BEFORE", ""), ("AFTER", ""), ("", " -- note 12")])
def test_comments_are_removed_before_or_after_substitution(tmp_path: Path, when: str, end: str) -> None:
    lines = ["DDLSUBST 'ticket' WITH 'note'", *([f"DDLOPTIONS REMOVECOMMENTS {when}"] if when else [])]
    found = replicat(tmp_path, *lines).ddl_substitutions.of(CREATE, MAPPED)
    assert found.text == f"create table shop.orders (id int, note text default 'secret'){end}"


def test_options_are_read_and_later_lines_apply(tmp_path: Path) -> None:
    lines = (
        'DDLOPTIONS REPORT, IGNOREREPLICATES, MAPSESSIONSCHEMA Shop TARGET "Store"',
        "DDLOPTIONS NOREPORT, GETAPPLOPS, IGNOREMAPPING, NOMAPDERIVED, MAPSCHEMAS, GETREPLICATES",
    )
    found = extract(tmp_path, *lines).ddl_options
    assert found == DdlOptions(False, False, False, (("shop", "Store"),), True, True)


@pytest.mark.parametrize(
    ("lines", "code", "message"),
    [
        (["DDL", "DDL INCLUDE ALL"], "OGG-10143", "only one DDL"),
        (["DDL EXCLUDE OPTYPE DROP"], "OGG-10143", "requires an INCLUDE"),
        (["DDL INCLUDE OBJNAME orders"], "OGG-10143", "orders is not a valid name"),
        (["DDL INCLUDE INSTR ''"], "OGG-10143", "the text of INSTR is empty"),
        (["DDL INCLUDE ALL SOURCECATALOG pdb1"], "GGS-00103", "no containers"),
        (["DDL INCLUDE ALL EVENTACTIONS (STOP)"], "GGS-00103", "cannot trigger"),
        (["DDLOPTIONS IGNOREAPPLOPS, REPORT"], "GGS-00103", "only the statements of applications"),
        (["DDL AUTOSCHEMA"], "GGS-00103", "between MySQL and Oracle"),
        (["DDLERROR nonsense IGNORE"], "OGG-10143", "nonsense is not a valid SQLSTATE"),
        (["DDLERROR DEFAULT IGNORE EXCLUDE OPTYPE DROP"], "OGG-10143", "requires an INCLUDE"),
        (["DDLSUBST '' WITH 'x'"], "OGG-10143", "is empty"),
    ],
)
def test_lines_that_are_not_valid_are_refused_with_their_place(
    tmp_path: Path, lines: list[str], code: str, message: str
) -> None:
    with pytest.raises(ParameterError, match=message) as refusal:
        extract(tmp_path, *lines)
    assert (refusal.value.code, refusal.value.line) == (code, len(lines) + 1)
