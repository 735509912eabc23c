"""Pages of entities, spliced from the rows' bodies without decoding them: the fast path of `Shape.many`.

A body is canonical JSON without blanks (gateway/model/bodies.py). Rows of a table mostly have the same names and kinds: a
`Form`, which is a pattern that finds the values of such a body and a template that puts them into an entity. A page of one
form is then one search and one formatting per row, all of it C. What the JSON text of a value is, it stays.

Kinds that Azure sees as another or not at all, and rows whose form is rare, are for the general path (payloads.py).
tests/adapters/azuretable/test_pages.py holds the two against each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any

import orjson

from adapters.azuretable import names, values
from gateway.model.rows import Row

# A form costs as much as a hundred rows to compile: it must pay.
_ROWS_MIN, _FORMS_MAX, _MEMBERS_MAX = 16, 4, 64
_ROWS_AT_ONCE = 64  # what is copied on the way stays in the processor's cache

Marks = tuple[tuple[str, str], ...]
"""Names and tags of a body's members, in order."""


def entities(rows: Sequence[Row], annotated: bool, general: Callable[[Row], bytes]) -> list[bytes]:
    """The entities that rows with Azure's own keys are, as JSON.

    `annotated`: with minimal metadata, or with none. `general` is how a row is shown by the book.
    """
    if len(rows) < _ROWS_MIN:
        return [general(row) for row in rows]
    known = _Known(annotated, general)
    found: list[bytes] = []
    for at in range(0, len(rows), _ROWS_AT_ONCE):
        found += known.entities(rows[at : at + _ROWS_AT_ONCE])
    return found


class _Known:
    """The forms that are known while a page is written."""

    def __init__(self, annotated: bool, general: Callable[[Row], bytes]) -> None:
        self._annotated = annotated
        self._general = general
        self._forms: list[Form] = []
        self._seen: set[Marks] = set()

    def entities(self, rows: Sequence[Row]) -> Iterator[bytes]:
        """The entities that rows are. If they are all of the first form, without a look at each."""
        lines = list(_lines(rows, self._annotated))
        if self._forms:
            form = self._forms[0]
            page = b"\n".join(lines)
            found = [] if _TWO_BACKSLASHES in page else form.pattern_for(page).findall(page)
            if len(found) == len(rows):
                return form.entities(found)
        return map(self._entity, rows, lines)

    def _entity(self, row: Row, line: bytes) -> bytes:
        for form in () if _TWO_BACKSLASHES in line else self._forms:
            found = form.pattern_for(line).fullmatch(line)
            if found is not None:
                return next(form.entities([found.groups()]))
        self._learn(row)
        return self._general(row)

    def _learn(self, row: Row) -> None:
        """A form that is met for the second time will be known from then on."""
        if len(self._forms) == _FORMS_MAX:
            return
        marks = marks_of(row.body)
        if marks in self._seen:
            self._forms.append(form_of(marks, self._annotated))
        elif marks is not None:
            self._seen.add(marks)


def _lines(rows: Iterable[Row], annotated: bool) -> Iterator[bytes]:
    """What patterns are matched with: as ETag and as Timestamp when a row was written, and its body, with tabs between."""
    written_at, head = -1, b""
    for row in rows:
        modified_at = row.modified_at
        if modified_at != written_at:  # the rows of one batch have it in common
            written_at = modified_at
            moment = values.timestamp_text(written_at + values.UNIX_EPOCH_TICKS)
            head = f"{moment.replace(':', '%3A') if annotated else ''}\t{moment}\t".encode()
        yield head + row.body


# Forms


@dataclass(frozen=True, slots=True)
class Form:
    """How rows with the same names and kinds are shown.

    The groups of its pattern are ETag, Timestamp and values as they stand in a line. `arranged` puts them into the order of
    `template`: ETag, keys, Timestamp, other values; `conversions` (where it stands there, how) is for some of these.
    """

    source: bytes
    arranged: Callable[[Any], Any]
    conversions: tuple[tuple[int, Callable[[bytes], bytes]], ...]
    template: bytes

    def pattern_for(self, lines: bytes) -> re.Pattern[bytes]:
        """The pattern that finds the values in lines of this form, and nothing in others. Not for lines in which two
        backslashes follow each other: where they do not, a quotation mark behind one is part of a text."""
        return _compiled(self.source, b"\\" in lines)

    def entities(self, found: Iterable[Any]) -> Iterator[bytes]:
        """The entities whose lines the pattern matched with these groups."""
        arranged = map(self.arranged, found)
        return map(self.template.__mod__, map(self._convert, arranged) if self.conversions else arranged)

    def _convert(self, groups: tuple[bytes, ...]) -> tuple[bytes, ...]:
        made = [*groups]
        for at, convert in self.conversions:
            made[at] = convert(made[at])
        return tuple(made)


def marks_of(body: bytes) -> Marks | None:
    """The names and tags of a body, or None: too many, or kinds that are not just copied."""
    members = orjson.loads(body)
    marks = tuple((name, tag) for name, member in members.items() for tag in member)
    if len(marks) > _MEMBERS_MAX or any(tag not in _WRITERS for _, tag in marks):
        return None
    return marks


@lru_cache(maxsize=256)
def form_of(marks: Marks, annotated: bool) -> Form:
    """The form of bodies with these names and tags."""
    patterns: list[bytes] = []
    template = b'{"odata.etag":"W/\\"datetime\'%s\'\\"",' if annotated else b"{%s"
    template += b'"PartitionKey":"%s","RowKey":"%s","Timestamp":"%s"'
    groups = {name: at for at, (name, _) in enumerate(marks, start=2)}
    order = [0, groups.pop("PartitionKey"), groups.pop("RowKey"), 1]
    conversions: list[tuple[int, Callable[[bytes], bytes]]] = []
    for name, tag in marks:
        value = b"([a-z]+)" if tag == "BOOL" else _TEXT
        patterns.append(_literal(name) + b':\\{"' + tag.encode() + b'":' + value + b"\\}")
        if name in groups:
            member, convert = _WRITERS[tag](names.spelled(name), annotated)
            template += b"," + member
            if convert is not None:
                conversions.append((len(order), convert))
            order.append(groups[name])
    return Form(b",".join(patterns), itemgetter(*order), tuple(conversions), template + b"}")


@lru_cache(maxsize=256)
def _compiled(source: bytes, is_escaped: bool) -> re.Pattern[bytes]:
    text = _ESCAPED if is_escaped else _UNESCAPED
    return re.compile(_LINE % source.replace(_TEXT, text), re.MULTILINE)


_TEXT = b'"(<text>)"'
_UNESCAPED = b'"([^"]*)"'
_ESCAPED = rb'"([^"]*(?:(?<=\\)"[^"]*)*)"'
_TWO_BACKSLASHES = b"\\\\"
_LINE = b"^([^\t]*)\t([^\t]*)\t\\{%s\\}$"

_Member = tuple[bytes, Callable[[bytes], bytes] | None]
"""A member as a piece of a template, and what makes the text of the body into what is put there (None: nothing)."""


def _text(name: str, annotated: bool) -> _Member:
    return _json(name) + b':"%s"', None


def _plain(name: str, annotated: bool) -> _Member:
    return _json(name) + b":%s", None


def _typed(edm: bytes, convert: Callable[[bytes], bytes] | None, name: str, annotated: bool) -> _Member:
    annotation = _json(name + "@odata.type") + b':"' + edm + b'",' if annotated else b""
    return annotation + _json(name) + b':"%s"', convert


def _double(name: str, annotated: bool) -> _Member:
    def member(data: bytes) -> bytes:
        wire, edm = values.spell_tagged("D", data)
        shown = {name + "@odata.type": edm, name: wire} if annotated and edm is not None else {name: wire}
        return orjson.dumps(shown)[1:-1]

    return b"%s", member


def _datetime(data: bytes) -> bytes:
    return values.datetime_text(int(data)).encode()


def _literal(name: str) -> bytes:
    return re.escape(orjson.dumps(name))


def _json(name: str) -> bytes:
    return orjson.dumps(name).replace(b"%", b"%%")


_WRITERS: dict[str, Callable[[str, bool], _Member]] = {
    "S": _text,
    "I32": _plain,
    "BOOL": _plain,
    "D": _double,
    "I64": partial(_typed, b"Edm.Int64", None),
    "G": partial(_typed, b"Edm.Guid", None),
    "B": partial(_typed, b"Edm.Binary", None),
    "DT": partial(_typed, b"Edm.DateTime", _datetime),
}
