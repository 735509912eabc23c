"""The documents with the nearest vectors, found by the exact search of vector indexes in blocks of vectors."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from tablegate.gateway.model.errors import NotInstalled
from tablegate.gateway.model.search.queries import CheckTime, Nearest, matches
from tablegate.gateway.store.search.documents import FoundDocument

_BLOCK_NUMBERS = 250_000
"""Numbers of the vectors that are in memory as Python values at a time."""


def nearest(
    query: Nearest, found: Iterable[FoundDocument], check_time: CheckTime
) -> list[tuple[FoundDocument, float]]:
    """Return the documents with the most similar vectors, and their scores. Raises NotInstalled."""
    try:
        from tablegate.gateway.engine.vectors import exact_search
        from tablegate.gateway.model.values.vectors import Metric, pack
    except ModuleNotFoundError:
        raise NotInstalled("vectors") from None
    metric = query.field.metric
    target = exact_search.search_near(Metric(metric), pack(query.vector), query.limit, ())
    best = exact_search.NearestSoFar(target)
    kept: dict[int, FoundDocument] = {}
    remaining = iter(found)
    while block := list(itertools.islice(remaining, max(1, _BLOCK_NUMBERS // query.field.dimensions))):
        entries = []
        for each in block:
            document = dict(each.document or {})
            try:
                vector = pack(document.pop(query.field.name)[0])
            except OverflowError:  # a number beyond 32 bits
                continue
            entries.append((each.number, None, b"", vector))
            document[query.field.name] = [()]  # filters of groups may ask if it exists
            kept[each.number] = each._replace(document=document)
        if entries:
            vectors = exact_search.VectorBlock.of(entries)
            best.scan(exact_search.BlockPart(vectors, vectors.length))
            kept = {number: kept[number] for number, _ in best.results()}
    scored = ((kept[number], _score(metric, distance)) for number, distance in best.results())
    return [
        (each, query.weight * points)
        for each, points in scored
        if (query.min_score is None or points >= query.min_score)
        and (query.post_filter is None or matches(query.post_filter, each.document or {}, check_time))
    ]


def _score(metric: str, distance: float) -> float:
    """Return the score of the service for the distance, or dot product, of an exact search."""
    match metric:
        case "euclidean":
            return 1 / (1 + distance * distance)
        case "cosine":
            return 1 - distance / 2
    return distance
