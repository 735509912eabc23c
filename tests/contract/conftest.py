"""The statements behind the contract say where their rows are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.statements import Listener, listening


@pytest.fixture(scope="session")
def _listener() -> Iterator[Listener]:
    with listening() as listener:
        yield listener


@pytest.fixture(autouse=True)
def _statements_say_where(_listener: Listener) -> Iterator[None]:
    """No statement of ours asks every node of a distributed database without a reason (tests/support/statements.py)."""
    yield
    found = _listener.complaints()
    assert not found, "\n".join(found)
