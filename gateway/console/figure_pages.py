"""Pages with charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flask

from tablegate.gateway.console.charts import CHARTS, MetricHistory
from tablegate.gateway.console.pages import Pages, Route
from tablegate.gateway.console.reading import DESCRIBING
from tablegate.gateway.console.rendering import problem, render
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.dialect import Gateway

_NO_FIGURES = (
    "Your key is not allowed to describe the tables of this chart. Ask the administrator for a grant."
)
_CHARTS_OF_TABLES = 20


class FigurePages(Pages):
    """Charts of the server and of tables."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self._recorder = MetricHistory()

    def reads(self) -> Sequence[Route]:
        return (
            Route("/figures", self.figures),
            Route("/chart.svg", self.chart),
        )

    def figures(self, visitor: ConsoleUser) -> Any:
        """Show charts of the server to an unrestricted visitor, and of the tables that the visitor can describe."""
        reading = self._reading(visitor)
        found, _ = reading.tables()
        tables = [table for table in found if reading.shows_figures(table)][:_CHARTS_OF_TABLES]
        charts = list(CHARTS) if visitor.sees_everything else []
        self._recorder.look(table.name for table in tables)
        return render("figures.html", visitor=visitor, charts=charts, tables=tables)

    def chart(self, visitor: ConsoleUser) -> Any:
        """Return one chart: of a table if the request has a namespace, otherwise of the server."""
        given, drawn = flask.request.args, None
        if "namespace" in given:
            reading = self._reading(visitor)
            table = self._table(reading, DESCRIBING)
            if reading.shows_figures(table):
                drawn = self._recorder.chart_of_table(table.name)
        elif visitor.sees_everything:
            drawn = self._recorder.chart(given.get("name", ""))
        return flask.Response(drawn, mimetype="image/svg+xml") if drawn else problem(403, _NO_FIGURES)
