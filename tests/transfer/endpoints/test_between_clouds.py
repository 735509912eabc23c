"""A table of each service copied to each other one, its endpoints at both ends, and verified: nothing is lost on the way."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from gateway.model.values import text
from tests.support.running import Running
from tests.transfer.endpoints.conftest import OPENERS
from tests.transfer.endpoints.places import KEYS, SCALARS, SCHEMAS, numbered_key, numbered_rows, row_of
from transfer.comparing.sides import CompareOptions
from transfer.comparing.verifying import verify
from transfer.copying.copying import CopyOptions, run
from transfer.copying.job import Job
from transfer.copying.progress import Silent
from transfer.endpoints.endpoint import Definition, Endpoint, Service
from transfer.mapping.mapping import MappingOptions

CLOUDS = (Service.DYNAMODB, Service.AZURE_TABLE, Service.TABLE_STORE)
_NAMES = (f"between{number}" for number in itertools.count())


def filled(ours: Running, service: Service) -> Endpoint:
    """A table with a row of every kind, with odd keys, and a page's worth of others."""
    endpoint = OPENERS[service](ours.url, next(_NAMES))
    endpoint.create(Definition(endpoint._table, service, SCHEMAS[service]))
    schema = SCHEMAS[service]
    kinds = dict(SCALARS[service])
    rows = numbered_rows(service, 250)
    rows.append(row_of(schema, numbered_key(service, 5000), kinds))
    rows += [row_of(schema, key, {"label": text(str(number))}) for number, key in enumerate(KEYS[service])]
    assert endpoint.write(rows) == []
    return endpoint


@pytest.mark.parametrize(
    ("source", "target"), list(itertools.permutations(CLOUDS, 2)), ids=lambda service: service.value
)
def test_a_copy_of_each_in_each_is_equal(
    ours: Running, tmp_path: Path, source: Service, target: Service
) -> None:
    first = filled(ours, source)
    names = first._table, next(_NAMES)
    second = OPENERS[target](ours.url, names[1])
    job = Job.create(tmp_path / "copy.job", first.shown, second.shown, {})
    job.add_table(first.shown, second.shown)
    options = CopyOptions(parallel=3, mapping=MappingOptions(escape_keys=True))
    counts = run(job, (lambda _: first, lambda _: second), options, Silent())
    job.close()
    first, second = (
        OPENERS[service](ours.url, name) for service, name in ((source, names[0]), (target, names[1]))
    )
    report = verify(first, second, options=CompareOptions(mapping=options.mapping))
    # What the target cannot have at all was rejected, and is missing by that rule; nothing else is different.
    assert dict(+report.counts) == ({"missing": counts.rejected} if counts.rejected else {}), report.text()
    assert report.impossible == counts.rejected <= 1
    assert counts.rows + counts.rejected == 250 + 1 + len(KEYS[source])
