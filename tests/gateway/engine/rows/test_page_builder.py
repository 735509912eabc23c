"""Pages under construction."""

from __future__ import annotations

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.rows import page_builder
from tablegate.gateway.model.expressions.ranges import EVERYTHING
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import text
from tests.gateway.engine.conftest import Client, make_table


def cut(row: Row) -> Row:
    """The key and the first half of a text: the bytes of a page are not those of its rows."""
    values = {**row.latest, "filler": text(str(row.latest["filler"].data)[::2])}
    return Row(row.position, Contents.of_values(values), row.modified_at)


@pytest.fixture
def client(engine: Engine) -> Client:
    made = Client(engine, make_table(engine))
    for name in "abc":
        made.write(*(made.put(name, s, filler=text("x" * (s * 37 % 301))) for s in range(50)))
    return made


def test_a_page_that_takes_long_ends_at_a_row(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(1000))
    monkeypatch.setattr(page_builder, "monotonic", lambda: next(seconds))
    page = client.page(EVERYTHING, limits=PageLimits(seconds=1.5, peek=True), cut=cut)
    assert 0 < len(page.rows) < 150
    assert page.next is not None and page.scanned == len(page.rows)
