"""A table of each kind of endpoint is copied to each other kind and verified. Only rows that the mapping rules reject
are lost.

The run has thousands of rows here, and a million in all with `make soak`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import text
from tablegate.transfer.comparing.sides import CompareOptions
from tablegate.transfer.comparing.verifying import verify
from tablegate.transfer.copying.copying import CopyOptions, run
from tablegate.transfer.copying.job import CopyJob
from tablegate.transfer.endpoints.addresses import open_endpoint
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.mapping.mapping import MappingOptions
from tablegate.transfer.progress import NoProgress
from tests.support.databases import PostgresServer
from tests.support.running import Running
from tests.transfer.endpoints.conftest import REGION
from tests.transfer.endpoints.places import KEYS, SCALARS, SCHEMAS, numbered_key, numbered_rows, row_of

IS_LONG = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "1.5")) >= 30
ENDS = ("dynamodb", "azure-table", "tablestore", "sqlite", "postgresql", "jsonl", "export")
ROWS = 1_000_000 // (len(ENDS) * (len(ENDS) - 1)) if IS_LONG else 120
# Services that supply the rows for each kind of endpoint. Databases and tablegate's files hold all kinds.
_SERVICES = {
    "dynamodb": Service.DYNAMODB, "azure-table": Service.AZURE_TABLE, "tablestore": Service.TABLE_STORE,
    "sqlite": Service.TABLE_STORE, "postgresql": Service.AZURE_TABLE, "jsonl": Service.TABLE_STORE,
    "export": Service.DYNAMODB,
}  # fmt: skip
_OPTIONS = MappingOptions(escape_keys=True)
_names = (f"direction{number}" for number in itertools.count())

Addresses = Callable[[str], str]


@pytest.fixture(scope="module")
def address(
    ours: Running, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Addresses]:
    """A new address of an end of some kind."""
    folder = tmp_path_factory.mktemp("directions")
    with postgres.new_database() as database:
        forms = {
            "dynamodb": f"dynamodb://NAME?region={REGION}&endpoint={ours.url}",
            "azure-table": f"azure-table://devstoreaccount1/NAME?endpoint={ours.url}/devstoreaccount1",
            "tablestore": f"tablestore://inst/NAME?endpoint={ours.url}",
            "sqlite": f"tablegate:sqlite:///{folder}/NAME.sqlite#NAME",
            "postgresql": f"tablegate:{database}#NAME",
            "jsonl": f"file:{folder}/NAME.jsonl.zst",
            "export": f"file:{folder}/NAME?format=dynamodb-export",
        }
        yield lambda end: forms[end].replace("NAME", next(_names))


def source_rows(service: Service) -> list[Row]:
    """Numbered rows, one of every kind of value, and keys with odd characters."""
    schema: KeySchema = SCHEMAS[service]
    rows = numbered_rows(service, ROWS)
    rows.append(row_of(schema, numbered_key(service, 5_000_000), dict(SCALARS[service])))
    rows += [row_of(schema, key, {"label": text(str(number))}) for number, key in enumerate(KEYS[service])]
    return rows


@pytest.fixture(scope="module")
def filled(address: Addresses) -> Callable[[str], str]:
    """Return the address of a table with rows for that kind of endpoint. It is created once."""
    made: dict[str, str] = {}

    def fill(end: str) -> str:
        if end not in made:
            made[end] = address(end)
            service = _SERVICES[end]
            endpoint = open_endpoint(made[end])
            endpoint.create(Definition(_table_of(made[end]), service, SCHEMAS[service]))
            rows = source_rows(service)
            for start in range(0, len(rows), endpoint.write_rows):
                assert endpoint.write(rows[start : start + endpoint.write_rows]) == []
            endpoint.finish()
            endpoint.close()
        return made[end]

    return fill


def _table_of(shown: str) -> str:
    return next(
        word
        for word in shown.replace("#", "/").replace("?", "/").replace(".", "/").split("/")
        if "direction" in word
    )


@pytest.mark.extended
@pytest.mark.soak
@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(ENDS, 2)))
def test_a_copy_of_each_in_each_is_equal(
    address: Addresses, filled: Callable[[str], str], tmp_path: Path, source: str, target: str
) -> None:
    first, second = filled(source), address(target)
    job = CopyJob.create(tmp_path / "copy.job", first, second, [(first, second)], {})
    counts = run(job, (open_endpoint, open_endpoint), CopyOptions(parallel=2, mapping=_OPTIONS), NoProgress())
    job.close()
    ends = open_endpoint(first), open_endpoint(second)
    report = verify(*ends, options=CompareOptions(mapping=_OPTIONS))
    for end in ends:
        end.close()
    # Rows that the target cannot have were rejected and are reported missing by that rule. Nothing else is different.
    assert dict(+report.counts) == ({"missing": counts.rejected} if counts.rejected else {}), report.text()
    assert report.impossible == counts.rejected <= 1
    assert counts.rows + counts.rejected == ROWS + 1 + len(KEYS[_SERVICES[source]])
