"""The Python files of the project as syntax trees, parsed once per process.

The tests that read the source share these trees; pytest-xdist runs them on one worker (``conftest.py``).
"""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ggshell"


@cache
def sources(*folders: str) -> tuple[Path, ...]:
    """The Python files in these folders of the project, sorted."""
    return tuple(sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py")))


@cache
def text_of_file(file: Path) -> str:
    return file.read_text(encoding="utf-8")


@cache
def tree(file: Path) -> ast.Module:
    """The syntax tree of a file. Without a pause the garbage collector takes three quarters of the time of parsing."""
    running = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text_of_file(file), str(file))
    finally:
        if running:
            gc.enable()


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    """Every node of a file, in the order of ``ast.walk``."""
    return tuple(ast.walk(tree(file)))
