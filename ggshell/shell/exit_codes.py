"""How a run of ggshell ended, as the process's exit code."""

from __future__ import annotations

DONE, FAILED, USAGE_ERROR, SYNTAX_ERROR, INTERRUPTED = 0, 1, 2, 3, 130
