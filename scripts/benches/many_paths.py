"""Many trails into one receiver at once, for its memory.

The connections are those of the senders' own code, all in this process: so many processes would measure the machine.
"""

from __future__ import annotations

import itertools

from benches.ground import wait_until
from benches.memory import peak
from benches.two_homes import TwoHomes, durable_end
from ggshell.clock import SystemClock
from ggshell.home.home import Home
from ggshell.home.identity import ensure_identity
from ggshell.network.addresses import parse_receiver
from ggshell.network.dialing import dial
from ggshell.network.frames import LONGEST_DATA
from ggshell.network.handshake import Sender
from ggshell.network.proof import home_key
from ggshell.network.remote_files import Pace, RemoteTrailFiles
from ggshell.trail.durable import DurableMark
from ggshell.trail.opened import open_file
from ggshell.types import Csn, TrailPosition

WINDOW = 8 << 20
"""More than the receiver lets wait for the disk, so that it is always asked for more than it can take."""


def megabytes_of_many(homes: TwoHomes, source: str, count: int, size: int) -> float:
    """Send so many bytes of a trail's first file as so many trails at once; the largest memory of the service, in MB."""
    file = open_file(homes.trail(source), 0)
    header, data = file.read(file.first, 0), file.read(size, file.first)
    file.close()
    names = ["".join(each) for each in itertools.islice(itertools.product("mnopqrst", "0123456789abcdef"), count)]
    paths = [_opened(homes, name) for name in names]
    try:
        for path in paths:
            path.create(0, header)
        for first in range(0, size, LONGEST_DATA):
            for path in paths:
                path.append(data[first : first + LONGEST_DATA])
        end = TrailPosition(0, len(header) + len(data))
        for path in paths:
            path.flush(b"", DurableMark(end, Csn(1)))
    finally:
        for path in paths:
            path.close()
    for name in names:
        wait_until(f"trail {name} is whole", lambda name=name: durable_end(homes.written(name)) == end)
        homes.written(name).file(0).unlink()
    return peak(homes.service_process())


def _opened(homes: TwoHomes, trail: str) -> RemoteTrailFiles:
    home, clock = Home(homes.source), SystemClock()
    address = parse_receiver(f"wss://127.0.0.1:{homes.port}/services/v2/targets?trail={trail}")
    sender = Sender(ensure_identity(homes.source).id, f"P{trail.upper()}", home_key(home, clock))
    return RemoteTrailFiles(
        dial(address, home, clock), trail, address.trail, sender, None, None, Pace(WINDOW, LONGEST_DATA)
    )
