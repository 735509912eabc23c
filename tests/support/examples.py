"""The number of examples of a property-based test, in `make test-all`, `make test` and `make fuzz`."""

from __future__ import annotations

from typing import Any

import hypothesis


def examples(number: int, **options: Any) -> hypothesis.settings:
    """Return settings for this number of examples, where the usual 100 are too few or take too long.

    It is the number in `make test-all`. `make test` takes a quarter and `make fuzz` 20 times as many, as of other tests
    (the profiles of tests/conftest.py). `options`: other arguments of hypothesis.settings.
    """
    return hypothesis.settings(max_examples=number * hypothesis.settings().max_examples // 100, **options)
