"""The page that searches the search indexes of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flask

from tablegate.gateway.console.pages import Pages, Route, Tab, address, number_of, refusal, render
from tablegate.gateway.console.reading import TableReader
from tablegate.gateway.console.row_tables import row_table
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.features.search.index_search import (
    CODES,
    COMPARISONS,
    Comparison,
    IndexCondition,
    IndexSearch,
)
from tablegate.gateway.features.search.ranking import UNSORTED
from tablegate.gateway.features.search.schema import SearchField, SearchIndex
from tablegate.gateway.features.search.search_commands import ListSearchIndexes, SearchPage, SearchRows
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose
from tablegate.gateway.model.errors import IndexMissing, LimitExceeded, NotInstalled, NotPermitted
from tablegate.gateway.model.tables.tables import Table

SEARCHING = Purpose((Permission.SCAN,), Channel.SEARCH_INDEX)
CONDITIONS = 8
"""Maximum number of conditions of a search."""
_ROWS = 50
_LAST = 10_000
_LONGEST = 1_000
_LONGEST_PATTERN = 32
_BY_SCORE = "score"
_SECONDS = 5


@dataclass(frozen=True, slots=True)
class SearchFields:
    """The fields of the form. A condition is the name of a field, a comparison and a value."""

    index: str
    conditions: tuple[tuple[str, str, str], ...]
    sort: str
    order: str
    start: int

    @classmethod
    def of_form(cls, given: Mapping[str, str]) -> SearchFields:
        """Return the fields of a request."""
        conditions = []
        for number in range(CONDITIONS):
            name, comparison, value = (
                given.get(f"{member}{number}", "")[:_LONGEST] for member in ("field", "comparison", "value")
            )
            if name:
                conditions.append((name, comparison, value))
        start = min(number_of(given.get("start", "")), _LAST)
        return cls(
            given.get("index", ""), tuple(conditions), given.get("sort", ""), given.get("order", ""), start
        )

    def link(self, table: Table, start: int) -> str:
        """Return the URL of the same search from another result on."""
        members = {
            f"{member}{number}": text
            for number, condition in enumerate(self.conditions)
            for member, text in zip(("field", "comparison", "value"), condition, strict=True)
        }
        more = {"index": self.index, "sort": self.sort, "order": self.order, "start": start or ""}
        return address(
            "console.search", table, **members, **{name: text for name, text in more.items() if text}
        )

    def on(self, table: Table, index: SearchIndex) -> IndexSearch:
        """Return the search of an index. Raises BadSearch."""
        by_name = index.schema.by_name
        conditions = tuple(
            _condition(by_name, condition, f"{number}") for number, condition in enumerate(self.conditions)
        )
        by_score = self.sort == _BY_SCORE and self.sort not in by_name
        sort = None if by_score or not self.sort else _field(by_name, self.sort, "sort")
        if sort is not None and sort.type in UNSORTED:
            raise BadSearch(f"Results cannot be sorted by the field {sort.name}.", "sort")
        return IndexSearch(table, index, conditions, sort, by_score, self.order == "desc")


class SearchPages(Pages):
    """The form of a search of a search index, and its rows."""

    tab = Tab("search", "Search indexes", lambda table: table.rules.followed)

    def reads(self) -> Sequence[Route]:
        return (Route("/search", self.search),)

    def search(self, visitor: ConsoleUser) -> Any:
        """Show the form, and the rows if the request names an index."""
        reading = self._reading(visitor)
        table = self._table(reading, SEARCHING)
        indexes = [
            index for _, index in reading.run(ListSearchIndexes(table.namespace, table.name), SEARCHING)
        ]
        fields = SearchFields.of_form(flask.request.args)
        index = next((each for each in indexes if each.name == fields.index or not fields.index), None)
        status, problem, wrong_field, found, search = 200, "", "", None, None
        try:
            if fields.index and index is None:
                raise BadSearch(f"The table has no search index {fields.index}.", "index")
            if index is not None:
                search = fields.on(table, index)
                found = self._run(reading, search, fields.start)
        except BadSearch as error:
            status, problem, wrong_field = 400, str(error), error.field
        except NotPermitted as error:
            status, problem = 403, refusal(error)
        except IndexMissing:
            status, problem = 404, "The search index was deleted. Search again."
        except LimitExceeded:
            status, problem = 400, "The search would take too long. Add a condition that excludes more rows."
        except NotInstalled as error:
            status, problem = 400, f"The server needs the package tablegate[{error.extra}] for this index."
        return render(
            "search.html", status, visitor=visitor, table=table, indexes=indexes, index=index, fields=fields,
            most=CONDITIONS, comparisons=[each.value for each in Comparison], unsorted=UNSORTED, problem=problem,
            wrong_field=wrong_field, may=self._row_rights(reading, table),
            results=None if found is None else self._results(table, found, fields),
            codes=[] if search is None or problem else self._codes(search),
        )  # fmt: skip

    def _run(self, reading: TableReader, search: IndexSearch, start: int) -> SearchPage:
        command = SearchRows(
            search.table, search.index, search.query, search.sorters, offset=start, limit=_ROWS, counts=True,
            timeout_ms=_SECONDS * 1000,
        )  # fmt: skip
        page: SearchPage = reading.run(command, SEARCHING)
        return page

    def _results(self, table: Table, found: SearchPage, fields: SearchFields) -> dict[str, Any]:
        start = fields.start
        return {
            "table": row_table(table, self._display(table), [row.latest for row in found.rows], ()),
            "total": found.total, "start": start,
            "before": fields.link(table, max(0, start - _ROWS)) if start else "",
            "after": fields.link(table, start + _ROWS) if found.has_more and start + _ROWS <= _LAST else "",
        }  # fmt: skip

    def _codes(self, search: IndexSearch) -> list[tuple[str, str]]:
        """Return (tool, code) of a search."""
        return [
            pair
            for dialect in self._displays
            if dialect in CODES
            for pair in CODES[dialect](search, self._endpoint()).items()
        ]


def _condition(by_name: Mapping[str, SearchField], given: tuple[str, str, str], mark: str) -> IndexCondition:
    """Return a condition of the form. `mark`: the end of its fields' names. Raises BadSearch."""
    name, comparison, text = given
    field = _field(by_name, name, f"field{mark}")
    found = next((each for each in Comparison if each.value == comparison), None)
    if found is None or found not in COMPARISONS[field.type]:
        known = ", ".join(each.value for each in Comparison if each in COMPARISONS[field.type])
        raise BadSearch(
            f"A field of the type {field.type.value} is compared by: {known}.", f"comparison{mark}"
        )
    if found is Comparison.PATTERN and len(text) > _LONGEST_PATTERN:
        raise BadSearch(f"A pattern has at most {_LONGEST_PATTERN} characters.", f"value{mark}")
    condition = IndexCondition(field, found, text)
    if not condition.fits:
        raise BadSearch(f"{text!r} is no value of the type {field.type.value}.", f"value{mark}")
    return condition


def _field(by_name: Mapping[str, SearchField], name: str, given: str) -> SearchField:
    field = by_name.get(name)
    if field is None or not field.is_indexed:
        raise BadSearch(f"The search index has no field {name}.", given)
    return field


PAGES = (SearchPages,)
