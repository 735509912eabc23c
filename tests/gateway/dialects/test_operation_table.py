"""Operations whose modules are imported at their first look-up."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tablegate.gateway.dialects.adapter import OperationTable
from tests.support.waiting import PATIENCE_S

GROUP = "group_of_operation_table"


class Operation(NamedTuple):
    may_block: bool = False


PUT, GET = Operation(may_block=True), Operation()


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OperationTable[Operation]]:
    source = "from tests.gateway.dialects.test_operation_table import GET, PUT\nOPERATIONS = {'Export': PUT, 'Describe': GET}\n"
    (tmp_path / f"{GROUP}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    yield OperationTable({"Put": PUT, "Get": GET}, {GROUP: ("Export", "Describe")})
    sys.modules.pop(GROUP, None)


def test_names_are_known_without_an_import(table: OperationTable[Operation]) -> None:
    assert [*table] == ["Put", "Get", "Export", "Describe"]
    assert len(table) == 4
    assert "Export" in table
    assert "Import" not in table
    assert table["Put"] is PUT
    assert table.get("Import") is None
    assert GROUP not in sys.modules
    assert table.loaded.keys() == {"Put", "Get"}


def test_a_look_up_imports_the_group_of_the_operation(table: OperationTable[Operation]) -> None:
    assert table["Describe"] is GET
    assert GROUP in sys.modules
    assert table.loaded.keys() == {"Put", "Get", "Export", "Describe"}
    assert [*table] == ["Put", "Get", "Export", "Describe"]
    assert len(table) == 4


def test_all_operations_are_imported_for_a_look_at_all(table: OperationTable[Operation]) -> None:
    assert dict(table.items()) == {"Put": PUT, "Get": GET, "Export": PUT, "Describe": GET}


def test_operations_may_block_until_they_are_imported(table: OperationTable[Operation]) -> None:
    assert table.blocking == {"Put", "Export", "Describe"}
    assert table["Export"] is PUT
    assert table.blocking == {"Put", "Export"}


def test_an_operation_of_a_group_replaces_the_common_one(table: OperationTable[Operation]) -> None:
    replaced = OperationTable({"Get": GET, "Describe": PUT}, table.groups)
    assert replaced.loaded.keys() == {"Get"}
    assert [*replaced] == ["Get", "Export", "Describe"]
    assert "Describe" in replaced.blocking
    assert replaced["Describe"] is GET


def test_threads_that_ask_together_get_the_same_operation(table: OperationTable[Operation]) -> None:
    found: list[Operation] = []
    threads = [threading.Thread(target=lambda: found.append(table["Describe"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert found == [GET] * 8
