"""A client that writes random changes of a table to a trail, and knows what a lake must contain after them."""

from __future__ import annotations

import itertools
import random

from lakes import PEOPLE, Lake, key_update, person

from ggshell.types import TrailPosition


class Ledger:
    """What a client has written: the rows of the table by id, and the number of changes."""

    def __init__(self, lake: Lake, seed: int) -> None:
        self.ids: list[int] = []
        self.changes = 0
        self._lake, self._random = lake, random.Random(seed)
        self._next = itertools.count(1)

    def write(self) -> TrailPosition:
        """Write a transaction of inserts and changes of keys."""
        rows = []
        for _ in range(self._random.randint(1, 20)):
            number = next(self._next)
            if self.ids and self._random.random() < 0.5:
                place = self._random.randrange(len(self.ids))
                rows.append(key_update(PEOPLE, self.ids[place], number))
                self.ids[place] = number
            else:
                rows.append(person(number, "Ada", "1"))
                self.ids.append(number)
        self.changes += len(rows)
        return self._lake.write(rows)

    def agrees(self, ids: list[int], logged: list[int]) -> None:
        """Fail unless a table has the ledger's rows, and the log each change once. ``logged``: the positions in the log."""
        assert sorted(ids) == sorted(self.ids)
        assert len(logged) == len(set(logged)) == self.changes
