"""Tests that `make soak` alone runs."""

from __future__ import annotations

import os

import pytest

is_soak = "TABLEGATE_TEST_SOAK_SECONDS" in os.environ
"""True in `make soak`, where tests have their full length."""
minutes_long = pytest.mark.skipif(not is_soak, reason="minutes long: make soak runs it")
