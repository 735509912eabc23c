"""Pages with charts."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import flask

from tablegate.gateway.console import charts
from tablegate.gateway.console.pages import Pages, Route
from tablegate.gateway.console.reading import DESCRIBING
from tablegate.gateway.console.rendering import problem, render
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.observability.metric_history import history

_NO_METRICS = (
    "Your key is not allowed to describe the tables of this chart. Ask the administrator for a grant."
)


class TableUnits(NamedTuple):
    """A table, and the units that were read and written."""

    table: Table
    read: float
    written: float


class MetricPages(Pages):
    """Charts of the server, its operations and tables."""

    def reads(self) -> Sequence[Route]:
        return Route("/metrics", self.metrics), Route("/chart", self.chart)

    def metrics(self, visitor: ConsoleUser) -> Any:
        """Show metrics of the server to an unrestricted visitor, and of the tables that the visitor can describe."""
        history.sample_if_due()
        period, seconds = _period()
        tables, more = self._busiest(visitor, seconds)
        shown, operations = [], []
        if visitor.sees_everything:
            shown = [
                (charts.server_chart(history, name, seconds), self._link(period, name))
                for name in charts.SERVER_CHARTS
            ]
            shown.append((charts.operations_chart(history, seconds), self._link(period, "operations")))
            operations = charts.operation_metrics(history, seconds)
        of_tables = charts.tables_chart(history, _names(tables), seconds)
        return render(
            "metrics.html", visitor=visitor, charts=shown, operations=operations, tables=tables,
            has_more_tables=more, period=period, periods=charts.RANGES, shows_server=visitor.sees_everything,
            tables_chart=of_tables, tables_link=self._link(period, "tables"),
            own_address=functools.partial(flask.url_for, "console.metrics"),
        )  # fmt: skip

    def chart(self, visitor: ConsoleUser) -> Any:
        """Return one chart: of a table if the request has a namespace, otherwise of the server."""
        history.sample_if_due()
        given = flask.request.args
        _, seconds = _period()
        if "namespace" in given:
            reading = self._reading(visitor)
            table = self._table(reading, DESCRIBING)
            if not reading.shows_metrics(table):
                return problem(403, _NO_METRICS)
            chart = charts.table_chart(history, table.name, seconds)
        elif given.get("name") == "tables":
            chart = charts.tables_chart(history, _names(self._busiest(visitor, seconds)[0]), seconds)
        elif not visitor.sees_everything:
            return problem(403, _NO_METRICS)
        elif given.get("name") == "operations":
            chart = charts.operations_chart(history, seconds)
        elif given.get("name") in charts.SERVER_CHARTS:
            chart = charts.server_chart(history, given["name"], seconds)
        else:
            names = ", ".join([*charts.SERVER_CHARTS, "operations", "tables"])
            raise BadSearch(f"There is no such chart. Charts: {names}.")
        return render("chart.html", visitor=visitor, chart=chart, link=flask.request.full_path)

    def _busiest(self, visitor: ConsoleUser, seconds: int) -> tuple[list[TableUnits], bool]:
        """Return the tables that the visitor can describe, those with most units first, and True if there are more."""
        reading = self._reading(visitor)
        units = charts.table_units(history, seconds)
        found, more = reading.tables()
        tables = [
            TableUnits(table, *units.get(table.name, (0.0, 0.0)))
            for table in found
            if reading.shows_metrics(table)
        ]
        return sorted(tables, key=lambda each: (-each.read - each.written, each.table.name)), more

    def _link(self, period: str, name: str) -> str:
        return flask.url_for("console.chart", name=name, range=period)


def _names(tables: Sequence[TableUnits]) -> list[str]:
    """Return the names of the tables with units. Tables of several namespaces can have one name."""
    return list(dict.fromkeys(each.table.name for each in tables if each.read or each.written))


def _period() -> tuple[str, int]:
    """Return the name and the seconds of the period that the request names. Raises BadSearch."""
    period = flask.request.args.get("range", "15m")
    if period not in charts.RANGES:
        raise BadSearch(f"There is no such period. Periods: {', '.join(charts.RANGES)}.")
    return period, charts.RANGES[period][1]
