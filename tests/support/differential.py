"""Comparison of two servers: the same requests go to both, one after the other, and each pair of answers must agree."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.support.foreign_servers import foreign_server
from tests.support.running import start

Asked = tuple[str, Mapping[str, Any]]
"""A request: its operation and its parameters."""


@dataclass(frozen=True)
class Answer:
    """The part of an answer that must agree. `code` and `text` are those of an error, else empty."""

    status: int
    code: str
    text: str
    body: Any


@dataclass(frozen=True)
class Known:
    """A known difference: the cases that it explains, and the public source for our answer."""

    what: str
    source: str
    explains: Callable[[Asked, Answer, Answer], bool]


@contextlib.contextmanager
def both_servers(foreign: str, folder: Path, template: Path, **settings: Any) -> Iterator[tuple[str, str]]:
    """Start a server of ours on a copy of a SQLite file, and a foreign one. Yields their URLs."""
    database = shutil.copy(template, folder / "ours.sqlite")
    with foreign_server(foreign, folder) as theirs:
        ours = start(f"sqlite:///{database}", **settings)
        yield ours.url, theirs
        ours.stop()


def compare(
    sent: Sequence[Asked],
    ours: Callable[[Asked], Answer],
    theirs: Callable[[Asked], Answer],
    known: Sequence[Known],
) -> None:
    """Raise AssertionError with the list of requests if two answers differ in a way that is not known.

    If one server refuses a request that the other one accepts, they hold different rows. The comparison ends there.
    """
    for number, asked in enumerate(sent):
        here, there = ours(asked), theirs(asked)
        if here == there:
            continue
        if any(each.explains(asked, here, there) for each in known):
            if (here.status < 400) != (there.status < 400):
                return
            continue
        lines = [f"{operation} {json.dumps(given)}" for operation, given in sent[: number + 1]]
        raise AssertionError(
            "\n".join(["answers differ after", *lines, f"ours:   {here}", f"theirs: {there}"])
        )


def many(requests: st.SearchStrategy[Asked]) -> st.SearchStrategy[list[Asked]]:
    """Lists of about 20 requests, which shrink to one. hypothesis draws lists of about 6."""
    some = st.lists(requests, min_size=1, max_size=8)
    return st.lists(some, min_size=1, max_size=8).map(
        lambda parts: [asked for part in parts for asked in part]
    )
