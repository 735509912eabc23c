"""The cells of the matrix for each limit of a quota: the operations refused when read units, write units, bytes or
tables are used up.

The purposes in the tables of operations determine the refused operations. Every other operation continues.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.authorization.quotas import Quota
from tablegate.gateway.security.credentials import Scheme
from tests.entry_matrix.requests import Row, rows
from tests.entry_matrix.servers import ENTRIES, OVER, Matrix
from tests.entry_matrix.test_entry_matrix import NOT_DONE
from tests.gateway.security.named_requests import Handles, furnish
from tests.support.soak import minutes_long

P = Permission
USED_UP: dict[str, tuple[Quota, set[Permission]]] = {
    "read_units": (Quota(read_units=1), {P.READ, P.QUERY, P.SCAN, P.SEARCH, P.SPLIT, P.READ_STREAM}),
    "write_units": (Quota(write_units=1), {P.PUT, P.UPDATE, P.DELETE}),
    "bytes": (
        Quota(bytes=0),
        {P.PUT, P.UPDATE, P.CREATE_BACKUP, P.RESTORE_BACKUP, P.RESTORE_MOMENT, P.IMPORT, P.LOAD},
    ),
    "tables": (Quota(tables=0), {P.CREATE, P.RESTORE_BACKUP, P.RESTORE_MOMENT, P.IMPORT}),
}
"""Limit -> a quota that is used up, and the purposes that it refuses."""
NOT_REACHED = {
    *(("read_units", operation) for operation in NOT_DONE.keys() - {"tablestore GetStreamRecord"}),
    *((limit, "tablestore UpdateRow") for limit in USED_UP),  # of no column
    ("tables", "dynamodb RestoreTableFromBackup"),  # the backup is still being copied
}
"""(Limit, operation) whose request is refused for another reason first."""
DELETING = {"dynamodb BatchWriteItem", "dynamodb TransactWriteItems"}
"""Operations whose request here deletes: that needs no bytes."""


def is_refused(limit: str, row: Row) -> bool:
    """True if a quota that is used up refuses an operation."""
    _, refused = USED_UP[limit]
    of_writes = {Permission.PUT, Permission.UPDATE, Permission.DELETE}
    if (limit, row.id) in NOT_REACHED or (limit == "bytes" and row.id in DELETING):
        return False
    needed = {*row.purpose.permissions}
    if limit == "read_units" and needed & of_writes:  # requests here write
        return False
    return bool(needed & refused)


@minutes_long
@pytest.mark.soak
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("limit", USED_UP)
def test_each_limit_refuses_its_purposes(
    sqlite_template: Path, tmp_path: Path, limit: str, entry: str
) -> None:
    shutil.copy(sqlite_template, tmp_path / "test.sqlite")
    matrix = Matrix(f"sqlite:///{tmp_path}/test.sqlite", tmp_path)
    quotas, wrong = matrix.gateway.quotas, {}
    with matrix.serving():
        for row in rows():
            quotas.replace({})
            table = f"orders{matrix.next_number()}"
            has = Handles() if row.makes_table else furnish(matrix.strict, table)
            quotas.keep_sizes({})
            quotas.replace({f"{scheme.value}/{OVER}": USED_UP[limit][0] for scheme in Scheme})
            for allowance in quotas.allowances.values():
                for bucket in allowance.buckets.values():
                    bucket.take(100)
            before = matrix.contents()
            reply, lines = matrix.ask(entry, row.request(OVER, table, has))
            found = [(line["owner"], line["limit"]) for line in lines if line["event"] == "throttled"]
            wanted = is_refused(limit, row)
            scheme = {"dynamodb": "aws", "azuretable": "azure"}.get(row.dialect, row.dialect)
            expected = [(f"{scheme}/{OVER}", limit)] if wanted else []
            if found != expected or (wanted and matrix.contents() != before):
                wrong[row.id] = reply, lines
    assert wrong == {}
