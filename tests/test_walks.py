"""scripts/walks counts the files that a piece of work enters."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from walking.trace import Tracer, Walk, pieces_of, traced_run

from ggshell.language.pages import argument
from ggshell.quantities import read_size, read_weekday


@pytest.fixture(autouse=True)
def computes_again() -> None:
    """A result that is remembered enters no file."""
    argument.cache_clear()


def test_a_walk_counts_each_file_once_and_each_change_of_file() -> None:
    tracer = Tracer()
    with tracer.on():
        read_weekday("FRIDAY")
        argument("EXTSEQNO")
        read_size("4M")
    walk = Walk(tuple(tracer.pieces[0]))
    assert walk.path == ("quantities.py", "language/pages.py", "quantities.py")
    assert walk.files == ["quantities.py", "language/pages.py"]
    assert walk.hops == 3


def test_a_divider_begins_a_piece_with_each_call() -> None:
    tracer = Tracer(divider=("quantities.py", "read_size"))
    with tracer.on():
        argument("EXTSEQNO")
        read_size("4M")
        read_size("5M")
        argument("EXTRBA")
    assert tracer.pieces == [["language/pages.py"], ["quantities.py"], ["quantities.py", "language/pages.py"]]


def test_within_counts_only_the_files_of_that_function() -> None:
    tracer = Tracer(within=("quantities.py", "read_weekday"))
    with tracer.on():
        argument("EXTSEQNO")
        read_weekday("FRIDAY")
        argument("EXTRBA")
    assert tracer.pieces == [[], ["quantities.py"]]


def test_the_import_of_a_module_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ggshell.logdump.filters", raising=False)
    tracer = Tracer()
    with tracer.on():
        import ggshell.logdump.filters  # noqa: F401
    assert tracer.pieces == [[]]


def test_the_pieces_of_a_run_are_saved(tmp_path: Path) -> None:
    result = tmp_path / "pieces.json"
    assert traced_run(Tracer(), lambda: int(read_size("3")), result) == 3
    pieces, modules = pieces_of(result)
    assert pieces == [["quantities.py"]]
    assert modules > 2
