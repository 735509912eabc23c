"""Regular expressions that clients may send: searched in time linear in the text, whatever the pattern.

Python's own engine backtracks, so that a few characters of a client's pattern could hold the server for minutes. Here a
pattern is compiled to a small program and all ways through it are followed at once, character by character (Thompson's
construction, with Pike's bookkeeping for the one group that is kept). Only the parsing is Python's. What cannot be done that
way (back references, look-around, possessive repeats) is a BadPattern.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from re import _constants as codes
from re import _parser as parser
from typing import Any

PROGRAM_MAX_STEPS = 1_000
TEXT_MAX_CHARACTERS = 65_536
"""Only so much of a text is searched: about a tenth of a second's work for an everyday pattern."""

Test = Callable[[str], bool]


class BadPattern(ValueError):
    """Not a regular expression, or none of the kind this engine runs."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that has been checked. Raises BadPattern."""

    source: str

    def __post_init__(self) -> None:
        _compiled(self.source)

    def find(self, text: str) -> str | None:
        """The leftmost match's first group, or the whole match where there is no group; None without a match."""
        return _run(_compiled(self.source), text[:TEXT_MAX_CHARACTERS])


@dataclass(frozen=True, slots=True)
class _Character:
    test: Test


@dataclass(frozen=True, slots=True)
class _Anchor:
    test: Callable[[str, int], bool]


@dataclass(slots=True)
class _Fork:
    """Go on at both; what comes first is preferred."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class _Save:
    """Remember where the kept group begins (0) or ends (1)."""

    slot: int


_Step = _Character | _Anchor | _Fork | _Save | None  # None: a match
_Thread = tuple[int, int, int]  # step, where the kept group began and ended (-1: not yet)


@lru_cache(maxsize=256)
def _compiled(source: str) -> tuple[_Step, ...]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's parser warns of what may mean something else one day
            tree = parser.parse(source)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadPattern(str(error)) from None
    steps: list[_Step] = []
    groups = tree.state.groups - 1
    if not groups:
        steps.append(_Save(0))
    try:
        _add_sequence(tree, steps)
    except RecursionError:
        raise BadPattern("nested too deep") from None
    if not groups:
        steps.append(_Save(1))
    steps.append(None)
    return tuple(steps)


def _add_sequence(tree: Any, steps: list[_Step]) -> None:
    for operation, argument in tree:
        _add(operation, argument, steps)
        if len(steps) > PROGRAM_MAX_STEPS:
            raise BadPattern("too long")


def _add(operation: Any, argument: Any, steps: list[_Step]) -> None:
    if operation is codes.SUBPATTERN:
        group, added_flags, removed_flags, inner = argument
        if added_flags or removed_flags:
            raise BadPattern("flags")
        if group == 1:
            steps.append(_Save(0))
        _add_sequence(inner, steps)
        if group == 1:
            steps.append(_Save(1))
    elif operation is codes.BRANCH:
        _add_branches(argument[1], steps)
    elif operation is codes.MAX_REPEAT or operation is codes.MIN_REPEAT:
        least, most, inner = argument
        _add_repeat(
            (least, None if most is codes.MAXREPEAT else most), operation is codes.MAX_REPEAT, inner, steps
        )
    elif operation is codes.AT and argument in _ANCHORS:
        steps.append(_Anchor(_ANCHORS[argument]))
    else:
        steps.append(_Character(_test_of(operation, argument)))


def _add_branches(branches: list[Any], steps: list[_Step]) -> None:
    ends = []
    for branch in branches[:-1]:
        fork = _Fork(len(steps) + 1, 0)
        steps.append(fork)
        _add_sequence(branch, steps)
        end = _Fork(0, 0)
        steps.append(end)
        ends.append(end)
        fork.second = len(steps)
    _add_sequence(branches[-1], steps)
    for end in ends:
        end.first = end.second = len(steps)


def _add_repeat(times: tuple[int, int | None], is_greedy: bool, inner: Any, steps: list[_Step]) -> None:
    least, most = times
    for _ in range(least):
        before = len(steps)
        _add_sequence(inner, steps)
        if len(steps) == before:
            return  # nothing, however often
        if len(steps) > PROGRAM_MAX_STEPS:
            raise BadPattern("too long")
    forks = []
    for _ in range(1 if most is None else most - least):
        fork = _Fork(0, 0)
        start = len(steps)
        steps.append(fork)
        forks.append((fork, start + 1))
        _add_sequence(inner, steps)
        if most is None:
            steps.append(_Fork(start, start))
        if len(steps) > PROGRAM_MAX_STEPS:
            raise BadPattern("too long")
    for fork, into in forks:
        past = len(steps)
        fork.first, fork.second = (into, past) if is_greedy else (past, into)


def _test_of(operation: Any, argument: Any) -> Test:
    if operation is codes.LITERAL:
        wanted = chr(argument)
        return lambda character: character == wanted
    if operation is codes.NOT_LITERAL:
        unwanted = chr(argument)
        return lambda character: character != unwanted
    if operation is codes.ANY:
        return lambda character: character != "\n"
    if operation is codes.IN:
        negated = bool(argument) and argument[0][0] is codes.NEGATE
        tests = [_member_test(*member) for member in argument[negated:]]
        return lambda character: any(test(character) for test in tests) is not negated
    raise BadPattern(f"{operation} is not supported")


def _member_test(operation: Any, argument: Any) -> Test:
    if operation is codes.RANGE:
        low, high = map(chr, argument)
        return lambda character: low <= character <= high
    if operation is codes.CATEGORY and argument in _CATEGORIES:
        match = re.compile(_CATEGORIES[argument]).match
        return lambda character: match(character) is not None
    return _test_of(operation, argument)


_CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}

_ANCHORS: dict[Any, Callable[[str, int], bool]] = {
    codes.AT_BEGINNING: lambda text, at: at == 0,
    codes.AT_BEGINNING_STRING: lambda text, at: at == 0,
    codes.AT_END: lambda text, at: at == len(text) or (at == len(text) - 1 and text[at] == "\n"),
    codes.AT_END_STRING: lambda text, at: at == len(text),
}


def _run(steps: tuple[_Step, ...], text: str) -> str | None:
    """Follow all ways at once; earlier threads are preferred, and a match drops those behind it."""
    threads: list[_Thread] = []
    found: tuple[int, int] | None = None
    for at in range(len(text) + 1):
        seen: set[int] = set()
        ready: list[_Thread] = []
        for thread in threads:
            _follow(steps, thread, (text, at), ready, seen)
        if found is None:
            _follow(steps, (0, -1, -1), (text, at), ready, seen)
        threads = []
        character = text[at : at + 1]
        for number, begin, end in ready:
            step = steps[number]
            if step is None:
                found = begin, end
                break
            assert isinstance(step, _Character)
            if character and step.test(character):
                threads.append((number + 1, begin, end))
        if not threads and found is not None:
            break
    if found is None or found[0] < 0:
        return None
    return text[found[0] : found[1]]


def _follow(
    steps: tuple[_Step, ...], thread: _Thread, place: tuple[str, int], ready: list[_Thread], seen: set[int]
) -> None:
    """Add to `ready` the character tests and matches that a thread reaches without reading a character."""
    stack = [thread]
    while stack:
        number, begin, end = stack.pop()
        if number in seen:
            continue
        seen.add(number)
        match steps[number]:
            case _Fork(first, second):
                stack.append((second, begin, end))
                stack.append((first, begin, end))
            case _Save(slot):
                stack.append((number + 1, place[1], end) if slot == 0 else (number + 1, begin, place[1]))
            case _Anchor(test):
                if test(*place):
                    stack.append((number + 1, begin, end))
            case _:
                ready.append((number, begin, end))
