"""Pages of entities, spliced from the rows' bodies without decoding them: the fast path of `Shape.many`.

A body is canonical JSON without blanks (gateway/model/bodies.py). Rows of a table mostly have the same names and kinds: a
`Form`, which is a pattern that finds the values of such a body, and the bytes between which an entity has them. Rows of one
form are then one search and one join, all of it C. What the JSON text of a value is, it stays.

Kinds that Azure sees as another or not at all, and rows whose form is rare, are for the general path (payloads.py).
tests/adapters/azuretable/test_pages.py holds the two against each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import orjson

from adapters.azuretable import names, values
from gateway.model.rows import Row

# A form costs as much as a hundred rows to compile: it must pay.
_ROWS_MIN, _FORMS_MAX, _MEMBERS_MAX = 16, 4, 64
_ROWS_TO_LEARN = 2  # by then a page of one form knows it
_ROWS_AT_ONCE = 64  # what is copied on the way stays in the processor's cache

Convert = Callable[[bytes], bytes]
Marks = tuple[tuple[str, str], ...]
"""Names and tags of a body's members, in order."""


def entities(rows: Sequence[Row], annotated: bool, general: Callable[[Row], bytes]) -> bytes:
    """The entities that rows with Azure's own keys are, as JSON, with commas between them.

    `annotated`: with minimal metadata, or with none. `general` is how a row is shown by the book.
    """
    if len(rows) < _ROWS_MIN:
        return b",".join(map(general, rows))
    known = _Known(annotated, general)
    found = [known.entities(rows[:_ROWS_TO_LEARN])]
    for at in range(_ROWS_TO_LEARN, len(rows), _ROWS_AT_ONCE):
        found.append(known.entities(rows[at : at + _ROWS_AT_ONCE]))
    return b",".join(found)


class _Known:
    """The forms that are known while a page is written."""

    def __init__(self, annotated: bool, general: Callable[[Row], bytes]) -> None:
        self._annotated = annotated
        self._general = general
        self._forms: list[Form] = []
        self._seen: set[Marks] = set()

    def entities(self, rows: Sequence[Row]) -> bytes:
        """The entities that rows are. If they are all of the first form, without a look at each."""
        bodies = [row.body for row in rows]
        moments = _moments(rows, self._annotated)
        if self._forms:
            form = self._forms[0]
            page = b"\n".join(bodies)
            pattern = form.pattern_for(page)
            found = [] if pattern is None else pattern.findall(page)
            if len(found) == len(rows):
                return form.entities(moments, found)
        return b",".join(map(self._entity, rows, bodies, moments))

    def _entity(self, row: Row, body: bytes, moment: Moment) -> bytes:
        for form in self._forms:
            pattern = form.pattern_for(body)
            if pattern is None:
                return self._general(row)
            found = pattern.fullmatch(body)
            if found is not None:
                return form.entities([moment], [found.groups()])
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


Moment = tuple[bytes, bytes]
"""When a row was written, as it stands in its ETag (empty: it is shown with none) and as Timestamp."""


def _moments(rows: Iterable[Row], annotated: bool) -> list[Moment]:
    """The moments of rows, of which those of one batch have one in common."""
    written_at = [row.modified_at for row in rows]
    known = {ticks: _moment(ticks, annotated) for ticks in set(written_at)}
    return [known[ticks] for ticks in written_at]


def _moment(written_at: int, annotated: bool) -> Moment:
    timestamp = values.timestamp_text(written_at + values.UNIX_EPOCH_TICKS)
    return timestamp.replace(":", "%3A").encode() if annotated else b"", timestamp.encode()


# Forms


@dataclass(frozen=True, slots=True)
class Form:
    """How rows with the same names and kinds are shown.

    The groups of its pattern are the values as they stand in a body. `columns` says which value an entity has where: 0 for
    the ETag, 1 for the Timestamp, from 2 on the groups; and how its text is converted, if it is. `glue` is what stands before
    the first of them, between them, and after the last.
    """

    source: bytes
    columns: tuple[tuple[int, Convert | None], ...]
    glue: tuple[bytes, ...]

    def pattern_for(self, lines: bytes) -> re.Pattern[bytes] | None:
        """The pattern that finds the values in bodies of this form, one a line, and nothing in others. None: two backslashes
        follow each other; where they do not, a quotation mark behind one is part of a text."""
        if b"\\" not in lines:  # by far the faster search
            return _compiled(self.source, False)
        return None if _TWO_BACKSLASHES in lines else _compiled(self.source, True)

    def entities(self, moments: Sequence[Moment], found: Sequence[tuple[bytes, ...]]) -> bytes:
        """The entities that were written at these moments and in whose bodies the pattern found these groups, with commas
        between them."""
        values_of = [*zip(*moments, strict=True), *zip(*found, strict=True)]
        first, *between, last = self.glue
        count, width = len(found), 2 * len(self.columns)
        pieces = [last + b"," + first] * (count * width)
        for at, (which, convert) in enumerate(self.columns):
            column = values_of[which]
            pieces[2 * at + 1 :: width] = column if convert is None else map(convert, column)
        for at, glue in enumerate(between, start=1):
            pieces[2 * at :: width] = [glue] * count
        pieces[0] = first
        pieces.append(last)
        return b"".join(pieces)


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
    groups = {name: at for at, (name, _) in enumerate(marks, start=2)}
    glue = (
        [b'{"odata.etag":"W/\\"datetime\'', b'\'\\"","PartitionKey":"']
        if annotated
        else [b'{"PartitionKey":"']
    )
    glue += [b'","RowKey":"', b'","Timestamp":"', b'"']
    columns: list[tuple[int, Convert | None]] = [(0, None)] if annotated else []
    columns += [(groups.pop("PartitionKey"), None), (groups.pop("RowKey"), None), (1, None)]
    for name, tag in marks:
        value = b"([a-z]+)" if tag == "BOOL" else _TEXT
        patterns.append(_literal(name) + b':\\{"' + tag.encode() + b'":' + value + b"\\}")
        if name in groups:
            before, after, convert = _WRITERS[tag](names.spelled(name), annotated)
            glue[-1] += b"," + before
            glue.append(after)
            columns.append((groups[name], convert))
    glue[-1] += b"}"
    return Form(b",".join(patterns), tuple(columns), tuple(glue))


@lru_cache(maxsize=256)
def _compiled(source: bytes, is_escaped: bool) -> re.Pattern[bytes]:
    text = _ESCAPED if is_escaped else _UNESCAPED
    return re.compile(_LINE % source.replace(_TEXT, text), re.MULTILINE)


_TEXT = b'"(<text>)"'
_UNESCAPED = b'"([^"]*)"'
_ESCAPED = rb'"([^"]*(?:(?<=\\)"[^"]*)*)"'
_TWO_BACKSLASHES = b"\\\\"
_LINE = rb"^\{%s\}$"

_Member = tuple[bytes, bytes, Convert | None]
"""A member: what stands before and after the text of its value, and what makes that of the text in the body (None: nothing)."""


def _text(name: str, annotated: bool) -> _Member:
    return orjson.dumps(name) + b':"', b'"', None


def _plain(name: str, annotated: bool) -> _Member:
    return orjson.dumps(name) + b":", b"", None


def _typed(edm: bytes, convert: Convert | None, name: str, annotated: bool) -> _Member:
    annotation = orjson.dumps(name + "@odata.type") + b':"' + edm + b'",' if annotated else b""
    return annotation + orjson.dumps(name) + b':"', b'"', convert


def _double(name: str, annotated: bool) -> _Member:
    def member(data: bytes) -> bytes:
        wire, edm = values.spell_tagged("D", data)
        shown = {name + "@odata.type": edm, name: wire} if annotated and edm is not None else {name: wire}
        return orjson.dumps(shown)[1:-1]

    return b"", b"", member


def _datetime(data: bytes) -> bytes:
    return values.datetime_text(int(data)).encode()


def _literal(name: str) -> bytes:
    return re.escape(orjson.dumps(name))


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
