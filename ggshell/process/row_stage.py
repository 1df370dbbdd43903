"""The stage that works on rows, as Replicat has it: nothing at all where no MAP asks for anything."""

from __future__ import annotations

from collections.abc import Callable

from ggshell.apply.delivery import Delivery
from ggshell.apply.mapping import Mapper, MapRule
from ggshell.apply.row_mapping import RowMapping
from ggshell.columns.environment import Environment
from ggshell.columns.stage import Stage
from ggshell.params import MapStatement
from ggshell.record import ChangeBatch

Work = Callable[[ChangeBatch], ChangeBatch]


def map_rules(maps: tuple[MapStatement, ...]) -> list[MapRule]:
    """The rules of a file's MAP lines."""
    return [MapRule(each.source, each.target, each.keycols, each.ignored, each.clauses) for each in maps]


def replicat_stage(
    maps: tuple[MapStatement, ...], mapper: Mapper, delivery: Delivery, environment: Environment
) -> Work:
    """What stands between trail and delivery; ``environment``: what @GETENV tells."""
    sources = [each.source.lower() for each in maps]
    if not any(each.clauses.active for each in maps) and len(set(sources)) == len(sources):
        return lambda batch: batch
    environment.database()  # asked now, while nothing is on its way
    return Stage(RowMapping(mapper, environment, delivery.flush).programs).run
