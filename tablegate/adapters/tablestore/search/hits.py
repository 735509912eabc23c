"""Highlights and inner hits of search requests, and the messages of results.

Sources: the HighlightParameter and InnerHits pages of the service, and the classes of the Java SDK.
"""

from __future__ import annotations

import dataclasses
import re

from tablegate.adapters.tablestore.search.fields import field_of
from tablegate.adapters.tablestore.search.index_schemas import all_fields
from tablegate.adapters.tablestore.search.search_indexes import described_schema
from tablegate.adapters.tablestore.search.sorts import sorters_of
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search.hits import Details, Highlight, HighlightedField
from tablegate.gateway.features.search.ordering import FieldSort, KeySort, ScoreSort, Sorter
from tablegate.gateway.features.search.queries import InnerHits
from tablegate.gateway.features.search.schema import SearchField, SearchIndex

_TAG = re.compile(r"""[<>"'/a-zA-Z0-9]*""")
# The default order of inner hits, which the service does not document.
_BY_SCORE = (ScoreSort(),)


class HitParser:
    """Parses the highlights and inner hits of a request for an index."""

    def __init__(self, index: SearchIndex) -> None:
        self._schema = index.schema
        fields = all_fields(described_schema(index).field_schemas)
        self._highlighted = {".".join(path) for path, field in fields if field.enable_highlighting}

    def highlight(self, message: messages.Highlight) -> Highlight:
        """Return the highlight of a message. Raises ServiceError."""
        parameters = message.highlight_parameters
        if len(parameters) > limits.HIGHLIGHTED_FIELDS_MAX:
            raise invalid(
                f"The number of highlight parameters exceeds the limit: {limits.HIGHLIGHTED_FIELDS_MAX}."
            )
        is_html = message.highlight_encoder == messages.HTML_MODE
        return Highlight(tuple(self._field(each) for each in parameters), is_html)

    def _field(self, parameter: messages.HighlightParameter) -> HighlightedField:
        name = parameter.field_name
        field = field_of(self._schema, name)
        if name not in self._highlighted or field.analyzer is None:
            raise invalid(f"highlighting is not supported for field[{name}]")
        number, size = limits.FRAGMENTS_DEFAULT, limits.FRAGMENT_SIZE_DEFAULT
        if parameter.HasField("number_of_fragments"):
            number = parameter.number_of_fragments
        if parameter.HasField("fragment_size"):
            size = parameter.fragment_size
        for value, title, most in (
            (number, "number of fragments", limits.FRAGMENTS_MAX),
            (size, "fragment size", limits.FRAGMENT_SIZE_MAX),
        ):
            if not 1 <= value <= most:
                raise invalid(f"The {title} must be in range: [1, {most}].")
        tags = [
            parameter.pre_tag if parameter.HasField("pre_tag") else "<em>",
            parameter.post_tag if parameter.HasField("post_tag") else "</em>",
        ]
        if any(len(tag) > limits.TAG_MAX_CHARACTERS or not _TAG.fullmatch(tag) for tag in tags):
            raise invalid(
                f"A tag must have at most {limits.TAG_MAX_CHARACTERS} characters of < > \" ' / and letters and digits."
            )
        by_score = parameter.fragments_order == messages.SCORE
        return HighlightedField(field, tags[0], tags[1], number, size, by_score)

    def inner_hits(self, message: messages.InnerHits, path: SearchField) -> InnerHits:
        """Return the inner hits of a query on a NESTED field. Raises ServiceError."""
        limit = message.limit if message.HasField("limit") else limits.INNER_HITS_DEFAULT
        if message.offset < 0 or limit < 0 or message.offset + limit > limits.INNER_HITS_MAX:
            raise invalid(
                f"The offset and limit of inner hits must be in range: [0, {limits.INNER_HITS_MAX}]."
            )
        sorters = tuple(_inside(sorter, path) for sorter in sorters_of(message.sort, self._schema))
        highlight = self.highlight(message.highlight) if message.HasField("highlight") else None
        return InnerHits(sorters or _BY_SCORE, message.offset, limit, highlight)


def _inside(sorter: Sorter, path: SearchField) -> Sorter:
    """Return a sorter of the objects of a NESTED field, in which the path to the field is omitted."""
    if isinstance(sorter, KeySort | ScoreSort):
        return sorter
    outer = (*path.ancestors, path.name)
    if sorter.field.ancestors[: len(outer)] != outer:
        raise invalid(f"The field '{sorter.field.name}' is not inside '{path.name}'.")
    inner = sorter.field.ancestors[len(outer) :]
    sorter = dataclasses.replace(sorter, field=dataclasses.replace(sorter.field, ancestors=inner))
    if isinstance(sorter, FieldSort) and sorter.other is not None:
        sorter = dataclasses.replace(sorter, other=dataclasses.replace(sorter.other, ancestors=inner))
    return sorter


def hit_message(score: float, details: Details, place: int | None = None) -> messages.SearchHit:
    """Return the message of a result. `place`: of an object in its NESTED field."""
    return messages.SearchHit(
        score=score,
        highlight_result=messages.HighlightResult(
            highlight_fields=[
                messages.HighlightField(field_name=name, field_fragments=fragments)
                for name, fragments in details.fragments.items()
            ]
        ),
        search_inner_hits=[
            messages.SearchInnerHit(
                path=path, search_hits=[hit_message(hit.score, hit.details, hit.place) for hit in hits]
            )
            for path, hits in details.inner
        ],
        nested_doc_offset=place,
    )
