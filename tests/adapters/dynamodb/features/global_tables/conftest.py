"""Servers with the tables of the measured requests."""

from __future__ import annotations

from tests.adapters.dynamodb.measured.conftest import *  # noqa: F403
