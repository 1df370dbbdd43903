"""Draws a session as an SVG that plays by itself: CSS animations and no script, so pages that allow only pictures can show it.

Without animations (a reader can turn them off) the last screen is shown. Colors follow the light or dark mode of the reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from xml.sax.saxutils import escape

from recorder.screen import Film, TextStyle, VisibleText

SIZE, WIDTH, HEIGHT = 14, 8.4, 18
"""Pixels: the font, and the width and height of a cell."""
MARGIN, TITLE = 14, 30
"""Pixels: around the text, and the height of the title bar."""
HOLD = 3.0
"""Seconds: how long the last screen stays before the session starts again."""
LIGHT = {
    "fg": "#1f2328", "bg": "#ffffff", "bar": "#f0f2f5", "line": "#d0d7de", "black": "#24292f", "red": "#cf222e",
    "green": "#116329", "brown": "#7d4e00", "blue": "#0550ae", "magenta": "#8250df", "cyan": "#0b6a75", "white": "#57606a",
    "dim": "#6e7781",
}  # fmt: skip
DARK = {
    "fg": "#d6dde6", "bg": "#10151c", "bar": "#1b222c", "line": "#343d49", "black": "#8b949e", "red": "#ff7b72",
    "green": "#7ee787", "brown": "#e3b341", "blue": "#79c0ff", "magenta": "#d2a8ff", "cyan": "#6fdbe8", "white": "#f0f6fc",
    "dim": "#8b949e",
}  # fmt: skip
_FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"


def draw(session: Film, columns: int, lines: int, title: str) -> str:
    """The SVG of a session."""
    width, height = round(columns * WIDTH + 2 * MARGIN), lines * HEIGHT + TITLE + 2 * MARGIN
    seconds = session.seconds + HOLD
    groups = [(span, list(texts)) for span, texts in groupby(session.texts, key=lambda text: (text.shown, text.hidden))]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-labelledby="title" xml:space="preserve">',
        f'<title id="title">{escape(title)}</title>',
        f"<desc>{escape(session.transcript())}</desc>",
        "<style>",
        *_colors(),
        f"text{{font:{SIZE}px {_FONT};fill:var(--fg);white-space:pre}}.b{{font-weight:bold}}.i{{font-style:italic}}",
        ".h{visibility:hidden}#screen rect{shape-rendering:crispEdges}",
        "@media (prefers-reduced-motion:no-preference){"
        f"#screen,#screen g,#cursor{{animation:{_short(seconds)}s step-end infinite}}"
        "#screen{animation-name:scroll}#cursor{animation-name:move}}",
        _steps("scroll", seconds, ((when, _moved(0, -first)) for when, first in session.scrolls)),
        _steps("move", seconds, ((when, _moved(column, line)) for when, line, column in session.cursors)),
        *(_visible(f"t{number}", seconds, *span) for number, (span, _) in enumerate(groups)),
        "</style>",
        *_window(width, height, title),
        f'<svg x="{MARGIN}" y="{TITLE + MARGIN}" width="{_short(columns * WIDTH)}" height="{lines * HEIGHT}">',
        f'<g id="screen" style="{_moved(0, -session.scrolls[-1][1])}">',
        _cursor(*session.cursors[-1][1:]),
        *(_group(number, span, texts) for number, (span, texts) in enumerate(groups)),
        "</g>",
        "</svg>",
        "</svg>",
        "",
    ]
    return "\n".join(parts)


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _colors() -> Iterator[str]:
    """The two palettes; the reader's setting chooses."""
    for rule, palette in (("{}", LIGHT), ("@media (prefers-color-scheme:dark){{{}}}", DARK)):
        variables = ";".join(f"--{name}:{color}" for name, color in palette.items())
        yield rule.format(f":root{{{variables}}}")


def _moved(columns: int, lines: int) -> str:
    return f"transform:translate({_short(columns * WIDTH)}px,{lines * HEIGHT}px)"


def _steps(name: str, seconds: float, steps: Iterable[tuple[float, str]]) -> str:
    """An animation that jumps from one state to the next."""
    frames = "".join(f"{_short(100 * when / seconds)}%{{{state}}}" for when, state in steps)
    return f"@keyframes {name}{{{frames}}}"


def _visible(name: str, seconds: float, shown: float, hidden: float | None) -> str:
    """The animation of text that is visible for a span only."""
    steps = [(0.0, "visibility:hidden")] if shown else []
    steps.append((shown, "visibility:visible"))
    if hidden is not None:
        steps.append((hidden, "visibility:hidden"))
    return _steps(name, seconds, steps)


def _window(width: int, height: int, title: str) -> Iterator[str]:
    """The frame around the text."""
    yield (
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8" '
        'style="fill:var(--bg);stroke:var(--line)"/>'
    )
    yield f'<path d="M1 {TITLE}V9q0-8 8-8H{width - 9}q8 0 8 8V{TITLE}z" style="fill:var(--bar)"/>'
    yield f'<path d="M1 {TITLE}H{width - 1}" style="stroke:var(--line)"/>'
    yield f'<text x="{width / 2}" y="20" text-anchor="middle" style="fill:var(--dim)">{escape(title)}</text>'


def _cursor(line: int, column: int) -> str:
    return f'<rect id="cursor" width="8" height="{HEIGHT}" style="fill:var(--fg);opacity:.35;{_moved(column, line)}"/>'


def _group(number: int, span: tuple[float, float | None], texts: list[VisibleText]) -> str:
    """Everything that appears and disappears at the same moments."""
    hidden = "" if span[1] is None else ' class="h"'
    content = "".join(_text(text) for text in texts)
    return f'<g{hidden} style="animation-name:t{number}">{content}</g>'


def _text(text: VisibleText) -> str:
    """A piece of text, stretched to its cells regardless of the width of the reader's font."""
    x, y, size = _short(text.column * WIDTH), text.line * HEIGHT, _short(len(text.text) * WIDTH)
    color, background = _paint(text.style)
    box = f'<rect x="{x}" y="{y}" width="{size}" height="{HEIGHT}" style="fill:{background}"/>' if background else ""
    if not text.text.strip():
        return box
    kinds = " ".join(kind for kind, wanted in (("b", text.style.bold), ("i", text.style.italic)) if wanted)
    marks = f' class="{kinds}"' if kinds else ""
    if color:
        marks += f' style="fill:{color}"'
    if len(text.text) > 1:
        marks += f' textLength="{size}"'
    return f'{box}<text x="{x}" y="{y + SIZE - 1}"{marks}>{escape(text.text)}</text>'


def _paint(style: TextStyle) -> tuple[str, str]:
    """The colors of text and background; empty: those of the window."""
    color, background = _color(style.color), _color(style.background)
    if style.reverse:
        return background or "var(--bg)", color or "var(--fg)"
    return color, background


def _color(name: str) -> str:
    """A terminal's color in the reader's palette; the bright variants are the same, apart from gray."""
    if name == "default":
        return ""
    if name == "brightblack":
        return "var(--dim)"
    name = name.removeprefix("bright")
    return f"var(--{name})" if name in LIGHT else f"#{name}"
