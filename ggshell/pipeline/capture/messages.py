"""Messages of a log in bulk: one buffer with offsets, so that no object is created per message."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages in one buffer: number n is ``data[edges[n]:edges[n + 1]]``. The source defines their meaning."""

    data: bytes
    edges: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.edges) - 1

    def __iter__(self) -> Iterator[bytes]:
        edges = self.edges.tolist()
        for first, end in itertools.pairwise(edges):
            yield self.data[first:end]

    def __getitem__(self, number: int) -> bytes:
        return self.data[int(self.edges[number]) : int(self.edges[number + 1])]

    @classmethod
    def pack(cls, messages: list[bytes]) -> Messages:
        """Combine messages that arrived one by one."""
        sizes = itertools.accumulate(map(len, messages), initial=0)
        edges = np.fromiter(sizes, dtype=np.int64, count=len(messages) + 1)
        return cls(b"".join(messages), edges)

    @classmethod
    def join(cls, parts: list[Messages]) -> Messages:
        """Join parts, in order, into one."""
        if len(parts) == 1:
            return parts[0]
        sizes = [len(part.data) for part in parts]
        counts = [len(part) for part in parts]
        shift = np.repeat(np.cumsum(sizes) - sizes, counts)
        edges = np.empty(len(shift) + 1, dtype=np.int64)
        np.concatenate([part.edges[:-1] for part in parts], out=edges[:-1])
        edges[:-1] += shift.astype(np.int64)
        edges[-1] = sum(sizes)
        return cls(b"".join([part.data for part in parts]), edges)

    def without(self, ids: Container[bytes], place: int) -> Messages:
        """The messages that do not have one of these 4-byte ids at offset ``place``."""
        return Messages.pack([message for message in self if message[place : place + 4] not in ids])
