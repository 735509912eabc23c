"""Functions of documents. A query changes scores with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tablegate.gateway.features.search import field_values
from tablegate.gateway.features.search.documents import Document
from tablegate.gateway.features.search.schema import FieldType, SearchField


class Modifier(Enum):
    """The function that is applied to a number."""

    NONE = "none"
    LOG = "log"
    LOG1P = "log1p"
    LOG2P = "log2p"
    LN = "ln"
    LN1P = "ln1p"
    LN2P = "ln2p"
    SQUARE = "square"
    SQRT = "sqrt"
    RECIPROCAL = "reciprocal"


_MODIFIERS: Mapping[Modifier, Callable[[float], float]] = {
    Modifier.NONE: lambda number: number,
    Modifier.LOG: math.log10,
    Modifier.LOG1P: lambda number: math.log10(number + 1),
    Modifier.LOG2P: lambda number: math.log10(number + 2),
    Modifier.LN: math.log,
    Modifier.LN1P: math.log1p,
    Modifier.LN2P: lambda number: math.log(number + 2),
    Modifier.SQUARE: lambda number: number * number,
    Modifier.SQRT: math.sqrt,
    Modifier.RECIPROCAL: lambda number: 1 / number,
}


@dataclass(frozen=True, slots=True)
class FieldValue:
    """The value of a field, multiplied and modified. `missing`: the value of a document without the field."""

    field: SearchField
    factor: float = 1.0
    modifier: Modifier = Modifier.NONE
    missing: float | None = None

    def of(self, document: Document) -> float | None:
        """Return the value for a document. None if it has no value, 0 if the result is not a number."""
        values = document.get(self.field.name) or ([] if self.missing is None else [self.missing])
        if not values:
            return None
        try:
            found = _MODIFIERS[self.modifier](float(values[0]) * self.factor)
        except (ValueError, ZeroDivisionError):
            return 0.0
        return found if math.isfinite(found) else 0.0


class Combination(Enum):
    """One number of several ones: scores, distances, or values to sort by."""

    AVG = "avg"
    MAX = "max"
    SUM = "sum"
    MIN = "min"
    MULTIPLY = "multiply"
    FIRST = "first"
    LAST = "last"

    def of(self, numbers: list[float]) -> float:
        """Return the number of at least one."""
        return _COMBINATIONS[self](numbers)


_COMBINATIONS: Mapping[Combination, Callable[[list[float]], float]] = {
    Combination.AVG: lambda numbers: sum(numbers) / len(numbers),
    Combination.MAX: max,
    Combination.SUM: sum,
    Combination.MIN: min,
    Combination.MULTIPLY: math.prod,
    Combination.FIRST: lambda numbers: numbers[0],
    Combination.LAST: lambda numbers: numbers[-1],
}


class Shape(Enum):
    """The form of a decay."""

    GAUSS = "gauss"
    EXP = "exp"
    LINEAR = "linear"


@dataclass(frozen=True, slots=True)
class Decay:
    """A value that decreases with the distance of a field from an origin.

    It is 1 up to the distance `offset`, and `decay` at the distance `offset` + `scale`. Distances of places are meters,
    those of dates nanoseconds. `mode`: of several distances.
    """

    field: SearchField
    shape: Shape
    origin: Any
    scale: float
    offset: float
    decay: float
    mode: Combination = Combination.MAX

    def of(self, document: Document) -> float:
        """Return the value for a document, 1 without the field."""
        distances = [max(0.0, each - self.offset) for each in self._distances(document)]
        if not distances:
            return 1.0
        share = self.mode.of(distances) / self.scale
        match self.shape:
            case Shape.LINEAR:
                return max(0.0, 1 - share * (1 - self.decay))
            case Shape.EXP:
                return math.exp(math.log(self.decay) * share)
            case Shape.GAUSS:
                return math.exp(math.log(self.decay) * share * share)

    def _distances(self, document: Document) -> Iterable[float]:
        for value in document.get(self.field.name, ()):
            if self.field.type is FieldType.GEO_POINT:
                yield field_values.distance_m(self.origin, value)
            else:
                yield float(abs(value - self.origin))


@dataclass(frozen=True, slots=True)
class RandomValue:
    """A random number from 0 to 1. `draw` returns it."""

    draw: Callable[[], float]

    def of(self, document: Document) -> float:
        """Return another value for each document."""
        return self.draw()


Function = FieldValue | Decay | RandomValue
