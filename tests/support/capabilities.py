"""The capabilities of this repository, for tests of several capabilities. Some of them can be deleted."""

from __future__ import annotations

import pytest

from tablegate.adapters.dynamodb.capabilities import OPERATION_GROUPS
from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.gateway.capabilities import CAPABILITIES

INSTALLED = {*CAPABILITIES} | {
    module.partition(".features.")[2].partition(".")[0]
    for module in (*OPERATION_GROUPS, *OPERATIONS.groups)
    if ".features." in module
}
"""The names in the lists of the gateway and of the adapters."""


def needs(*capabilities: str) -> pytest.MarkDecorator:
    """Return the mark of a test that is skipped where one of these capabilities is deleted."""
    absent = [name for name in capabilities if name not in INSTALLED]
    return pytest.mark.skipif(bool(absent), reason=f"deleted: {', '.join(absent)}")
