"""The size of a request that writes, on both sides of its limit (Alibaba Cloud help, Tablestore, "General limits")."""

from __future__ import annotations

import pytest

from tablegate.adapters.tablestore.rows.writes import check_request
from tablegate.adapters.tablestore.wire.errors import ServiceError


def test_a_request_that_writes_has_at_most_4_mb() -> None:
    check_request(4 * 1024 * 1024, "BatchWriteRow")
    with pytest.raises(ServiceError) as caught:
        check_request(4 * 1024 * 1024 + 1, "BatchWriteRow")
    assert "BatchWriteRow" in caught.value.message
