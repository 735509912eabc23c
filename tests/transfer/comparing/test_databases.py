"""Two databases of tablegate are compared by the bytes of their rows' bodies."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.comparing.checksums import signature
from tablegate.transfer.comparing.sides import CompareOptions, TablePair
from tablegate.transfer.comparing.verifying import verify
from tablegate.transfer.endpoints.database import DatabaseEndpoint
from tablegate.transfer.endpoints.endpoint import Definition
from tests.transfer.comparing.test_verifying import CELLS, ENTITIES, ITEMS, row_of, table_of, text

DEFINITIONS = [replace(each, is_stored=True) for each in (ITEMS, ENTITIES, CELLS)]


@pytest.fixture
def ends(sqlite_template: Path, tmp_path: Path) -> Iterator[tuple[DatabaseEndpoint, DatabaseEndpoint]]:
    made = []
    for name in ("a", "b"):
        shutil.copy(sqlite_template, tmp_path / f"{name}.sqlite")
        made.append(DatabaseEndpoint(f"sqlite:///{tmp_path}/{name}.sqlite#Orders"))
    yield made[0], made[1]
    for end in made:
        end.close()


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.service.value)
def test_two_databases(ends: tuple[DatabaseEndpoint, DatabaseEndpoint], definition: Definition) -> None:
    first, second = ends
    rows = table_of(definition, 40)
    for end in ends:
        end.create(definition)
        assert end.write(rows) == []
    assert verify(first, second).text().endswith("equal\n")
    assert verify(first, second, "full", CompareOptions(strict=True)).rows == (40, 40)
    assert verify(first, second, "sample:10").text().endswith("equal\n")
    assert TablePair(first, second, CompareOptions()).hashes_bodies is fast_paths.ARE_ON
    assert signature(first) == signature(second)

    schema = definition.key_schema
    second.delete([schema.decode(rows[3].position)])
    changed = row_of(definition, {**rows[4].latest, "title": text("another")})
    # Other bytes, the same row.
    turned = Row(rows[5].position, Contents.of_values(dict(reversed(rows[5].latest.items()))), 0)
    assert second.write([changed, turned]) == []
    same_value = Value(Kind.INT32, 7)
    assert second.write([row_of(definition, {**rows[6].latest, "count": same_value})]) == []
    report = verify(first, second)
    assert report.counts == {"missing": 1, "changed": 1, "kind": 1}
    assert verify(first, second, options=CompareOptions(strict=False)).counts == {"missing": 1, "changed": 1}
    assert signature(first) != signature(second)
    strict = verify(first, second, options=CompareOptions(strict=True))
    assert strict.counts["kind"] == 1
