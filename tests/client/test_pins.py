"""The file of pinned certificates."""

from __future__ import annotations

from pathlib import Path

import pytest

from ggshell.client.pins import Pins
from ggshell.errors import StoreError

ONE, TWO = ":".join(["AB"] * 32), ":".join(["CD"] * 32)


def test_a_pin_is_found_by_host_and_port_with_its_line(tmp_path: Path) -> None:
    pins = Pins(tmp_path / "new")
    assert pins.find("h:1") is None
    pins.add("h:1", ONE)
    pins.add("[::1]:2", TWO)
    assert pins.find("H:1") == (ONE, f"{pins.path}:1")
    assert pins.find("[::1]:2") == (TWO, f"{pins.path}:2")
    assert pins.find("h:2") is None
    assert pins.path.stat().st_mode & 0o777 == 0o600
    assert pins.path.parent.stat().st_mode & 0o777 == 0o700


def test_comments_and_a_missing_last_newline_are_kept(tmp_path: Path) -> None:
    pins = Pins(tmp_path)
    pins.path.write_text(f"# mine\n\nh:1 sha256:{ONE.lower()}")
    pins.add("h:2", TWO)
    assert (pins.find("h:1"), pins.find("h:2")) == ((ONE, f"{pins.path}:3"), (TWO, f"{pins.path}:4"))
    assert pins.path.read_text().startswith("# mine\n\nh:1 ")


def test_a_line_that_is_not_a_pin_is_refused_with_its_place(tmp_path: Path) -> None:
    pins = Pins(tmp_path)
    pins.path.write_text("# mine\nh:1\n")
    with pytest.raises(StoreError) as refused:
        pins.find("h:1")
    assert refused.value.where == f"{pins.path}:2"
