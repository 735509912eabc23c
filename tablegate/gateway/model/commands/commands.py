"""The type of the steps of a request."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from tablegate.gateway.model.commands.command import Command, R

Exchange = Generator[list[Command[Any]], list[Any], R]
"""The steps of a request: yields lists of commands, is sent their outcomes, returns an R.

A whole request returns a Reply (gateway/http.py). `one` and `each` (gateway/exchanges.py) give the outcomes their
types.
"""
