"""How many cases a test tries. A quick run tries fewer; the whole suite tries all of them."""

from __future__ import annotations

import pytest
from hypothesis import settings

QUICK_PROFILE = "quick"
QUICK_EXAMPLES = 20
"""The examples of a property test in a quick run."""
QUICK_SEEDS = 8
"""The seeds of a random test in a quick run."""

settings.register_profile(QUICK_PROFILE, max_examples=QUICK_EXAMPLES, deadline=None)


def examples(whole: int) -> int:
    """Return how many examples a property test tries if it tries ``whole`` in the whole suite."""
    return min(whole, QUICK_EXAMPLES) if settings.get_current_profile_name() == QUICK_PROFILE else whole


def seeds(whole: int) -> list[object]:
    """Return the seeds 0 to ``whole`` - 1 as parameters; those that a quick run leaves out have the mark ``slow``."""
    return [pytest.param(seed, marks=() if seed < QUICK_SEEDS else pytest.mark.slow) for seed in range(whole)]
