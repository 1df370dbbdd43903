"""scripts/recording draws a terminal session as an animated SVG without scripts; docs/ has such a picture."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from recorder.drawing import HOLD, draw
from recorder.screen import Recording, film

COLUMNS, LINES = 20, 4
SESSION: Recording = [
    (0.0, b"$ "),
    (1.0, b"l"),
    (1.2, b"s"),
    (2.0, b"\r\n\x1b[1;36ma < b\x1b[0m  & c\r\n"),
    (2.01, b"busy 1"),
    (3.0, b"\rbusy 2"),
    (4.0, b"\r\x1b[K\x1b[7mready\x1b[0m\r\n"),
    (6.0, b"$ exit\r\n\xe2\x80\xa6\r\n"),
]
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "tour.svg"


def elements(picture: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(picture).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


def groups(picture: str) -> dict[str, str]:
    """The texts that appear together, by the name of their animation, in the order of the file."""
    found = {}
    for group in elements(picture, "g"):
        if name := re.search(r"animation-name:(t\d+)", group.get("style", "")):
            found[name[1]] = "|".join("".join(text.itertext()) for text in group if text.tag.endswith("text"))
    return found


def times(picture: str, seconds: float) -> dict[str, list[float]]:
    """The seconds at which each animation changes something."""
    found = {}
    for name, steps in re.findall(r"@keyframes (\w+)\{((?:[\d.]+%\{[^}]*\})+)\}", picture):
        found[name] = [float(percent) * seconds / 100 for percent in re.findall(r"([\d.]+)%\{", steps)]
    return found


@pytest.fixture(scope="module")
def drawn() -> str:
    return draw(film(SESSION, COLUMNS, LINES), COLUMNS, LINES, "a < session")


def test_a_picture_is_xml_with_the_texts_in_order_of_time(drawn: str) -> None:
    assert list(groups(drawn).values()) == ["$", "l", "s", "1", "busy", "a < b|& c", "2", "ready", "$ exit|…"]


def test_each_text_appears_when_it_was_written_and_disappears_when_it_was_replaced(drawn: str) -> None:
    found = times(drawn, 6.0 + HOLD)
    spans = {text: found[name] for name, text in groups(drawn).items()}
    assert spans["$"] == [0.0]
    assert spans["s"] == pytest.approx([0.0, 1.2], abs=0.01)
    assert spans["2"] == pytest.approx([0.0, 3.0, 4.0], abs=0.01)
    assert found["scroll"] == pytest.approx([0.0, 6.0], abs=0.01)


def test_replaced_text_is_hidden_if_animations_are_off(drawn: str) -> None:
    hidden = [group for group in elements(drawn, "g") if group.get("class") == "h"]
    assert ["".join(group.itertext()) for group in hidden] == ["1", "busy", "2"]
    style = elements(drawn, "style")[0].text or ""
    assert "prefers-reduced-motion:no-preference" in style
    screen = next(group for group in elements(drawn, "g") if group.get("id") == "screen")
    assert screen.get("style") == "transform:translate(0px,-36px)", "the last screen, two lines further"


def test_colors_follow_the_reader_and_reverse_video_is_filled(drawn: str) -> None:
    texts = {"".join(text.itertext()): text for text in elements(drawn, "text")}
    assert texts["a < b"].get("class") == "b"
    assert texts["a < b"].get("style") == "fill:var(--cyan)"
    assert texts["ready"].get("style") == "fill:var(--bg)"
    assert "prefers-color-scheme:dark" in drawn


def test_the_transcript_is_the_remaining_text(drawn: str) -> None:
    assert elements(drawn, "desc")[0].text == "$ ls\na < b  & c\nready\n$ exit\n…"


@pytest.mark.parametrize("whose", ["drawn", "docs"])
def test_a_picture_has_no_script_and_loads_nothing(whose: str, drawn: str) -> None:
    picture = drawn if whose == "drawn" else PICTURE.read_text(encoding="utf-8")
    tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(picture).iter()}
    assert tags <= {"svg", "title", "desc", "style", "g", "text", "rect", "path"}
    assert not re.search(r"url\(|@import|href|\bon\w+=", picture)


def test_the_picture_of_the_tour_shows_the_tour() -> None:
    """It is small, shows every part of the tour, and nothing about the machine that recorded it."""
    picture = PICTURE.read_text(encoding="utf-8")
    assert len(picture.encode()) < 200_000
    transcript = elements(picture, "desc")[0].text or ""
    for shown in (
        "ADD EXTRACT ext1",
        "ADD DISTPATH dp1",
        "ADD REPLICAT rep1",
        "==> EXT1 ==> DP1 ==> REP1 ==>",
        "TRAIL COUNT",
        "equal",
    ):
        assert shown in transcript
    assert not re.search(r"/(tmp|home|root)\b|port=|ERROR|abended", transcript, re.IGNORECASE)
