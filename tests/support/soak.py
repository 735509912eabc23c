"""Tests that `make soak` alone runs."""

from __future__ import annotations

import os

import pytest

minutes_long = pytest.mark.skipif(
    "TABLEGATE_TEST_SOAK_SECONDS" not in os.environ, reason="minutes long: make soak runs it"
)
