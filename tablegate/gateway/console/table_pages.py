"""Pages about tables: the list, and the facts of one table."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from time import monotonic
from typing import Any

import flask

from tablegate.gateway.adapter import table_describers
from tablegate.gateway.console.charts import RANGES, table_chart
from tablegate.gateway.console.operations import Operations
from tablegate.gateway.console.pages import Pages, Route, stream_of
from tablegate.gateway.console.reading import DESCRIBING
from tablegate.gateway.console.rendering import address, render, server_url
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.commands.row_search import RowSearch
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.observability.metric_history import history

# Counting rows is a scan. The list stops counting after this time, and the page of a table counts its rows.
_COUNTING_S = 1.0


class TablePages(Pages):
    """The list of tables, and the page of a table."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self._listings = table_describers(gateway.settings)
        self._operations = Operations(gateway)

    def reads(self) -> Sequence[Route]:
        return (
            Route("/", self.tables),
            Route("/table", self.table),
        )

    def tables(self, visitor: ConsoleUser) -> Any:
        """Show a list of tables."""
        reading = self._reading(visitor)
        given = flask.request.args
        found, more = reading.tables((given.get("namespace", ""), given.get("after", "")))
        now_ms = self._gateway.now_ms()
        until = monotonic() + _COUNTING_S
        lines = [
            (
                table,
                table.state_at(now_ms).value,
                reading.statistics(table) if monotonic() < until else None,
                stream_of(table),
                self._may_see(reading, table, Permission.DESCRIBE_EXPIRY),
            )
            for table in found
        ]
        last = found[-1] if more else None
        may_create = self._gateway.settings.console_writes and bool(self._operations.creating(visitor))
        return render("tables.html", visitor=visitor, lines=lines, last=last, may_create=may_create)

    def table(self, visitor: ConsoleUser) -> Any:
        """Show a table: its names in each dialect, and how each SDK reads it."""
        reading = self._reading(visitor)
        table = self._table(reading, DESCRIBING)
        url = server_url()
        snippets = [
            code for each in self._ordered(table) for code in each.request_code(RowSearch(table), url).items()
        ]
        names = [
            (self._operations.title(dialect), *listed(table)) for dialect, listed in self._listings.items()
        ]
        return render(
            "table.html", visitor=visitor, table=table, state=table.state_at(self._gateway.now_ms()).value,
            statistics=reading.statistics(table), names=names, snippets=snippets, stream=stream_of(table),
            shows_expiry=self._may_see(reading, table, Permission.DESCRIBE_EXPIRY),
            shows_recovery=self._may_see(reading, table, Permission.DESCRIBE_FEATURES),
            **(self._metrics(table) if reading.shows_metrics(table) else {}),
        )  # fmt: skip

    def _metrics(self, table: Table) -> dict[str, Any]:
        """Return the chart of a table, and the address of the chart alone."""
        period = flask.request.args.get("range", "")
        period = period if period in RANGES else "15m"
        history.sample_if_due()
        chart = table_chart(history, table.name, RANGES[period][1])
        return {
            "chart": chart, "link": address("console.chart", table, range=period), "period": period,
            "periods": RANGES, "own_address": functools.partial(address, "console.table", table),
        }  # fmt: skip
