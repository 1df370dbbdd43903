"""The table of the run ``files``: every kind of file of a home, and the remedies that messages name."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from ggshell.errors import GgsError
from ggshell.files import remedy
from ggshell.home import checkpoint
from ggshell.trail.decode import damaged
from ggshell.trail.reach import RESTORE

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from faultruns import home_files

    return home_files


def test_every_damage_changes_the_file(table: object, tmp_path: Path) -> None:
    """A damage without effect on the file would prove nothing."""
    older = tmp_path / "older"
    older.write_bytes(b"older")
    for name, damage in table.DAMAGES.items():  # type: ignore[attr-defined]
        path = tmp_path / name
        path.write_bytes(b"as it should be")
        damage(path, older, random.Random(1))
        assert not path.is_file() or path.read_bytes() != b"as it should be", name


def test_every_hint_matches_a_remedy_of_the_table(table: object, tmp_path: Path) -> None:
    (tmp_path / "REP1.cpr.previous").write_text("")
    hints = [RESTORE, damaged("ea000000000", 7, "a record").hint, remedy(tmp_path)]
    for path in (tmp_path / "REP1.cpr", tmp_path / "EXT1.cpe"):
        with pytest.raises(GgsError) as raised:
            checkpoint.load(path)
        hints.append(raised.value.hint)
    for hint in hints:
        assert any(re.search(pattern, hint) for pattern, _ in table.REMEDIES), hint  # type: ignore[attr-defined]


def test_every_kind_of_file_with_a_location_has_a_row(table: object) -> None:
    rows = {each.name for each in (*table.FILES, *table.REDO_FILES)}  # type: ignore[attr-defined]
    assert {kind for _, kind in table.PLACES} <= rows  # type: ignore[attr-defined]


def test_the_table_has_every_file_with_every_damage(table: object) -> None:
    names = [str(case) for case in table.cases()]  # type: ignore[attr-defined]
    assert len(names) == len(set(names))
    assert len(names) > 100
    for wanted in (
        "newest trail file, deleted",
        "durable mark, an older copy",
        "checkpoint of Replicat, one bit flipped",
        "trail file of the pump while its reader is within it, deleted",
        "trail file of Extract while it is written and read, zeroed",
        "durable mark of the pump while it is written and read, an older copy",
    ):
        assert wanted in names


def test_a_remedy_counts_only_in_a_message_that_names_the_file(table: object, tmp_path: Path) -> None:
    """Regression: a message about dirprm/dp1.prm in the report of another group counted as a remedy for a lost lock."""
    lock, prm = tmp_path / "dirpcs" / ".REP1.replicat.lock", tmp_path / "dirprm" / "rep1.prm"
    other, own = f"(no parameter file {tmp_path}/dirprm/dp1.prm)", f"{prm}: a parameter is missing"
    told = table.Told  # type: ignore[attr-defined]
    for path, text, named in (
        (lock, other, False),
        (prm, other, False),
        (prm, own, True),
        (lock, f"{lock}: remove it, then start again", True),
    ):
        assert bool(list(table.remedies(told(text, path, path)))) is named, text  # type: ignore[attr-defined]
    wallet = tmp_path / "dirwlt" / "cwallet.sso"
    for text, named in (("restore dirwlt from a backup", True), ("restore dirdat/ea000000001", False)):
        assert bool(list(table.remedies(told(text, wallet, wallet)))) is named, text  # type: ignore[attr-defined]
