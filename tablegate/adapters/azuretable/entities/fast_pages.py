"""Pages of entities, spliced from the rows' bodies without decoding: the fast path of `EntityFormat.many`.

A body is canonical JSON without blanks (gateway/model/values/bodies.py). Most rows of a table have the same names and
kinds. For each such set, a `BodyTemplate` has a pattern that finds the values in a body, and the bytes between them in
an entity. Rows of one template then take one search and one join, both in C. The JSON text of a value is copied
unchanged.

The general path (entity_renderer.py) renders kinds that Azure converts or hides, and rows with rare names and kinds.
tests/adapters/azuretable/entities/test_fast_pages.py compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import orjson

from tablegate.adapters.azuretable import keys, values
from tablegate.gateway.model.tables.pages import ConcatenatedRows, Concatenation, Page

# Compiling a template takes as long as rendering a hundred rows.
_ROWS_MIN, _TEMPLATES_MAX, _MEMBERS_MAX = 16, 4, 64
_ROWS_TO_LEARN = 2  # enough to detect a page of one template
_ROWS_AT_ONCE = 64  # the intermediate copies stay in the processor's cache
CONCATENATION = Concatenation("\n", native=False, moments=True)
"""The form in which rows are read. A body omits some facts of its row (Read.concatenation), and Azure shows none of these."""

Convert = Callable[[bytes], bytes]
MemberTags = tuple[tuple[str, str], ...]
"""The names and tags of a body's members, in order."""


def entities(page: Page, annotated: bool, general: Callable[[bytes, int], bytes]) -> list[bytes]:
    """Return the entities of rows with Azure's own keys, as pieces of JSON to be joined with commas.

    `annotated`: with minimal metadata instead of none. `general` renders a row's body with the time of its write on the
    general path.
    """
    writer = _PageWriter(annotated, general)
    for concatenated in page.concatenated:
        writer.add_concatenated(concatenated)
    writer.add([row.body for row in page.rows], [row.modified_at for row in page.rows])
    return writer.found


class _PageWriter:
    """A page being written, and the templates learned so far. `found`: its pieces."""

    def __init__(self, annotated: bool, general: Callable[[bytes, int], bytes]) -> None:
        self._annotated = annotated
        self._general = general
        self._templates: list[BodyTemplate] = []
        self._seen: set[MemberTags] = set()
        self._is_uniform = True
        self.found: list[bytes] = []

    def add_concatenated(self, concatenated: ConcatenatedRows) -> None:
        """Add concatenated rows, in one step if all of them match the first template, else line by line."""
        if concatenated.number >= _ROWS_MIN and self._is_uniform:
            if not self._templates:
                for body in concatenated.bodies.split(b"\n", _ROWS_TO_LEARN)[:_ROWS_TO_LEARN]:
                    self._learn(body)
            self._is_uniform = self._add_alike(concatenated.bodies, concatenated.modified_at)
            if self._is_uniform:
                return
        self.add(concatenated.bodies.split(b"\n"), concatenated.modified_at)

    def add(self, bodies: Sequence[bytes], written_at: Sequence[int]) -> None:
        """Add rows. Most of them match a few templates."""
        if len(bodies) < _ROWS_MIN and not self._templates:
            self.found += map(self._general, bodies, written_at)
            return
        at = 0 if self._templates else _ROWS_TO_LEARN
        self.found += map(self._entity, bodies[:at], written_at[:at])
        for start in range(at, len(bodies), _ROWS_AT_ONCE):
            some, moments = bodies[start : start + _ROWS_AT_ONCE], written_at[start : start + _ROWS_AT_ONCE]
            if not self._add_alike(b"\n".join(some), moments):
                self.found += map(self._entity, some, moments)

    def _add_alike(self, lines: bytes, written_at: Sequence[int]) -> bool:
        """Add rows if all of them match the first template. Return False if not."""
        if not self._templates:
            return False
        pattern = self._templates[0].pattern_for(lines)
        values_of = [] if pattern is None else pattern.findall(lines)
        if len(values_of) != len(written_at):
            return False
        self.found.append(self._templates[0].entities(written_at, values_of))
        return True

    def _entity(self, body: bytes, written_at: int) -> bytes:
        for template in self._templates:
            pattern = template.pattern_for(body)
            if pattern is None:
                return self._general(body, written_at)
            match = pattern.fullmatch(body)
            if match is not None:
                return template.entities([written_at], [match.groups()])
        self._learn(body)
        return self._general(body, written_at)

    def _learn(self, body: bytes) -> None:
        """Create a template for names and kinds that occur for the second time."""
        if len(self._templates) == _TEMPLATES_MAX:
            return
        member_tags = member_tags_of(body)
        if member_tags in self._seen:
            self._templates.append(template_of(member_tags, self._annotated))
        elif member_tags is not None:
            self._seen.add(member_tags)


# Templates


@dataclass(frozen=True, slots=True)
class BodyTemplate:
    """A template for rows with the same names and kinds.

    The groups of its pattern are the values in a body. `columns` has the group of each member of the entity, and its
    conversion, if any. The first two are the keys. `glue` has the bytes after each. `_edges` adds those before the
    first and after the second, which contain the time of the write.
    """

    source: bytes
    columns: tuple[tuple[int, Convert | None], ...]
    glue: tuple[bytes, ...]
    annotated: bool

    def pattern_for(self, lines: bytes) -> re.Pattern[bytes] | None:
        """Return the pattern that finds the values in bodies of this template, one per line.

        It matches no other body. None if two backslashes follow each other. Otherwise, a quotation mark after a
        backslash is part of a text.
        """
        if b"\\" not in lines:  # by far the faster search
            return _compiled(self.source, False)
        return None if _TWO_BACKSLASHES in lines else _compiled(self.source, True)

    def entities(self, written_at: Sequence[int], value_rows: Sequence[tuple[bytes, ...]]) -> bytes:
        """Return the entities for these write times and pattern groups, with commas between them."""
        # Rows of one batch have the same time.
        edges = {ticks: self._edges(ticks) for ticks in set(written_at)}
        values_of = [*zip(*value_rows, strict=True)]
        count, width = len(value_rows), 2 * len(self.columns) + 1
        pieces = [b""] * (count * width)
        pieces[::width] = [edges[ticks][0] for ticks in written_at]
        for position, (group, convert) in enumerate(self.columns):
            column = values_of[group]
            pieces[2 * position + 1 :: width] = column if convert is None else map(convert, column)
        for position, glue in enumerate(self.glue):
            pieces[2 * position + 2 :: width] = [glue] * count
        pieces[4::width] = [edges[ticks][1] for ticks in written_at]
        pieces[-1] = pieces[-1].removesuffix(b",")
        return b"".join(pieces)

    def _edges(self, ticks: int) -> tuple[bytes, bytes]:
        """Return the bytes before PartitionKey and after RowKey in an entity written at this time."""
        timestamp = values.timestamp_text(ticks + values.UNIX_EPOCH_TICKS).encode()
        behind = b'","Timestamp":"%s"%s' % (timestamp, self.glue[1])
        if not self.annotated:
            return b'{"PartitionKey":"', behind
        etag = timestamp.replace(b":", b"%3A")
        return b'{"odata.etag":"W/\\"datetime\'%s\'\\"","PartitionKey":"' % etag, behind


def member_tags_of(body: bytes) -> MemberTags | None:
    """Return the names and tags of a body. None if there are too many, or kinds that cannot be copied."""
    members = orjson.loads(body)
    member_tags = tuple((name, tag) for name, member in members.items() for tag in member)
    if len(member_tags) > _MEMBERS_MAX or any(tag not in _WRITERS for _, tag in member_tags):
        return None
    return member_tags


@lru_cache(maxsize=256)
def template_of(member_tags: MemberTags, annotated: bool) -> BodyTemplate:
    """Return the template of bodies with these names and tags."""
    patterns: list[bytes] = []
    groups = {name: at for at, (name, _) in enumerate(member_tags)}
    glue = [b'","RowKey":"', b""]
    columns: list[tuple[int, Convert | None]] = [
        (groups.pop(name), None) for name in ("PartitionKey", "RowKey")
    ]
    for name, tag in member_tags:
        value = b"([a-z]+)" if tag == "BOOL" else _TEXT
        patterns.append(_literal(name) + b':\\{"' + tag.encode() + b'":' + value + b"\\}")
        if name in groups:
            before, after, convert = _WRITERS[tag](keys.spelled(name), annotated)
            glue[-1] += b"," + before
            glue.append(after)
            columns.append((groups[name], convert))
    glue[-1] += b"},"
    return BodyTemplate(b",".join(patterns), tuple(columns), tuple(glue), annotated)


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
"""A member: the bytes before and after the text of its value, and the conversion of that text (None if copied)."""


def _text(name: str, annotated: bool) -> _Member:
    return orjson.dumps(name) + b':"', b'"', None


def _plain(name: str, annotated: bool) -> _Member:
    return orjson.dumps(name) + b":", b"", None


def _typed_member(edm: bytes, convert: Convert | None, name: str, annotated: bool) -> _Member:
    annotation = orjson.dumps(name + "@odata.type") + b':"' + edm + b'",' if annotated else b""
    return annotation + orjson.dumps(name) + b':"', b'"', convert


def _double(name: str, annotated: bool) -> _Member:
    def member(data: bytes) -> bytes:
        wire, edm = values.spell_tagged("D", data)
        members = {name + "@odata.type": edm, name: wire} if annotated and edm is not None else {name: wire}
        return orjson.dumps(members)[1:-1]

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
    "I64": partial(_typed_member, b"Edm.Int64", None),
    "G": partial(_typed_member, b"Edm.Guid", None),
    "B": partial(_typed_member, b"Edm.Binary", None),
    "DT": partial(_typed_member, b"Edm.DateTime", _datetime),
}
