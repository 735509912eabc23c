"""Pages with charts."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import flask

from tablegate.gateway.console import charts
from tablegate.gateway.console.pages import Pages, Route
from tablegate.gateway.console.reading import DESCRIBING
from tablegate.gateway.console.rendering import problem, render
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.observability.metric_history import history

_NO_FIGURES = (
    "Your key is not allowed to describe the tables of this chart. Ask the administrator for a grant."
)


class FigurePages(Pages):
    """Charts of the server, its operations and tables."""

    def reads(self) -> Sequence[Route]:
        return Route("/figures", self.figures), Route("/chart", self.chart)

    def figures(self, visitor: ConsoleUser) -> Any:
        """Show figures of the server to an unrestricted visitor, and of the tables that the visitor can describe."""
        history.sample_if_due()
        reading = self._reading(visitor)
        period, seconds = _period()
        units = charts.table_units(history, seconds)
        found, more = reading.tables()
        tables = [
            (table, *units.get(table.name, (0.0, 0.0))) for table in found if reading.shows_figures(table)
        ]
        tables.sort(key=lambda each: (-each[1] - each[2], each[0].name))
        drawn, operations = [], []
        if visitor.sees_everything:
            drawn = [
                (charts.server_chart(history, name, seconds), self._link(period, name))
                for name in charts.SERVER_CHARTS
            ]
            drawn.append((charts.operations_chart(history, seconds), self._link(period, "operations")))
            operations = charts.operation_figures(history, seconds)
        return render(
            "figures.html", visitor=visitor, charts=drawn, operations=operations, tables=tables,
            has_more_tables=more, period=period, periods=charts.RANGES, shows_server=visitor.sees_everything,
            own_address=functools.partial(flask.url_for, "console.figures"),
        )  # fmt: skip

    def chart(self, visitor: ConsoleUser) -> Any:
        """Return one chart: of a table if the request has a namespace, otherwise of the server."""
        history.sample_if_due()
        given = flask.request.args
        _, seconds = _period()
        if "namespace" in given:
            reading = self._reading(visitor)
            table = self._table(reading, DESCRIBING)
            if not reading.shows_figures(table):
                return problem(403, _NO_FIGURES)
            chart = charts.table_chart(history, table.name, seconds)
        elif not visitor.sees_everything:
            return problem(403, _NO_FIGURES)
        elif given.get("name") == "operations":
            chart = charts.operations_chart(history, seconds)
        elif given.get("name") in charts.SERVER_CHARTS:
            chart = charts.server_chart(history, given["name"], seconds)
        else:
            names = ", ".join([*charts.SERVER_CHARTS, "operations"])
            raise BadSearch(f"There is no such chart. Charts: {names}.")
        return render("chart.html", visitor=visitor, chart=chart, link=flask.request.full_path)

    def _link(self, period: str, name: str) -> str:
        return flask.url_for("console.chart", name=name, range=period)


def _period() -> tuple[str, int]:
    """Return the name and the seconds of the period that the request names. Raises BadSearch."""
    period = flask.request.args.get("range", "15m")
    if period not in charts.RANGES:
        raise BadSearch(f"There is no such period. Periods: {', '.join(charts.RANGES)}.")
    return period, charts.RANGES[period][1]
