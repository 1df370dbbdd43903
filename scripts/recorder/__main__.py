"""``scripts/recording``: plays a tour in a terminal for README and writes it as an animated picture."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from recorder.drawing import draw
from recorder.screen import film
from recorder.terminal import COLUMNS, LINES
from recorder.tour import play

MOST_BYTES = 200_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="recording", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=Path("docs/images/tour.svg"), help="default: %(default)s")
    file: Path = parser.parse_args().file
    recording, private = play()
    session = film(recording, COLUMNS, LINES)
    picture = draw(session, COLUMNS, LINES, "ggshell: a tour")
    found = [word for word in private if word in picture]
    if found:
        print(f"the picture shows words of this machine: {', '.join(found)}", file=sys.stderr)
        return 1
    size = len(picture.encode())
    if size > MOST_BYTES:
        print(f"the picture has {size} bytes, more than {MOST_BYTES}", file=sys.stderr)
        return 1
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(picture, encoding="utf-8")
    print(f"{file}: {size} bytes, {session.seconds:.0f} seconds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
