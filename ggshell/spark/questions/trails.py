"""Trails to ask about, and who answers: what every question of this folder is put through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from ggshell.errors import StatementError
from ggshell.spark import facts, paths
from ggshell.spark.dialect import columns_of, pieces
from ggshell.spark.pushdown import Condition
from ggshell.spark.trail_keys import HomeKeys
from ggshell.spark.views import Answer, Part, TrailView, View
from ggshell.trail.columnar import OnDamage

VIEW = "trail"
"""The name that all asked trails together have in SQL; each alone has its own two characters."""


class Engine(Protocol):
    """Whoever answers a statement about views: ``Engines``, or one of the two in tests."""

    def ask(
        self, question: str, sql: str, views: Sequence[View], told: Callable[[str], None] | None = None
    ) -> Answer: ...

    def ask_in_parts(
        self,
        question: str,
        parts: Sequence[Part],
        schema: pa.Schema,
        sql: str,
        told: Callable[[str], None] | None = None,
    ) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Trails:
    """The files of some trails (``files``, in order), an engine, who hears how far it is, and keys for what is encrypted."""

    files: tuple[str, ...]
    engine: Engine
    told: Callable[[str], None] | None = None
    keys: HomeKeys | None = None

    def ask(
        self,
        name: str,
        sql: str,
        conditions: Sequence[Condition] = (),
        more: Sequence[View] = (),
        *,
        tells_damage: bool = False,
    ) -> Answer:
        """The answer to a statement about the view ``trail``, and about each trail by its name.

        ``conditions`` only let the reader leave out what the statement leaves out as well; ``more`` are views beside it;
        ``tells_damage``: damage is a row with ``fault``, not an error.
        """
        every = tuple(facts.SCHEMA.names if tells_damage else facts.COLUMNS)
        damage = OnDamage.TELL if tells_damage else OnDamage.RAISE

        def asked(columns: tuple[str, ...]) -> Answer:
            views = [TrailView(*view, columns, tuple(conditions), damage, keys=self.keys) for view in self._meant(sql)]
            return self.engine.ask(name, sql, [*views, *more], self.told)

        columns = columns_of(sql, every) or ("rba",)
        try:
            return asked(columns)
        except StatementError:
            if columns == every:
                raise
            return asked(every)  # the refusal then knows every column that there is

    def ask_in_parts(
        self, name: str, part: str, schema: pa.Schema, sql: str, conditions: Sequence[Condition] = ()
    ) -> Answer:
        """The answer to a statement about ``parts``: what ``part`` answers about each slice of the view ``trail``."""
        columns = columns_of(part, facts.COLUMNS) or ("rba",)
        view = TrailView(VIEW, self.files, columns, tuple(conditions), keys=self.keys)
        return self.engine.ask_in_parts(name, [Part(view, part)], schema, sql, self.told)

    def _meant(self, sql: str) -> list[tuple[str, tuple[str, ...]]]:
        """The views that a statement can mean, with their files."""
        words = {piece.strip('"').lower() for piece in pieces(sql)}
        return [each for each in {VIEW: self.files, **self._by_name()}.items() if each[0].lower() in words]

    def _by_name(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for file in self.files:
            prefix = Path(file).name[:2]
            found[prefix] = (*found.get(prefix, ()), file)
        return found


def trails(
    texts: Sequence[str],
    base: Path,
    engine: Engine,
    told: Callable[[str], None] | None = None,
    keys: HomeKeys | None = None,
) -> Trails:
    """The trails that texts mean.  Raises NotFoundError where there is none, UsageError for a mixed folder."""
    files = dict.fromkeys(file for text in texts for file in paths.trail_files(text.strip(), base))
    return Trails(tuple(files), engine, told, keys)
