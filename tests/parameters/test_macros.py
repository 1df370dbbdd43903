"""INCLUDE, OBEY and macros: the expanded lines of a file, and where errors are reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from amounts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from ggshell.errors import ParameterError
from ggshell.parameters.lines import logical_lines, parse_all, parse_parameters


def texts(text: str, **files: str) -> list[str]:
    errors: list[ParameterError] = []
    found = logical_lines(text, "rep1.prm", errors, lambda name, _: (name, files[name]) if name in files else None)
    assert not errors, errors[0]
    return [raw.text for raw in found]


def wrong(text: str) -> ParameterError:
    errors: list[ParameterError] = []
    logical_lines(text, "rep1.prm", errors, lambda *_: None)
    assert errors
    return errors[0]


def test_a_macro_without_values_expands_to_its_lines() -> None:
    text = (
        "MACRO #login\nBEGIN\nUSERIDALIAS south\nDISCARDFILE ./dirrpt/r.dsc\nEND;\nREPLICAT rep1\n#login\n#login ()\n"
    )
    assert texts(text) == ["REPLICAT rep1", *["USERIDALIAS south", "DISCARDFILE ./dirrpt/r.dsc"] * 2]


def test_values_replace_parameters_but_not_in_quotes() -> None:
    text = (
        "MACRO #Map PARAMS (#from, #TO) BEGIN MAP #from, TARGET #to, FILTER (@STREQ (a, '#from')); END;\n"
        "#map (a.t, b.t)\n"
    )
    assert texts(text) == ["MAP a.t, TARGET b.t, FILTER (@STREQ (a, '#from'))"]


def test_calls_nest_and_lists_keep_their_commas() -> None:
    text = (
        "MACRO #cols PARAMS (#list) BEGIN COLMAP (USEDEFAULTS, #list) END;\n"
        "MACRO #both PARAMS (#t, #l) BEGIN MAP a.#t, TARGET b.x, #cols ({#l}); END;\n"
        "#both (t, {x = @IF (a > 1, 'y,', z), w = v})\n"
    )
    assert texts(text) == ["MAP a.t, TARGET b.x, COLMAP (USEDEFAULTS, x = @IF (a > 1, 'y,', z), w = v)"]


def test_a_call_can_span_lines_and_be_part_of_a_statement() -> None:
    text = "MACRO #key PARAMS (#k) BEGIN KEYCOLS (#k) END;\nMAP a.t, TARGET b.t,\n#key (\n  {id,\n  part}\n);\n"
    assert texts(text) == ["MAP a.t, TARGET b.t, KEYCOLS (id, part)"]


def test_the_macro_character_can_be_changed() -> None:
    text = "MACROCHAR $\nMACRO $m BEGIN USERIDALIAS x END;\n$m\nMAP a.t#1, TARGET b.t#1;\n"
    assert texts(text) == ["USERIDALIAS x", "MAP a.t#1, TARGET b.t#1"]


def test_included_files_are_inserted_where_they_are_named() -> None:
    files = {"lib.mac": "MACRO #u BEGIN USERIDALIAS x END;\nINCLUDE more.inc", "more.inc": "GETTRUNCATES -- deep\n"}
    assert texts("REPLICAT r\ninclude lib.mac;\n#u\nOBEY 'more.inc'\n", **files) == [
        "REPLICAT r",
        "GETTRUNCATES",
        "USERIDALIAS x",
        "GETTRUNCATES",
    ]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("REPLICAT r\n#unknown ()\n", "rep1.prm:2:1", "macro #unknown is not defined"),
        ("MACRO #m PARAMS (#a) BEGIN x #a END;\nTABLE a.b, #m;\n", "rep1.prm:2:12", "macro #m takes 1 value, not 0"),
        ("MACRO #m BEGIN #m END;\n#m\n", "rep1.prm:1:16", "macro #m calls itself, or its expansion is too large"),
        ("MACRO m BEGIN x END;\n", "rep1.prm:1:1", "the macro definition is not valid"),
        ("MACRO #m BEGIN x\n", "rep1.prm:1:1", "the macro definition is not valid"),
        ("\nINCLUDE nowhere.inc\n", "rep1.prm:2:9", "INCLUDE file nowhere.inc does not exist"),
    ],
)
def test_a_missing_file_or_macro_is_reported_at_its_position(text: str, place: str, message: str) -> None:
    error = wrong(text)
    assert (error.where, error.message) == (place, message)


def test_a_similar_macro_name_is_suggested() -> None:
    assert "#logon" in wrong("MACRO #logon BEGIN x END;\n#login\n").hint


def test_a_file_that_includes_itself_is_refused() -> None:
    errors: list[ParameterError] = []
    logical_lines("INCLUDE a", "a", errors, lambda name, _: (name, "INCLUDE a"))
    assert "more than 16 files deep" in errors[0].message


def test_files_are_found_beside_the_file_and_in_the_home_and_errors_name_the_inner_file(tmp_path: Path) -> None:
    folder = tmp_path / "dirprm"
    folder.mkdir()
    (folder / "beside.inc").write_text("GETTRUNCATES\n")
    (tmp_path / "home.inc").write_text("\nGROUPTRANSOPS many\n")
    path = folder / "rep1.prm"
    path.write_text("REPLICAT rep1\nINCLUDE beside.inc\nINCLUDE ./home.inc\nMAP a.*, TARGET b.*;\n")
    with pytest.raises(ParameterError) as caught:
        parse_parameters(path.read_text(), path, "Replicat")
    assert caught.value.where == f"{tmp_path}/home.inc:2:15"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("REPLICAT r\nMAP a.b,\n  TARGT c.d;\nGROUPTRANSOPS &\n  many\n", ["rep1.prm:3:3", "rep1.prm:5:3"]),
        (
            "MACRO #m PARAMS (#n)\nBEGIN\n  GROUPTRANSOPS #n\n  WONDER\nEND;\n#m (\n  many)\n",
            ["rep1.prm:7:3", "rep1.prm:4:3"],
        ),
        ("MAP a.b, TARGET c.d\nMAP a.c, TARGET c.e;\nUSERIDALIS x\n", ["rep1.prm:1:20", "rep1.prm:3:1"]),
        ("MAP a.b, TARGET c.d; MAP a.c, TARGTE c.e;\n", ["rep1.prm:1:31"]),
        ("REPLICAT r\nTABLEEXCLUDE a.b\nUSERID\n", ["rep1.prm:2:1", "rep1.prm:3:7"]),
    ],
)
def test_every_error_is_reported_with_its_line_and_column(text: str, places: list[str]) -> None:
    _, errors = parse_all(text, Path("rep1.prm"), "Replicat")
    assert [error.where for error in errors] == places


def test_an_error_in_a_macro_names_the_call() -> None:
    _, errors = parse_all("MACRO #m BEGIN WONDER END;\nMACRO #o BEGIN #m END;\n  #o\n", Path("r.prm"), "Replicat")
    assert (errors[0].where, "in macro #o, called at r.prm:3:3" in errors[0].hint) == ("r.prm:1:16", True)


@pytest.mark.slow
def test_endless_macro_expansion_is_stopped() -> None:
    text = "".join(f"MACRO #m{n} PARAMS (#a) BEGIN #m{n + 1} (#a #a) #m{n + 1} (#a) END;\n" for n in range(40))
    errors: list[ParameterError] = []
    logical_lines(f"{text}MACRO #m40 PARAMS (#a) BEGIN #a END;\n#m0 (x)\n", "x.prm", errors)
    assert errors


@settings(max_examples=examples(200))
@given(
    st.lists(
        st.sampled_from(
            ["MACRO #m", "PARAMS (#a)", "BEGIN", "END;", "#m", "(", ")", "{x,", "}", "'#m", "#", "TABLE", ";"]
        )
    )
)
def test_any_text_gives_lines_or_errors(words: list[str]) -> None:
    errors: list[ParameterError] = []
    for joint in (" ", "\n"):
        logical_lines(joint.join(words), "x.prm", errors, lambda *_: None)
