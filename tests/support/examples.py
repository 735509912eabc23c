"""How many examples a property-based test takes, in `make test` and in `make fuzz`."""

from __future__ import annotations

from typing import Any

import hypothesis


def examples(number: int, **options: Any) -> hypothesis.settings:
    """Return settings for this number of examples, if 100 are too many or too few.

    `make fuzz` takes as many times more as of other tests (the profiles of tests/conftest.py). `options`: others of
    hypothesis.settings.
    """
    return hypothesis.settings(max_examples=number * hypothesis.settings().max_examples // 100, **options)
