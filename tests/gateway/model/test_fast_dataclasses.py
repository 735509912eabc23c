"""Our `dataclass` makes what the standard library's makes; its methods are compiled when they are first needed.

What the methods of a dataclass do: the documentation of Python's module `dataclasses`.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from gateway.model.fast_dataclasses import fast_dataclass

Decorator = Callable[..., Any]


class FieldSpec(NamedTuple):
    default: str  # "", "value" or "factory"
    init: bool
    shown: bool
    compared: bool
    hashed: bool | None
    keyword: bool


class Spec(NamedTuple):
    fields: tuple[FieldSpec, ...]
    frozen: bool
    slots: bool
    eq: bool
    finishes: bool  # has a __post_init__


_flag = st.booleans()
_fields = st.builds(
    FieldSpec, st.sampled_from(["", "value", "factory"]), st.just(True) | _flag, _flag, _flag, st.none() | _flag, _flag
)  # fmt: skip
_specs = st.builds(Spec, st.lists(_fields, max_size=5).map(tuple), _flag, _flag, _flag, _flag)


def made(decorator: Decorator, spec: Spec) -> Any:
    """A class of a specification. Fields without a default come first."""
    ordered = sorted(enumerate(spec.fields), key=lambda item: bool(item[1].default))
    members: dict[str, Any] = {"__annotations__": {f"f{number}": "Any" for number, _ in ordered}}
    for number, each in ordered:
        default: dict[str, Any] = {}
        if each.default == "value":
            default["default"] = number
        elif each.default == "factory":
            default["default_factory"] = list
        members[f"f{number}"] = dataclasses.field(
            init=each.init, repr=each.shown, compare=each.compared, hash=each.hashed, kw_only=each.keyword, **default
        )  # fmt: skip

    def finish(self: Any) -> None:
        for number, each in ordered:
            if not each.init and not each.default:
                object.__setattr__(self, f"f{number}", "given afterwards")

    members["__post_init__" if spec.finishes else "finish"] = finish
    members["__module__"], members["__qualname__"] = __name__, "Made"
    return decorator(frozen=spec.frozen, slots=spec.slots, eq=spec.eq)(type("Made", (), members))


def told(action: Callable[[], Any]) -> Any:
    """What an action gives, or the error that it raises."""
    try:
        return action()
    except Exception as error:
        return type(error), str(error)


def refused(action: Callable[[], Any]) -> bool:
    """Whether an action raises. Python 3.11 words the refusal of what is no field wrongly where there are slots (bpo-46414)."""
    return isinstance(told(action), tuple)


def behaviour(cls: Any, places: list[Any], keywords: dict[str, Any], others: list[Any]) -> list[Any]:
    """All that can be seen of a class and of two of its instances."""
    seen = [
        [
            (each.name, each.kind, each.default is each.empty)
            for each in inspect.signature(cls).parameters.values()
        ],
        cls.__match_args__,
        [each.name for each in dataclasses.fields(cls)],
        getattr(cls, "__slots__", None),
        cls.__hash__ is None,
        cls.__doc__ is not None,
    ]
    one, other = told(lambda: cls(*places, **keywords)), told(lambda: cls(*others, **keywords))
    if not isinstance(one, cls) or not isinstance(other, cls):
        return [
            *seen,
            one if not isinstance(one, cls) else None,
            other if not isinstance(other, cls) else None,
        ]
    return [
        *seen,
        told(lambda: dataclasses.asdict(one)),
        told(lambda: repr(one)),
        told(lambda: one == one),
        told(lambda: one == cls(*places, **keywords)),
        told(lambda: one == other),
        told(lambda: one == 1),
        told(
            lambda: (hash(one) == hash(cls(*places, **keywords))) if cls.__eq__ is not object.__eq__ else None
        ),
        refused(lambda: setattr(one, "f0", 7)),
        refused(lambda: setattr(one, "g", 7)),
        refused(lambda: delattr(one, "f1")),
        told(lambda: dataclasses.asdict(dataclasses.replace(other))),
        told(lambda: dataclasses.asdict(copy.copy(other))),
        told(lambda: dataclasses.asdict(copy.deepcopy(other))),
    ]


_values = st.integers(0, 2) | st.just(float("nan")) | st.lists(st.integers(0, 1), max_size=1)


@given(_specs, st.lists(_values, max_size=6), st.lists(_values, max_size=6), st.dictionaries(
    st.sampled_from([f"f{number}" for number in range(6)]), _values, max_size=3
))  # fmt: skip
def test_both_make_the_same_of_a_class(
    spec: Spec, places: list[Any], others: list[Any], keywords: dict[str, Any]
) -> None:
    general = behaviour(made(dataclasses.dataclass, spec), places, keywords, others)
    assert behaviour(made(fast_dataclass, spec), places, keywords, others) == general


@fast_dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


@fast_dataclass(frozen=True, slots=True)
class Named(Point):
    """A point with a name."""

    name: str = ""

    def __repr__(self) -> str:
        return self.name


def test_a_class_of_ours_inherits_fields_and_keeps_what_it_defines() -> None:
    assert [each.name for each in dataclasses.fields(Named)] == ["x", "y", "name"]  # type: ignore[arg-type]
    assert repr(Named(1, 2, "here")) == "here"
    assert repr(Point(1)) == "Point(x=1, y=0)"
    assert Named(1, 2, "here") != Point(1, 2)
    assert (Point.__doc__, Named.__doc__) == ("Point", "A point with a name.")
    match Named(1, 2, "here"):
        case Named(x, y, name):
            assert (x, y, name) == (1, 2, "here")


def test_instances_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Named(1, 2, "here"))) == Named(1, 2, "here")


def test_a_structure_that_holds_itself_is_shown() -> None:
    @fast_dataclass(slots=True)
    class Node:
        next: Any = None

    node = Node()
    node.next = node
    assert repr(node).endswith(".Node(next=...)")


def test_methods_are_compiled_when_they_are_first_needed() -> None:
    compiled: list[str] = []

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "compile" and str(arguments[1]).endswith("Pair>"):
            compiled.append(str(arguments[1]).partition(" ")[0])

    sys.addaudithook(note)  # stays: nobody can remove one

    @fast_dataclass(frozen=True, slots=True)
    class Pair:
        left: int
        right: int

    assert compiled == []
    one = Pair(1, 2)
    assert compiled == ["<__init__"]
    assert one == Pair(1, 2) and one != Pair(2, 2)
    assert {one: 1}[Pair(1, 2)] == 1
    assert compiled == ["<__init__", "<__eq__", "<__hash__"]
