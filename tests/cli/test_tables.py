"""The tables of the command line, and the layout of tables that are wider than the terminal."""

from __future__ import annotations

import os
import sys

import pytest

from ggshell.cli.output.tables import aligned, cell_text, render, table_text
from ggshell.cli.results import Listing, Narrowing
from ggshell.cli.results.heartbeats import LagTimes
from ggshell.monitoring.spreads import Spread

WIDE = Listing(("name", "value"), [("first", "x" * 50), ("second", None)], "")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """A terminal of 40 columns, or a pipe (False)."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: bool(request.param), raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((40, 24)))


@pytest.mark.parametrize("terminal", [True], indirect=True)
def test_a_table_wider_than_the_terminal_is_shown_vertically(terminal: None) -> None:
    rows = (f"name  | first\nvalue | {'x' * 50}\n", "name  | second\nvalue | \n")
    wanted = "".join(f"-[ {number} ]-------------------\n{row}" for number, row in enumerate(rows, 1))
    assert render(WIDE, "table") == wanted
    assert table_text(WIDE.heads, WIDE.values) == wanted


@pytest.mark.parametrize("terminal", [True], indirect=True)
def test_a_table_that_fits_is_shown_as_a_table(terminal: None) -> None:
    assert table_text(("name", "number"), [("a", 1)]) == "name  number\n----  ------\na          1\n"
    assert render(Listing(("a",), [(1,)], ""), "table").startswith("+-")


@pytest.mark.parametrize("terminal", [True], indirect=True)
def test_a_vertical_table_shows_full_values_and_a_table_truncates_them(terminal: None) -> None:
    assert "x" * 100 in table_text(("name", "value"), [("a", "x" * 100)])


@pytest.mark.parametrize("terminal", [False], indirect=True)
def test_a_wide_table_in_a_pipe_is_shown_as_a_table(terminal: None) -> None:
    assert render(WIDE, "table").startswith("+-")
    assert table_text(WIDE.heads, WIDE.values).startswith("name    value\n")
    assert table_text(("name", "value"), [("a", "x" * 100)]).endswith("...\n")


@pytest.mark.parametrize("terminal", [True], indirect=True)
@pytest.mark.parametrize("style", ["csv", "markdown"])
def test_data_formats_are_never_shown_vertically(terminal: None, style: str) -> None:
    assert "-[ 1 ]" not in render(WIDE, style)


def test_columns_are_two_spaces_apart_and_lines_have_no_trailing_spaces() -> None:
    assert aligned([("a", "bb"), ("ccc", "")], [False, True]) == ["a    bb", "ccc"]


def test_a_mapping_in_a_cell_is_one_line() -> None:
    assert cell_text({"a": None, "b": "x\ny"}) == "a=NULL, b=x y"


SPREAD = Spread(0, "north", "EXT1 > PUMP1 > REP1 > and more", "total", 7, 0.5, 1.25, 2.0, 3.0)


@pytest.mark.parametrize("terminal", [True], indirect=True)
def test_the_narrow_layouts_of_ggsci_are_vertical_and_complete(terminal: None) -> None:
    times = LagTimes((SPREAD,), "MINUTE")
    assert isinstance(times, Narrowing)
    assert "Path   | EXT1 > PUMP1 > REP1 > and more\n" in times.narrow_layout
    assert "p95    | 1.250\n" in times.narrow_layout
    assert max(map(len, times.layout.splitlines())) > 40
    assert LagTimes((), "MINUTE").narrow_layout == LagTimes((), "MINUTE").layout
