"""Fast paths: second implementations that exist for speed only. Each equals a general way, which a property test says.

The table FAST_PATHS lists them, and so does docs/contribute/fast-paths.md. One switch turns all of them off, when
the process starts: the environment variable TABLEGATE_FAST_PATHS=off. `make test-general` runs the tests like that. So the
general way is never code that only its own tests have run. Whether a fast path is taken is decided when a module is loaded or
an object made (`choose`, ARE_ON), so that no request pays for there being a switch.

This is in the model because all packages have fast paths and all may import the model. It knows names of the other packages as
texts and imports none of them.
"""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from typing import NamedTuple, TypeVar

ARE_ON = os.environ.get("TABLEGATE_FAST_PATHS", "on").lower() != "off"
"""Whether fast paths are taken. Read once."""

_Way = TypeVar("_Way")


def choose(fast: _Way, general: _Way, is_safe: bool = True) -> _Way:
    """The fast way of two that give the same; the general one if fast paths are switched off, or this one is not safe."""
    return fast if ARE_ON and is_safe else general


def covers(kind: type, known: str) -> bool:
    """Whether a fast path that has been thought through for these fields of a kind of command (or of its context) is safe,
    because there are no others. With a field that it has not heard of it is never taken: whoever adds the field decides.
    False if fast paths are off."""
    names = {each.name for each in fields(kind)} if is_dataclass(kind) else {*kind._fields}  # type: ignore[attr-defined]
    return ARE_ON and names <= {*known.split()}


class FastPath(NamedTuple):
    """A fast path: where it is and where the general way is, both as `module:name`; the test that both give the same, as
    pytest names it; and the ratio of the CPU time of a whole request by the general way to that by the fast path
    (`python -m benchmarks.fast_paths`)."""

    fast: str
    general: str
    test: str
    general_takes: float


_DYNAMODB, _AZURE, _TABLESTORE = (
    "tablegate.adapters.dynamodb",
    "tablegate.adapters.azuretable",
    "tablegate.adapters.tablestore",
)

FAST_PATHS: tuple[FastPath, ...] = (
    FastPath(
        f"{_DYNAMODB}.validation.fast_validator:fast_check",
        f"{_DYNAMODB}.validation.full_validator:clean",
        "tests/adapters/dynamodb/test_fast_paths.py::test_both_validators_make_the_same_of_a_request",
        1.34,
    ),
    FastPath(
        f"{_DYNAMODB}.values.values:fast_render_rows",
        f"{_DYNAMODB}.values.values:render_rows_generally",
        "tests/adapters/dynamodb/test_fast_paths.py::test_copied_bodies_are_what_their_values_are_rendered_as",
        1.94,
    ),
    FastPath(
        f"{_AZURE}.entities.fast_pages:entities",
        f"{_AZURE}.entities.entity_renderer:EntityFormat.member",
        "tests/adapters/azuretable/entities/test_fast_pages.py::test_a_page_is_what_its_rows_are",
        3.30,
    ),
    FastPath(
        f"{_TABLESTORE}.rows.fast_rows:put_of",
        f"{_TABLESTORE}.rows.checks:checked_put_cells",
        "tests/adapters/tablestore/rows/test_fast_rows.py::test_plain_puts_come_to_the_same",
        2.25,
    ),
    FastPath(
        f"{_TABLESTORE}.rows.fast_rows:encoder",
        f"{_TABLESTORE}.rows.selections:RowSelection.cutter",
        "tests/adapters/tablestore/rows/test_fast_rows.py::test_rows_are_encoded_the_same",
        3.67,
    ),
    FastPath(
        f"{_TABLESTORE}.rows.fast_pages:encoder_of_many",
        f"{_TABLESTORE}.rows.selections:RowSelection.cutter",
        "tests/adapters/tablestore/rows/test_fast_pages.py::test_rows_with_stamps",
        1.45,
    ),
    FastPath(
        "tablegate.gateway.model.expressions.updates:FastDraft",
        "tablegate.gateway.model.expressions.updates:RowDraft",
        "tests/gateway/model/test_fast_drafts.py::test_both_paths_of_an_edit_agree",
        1.63,
    ),
    FastPath(
        "tablegate.gateway.engine.rows.loading:fast_load",
        "tablegate.gateway.engine.rows.writing:WriteBatch._decide",
        "tests/gateway/engine/rows/test_loading.py::test_both_ways_leave_the_same_rows",
        1.96,
    ),
    FastPath(
        "tablegate.gateway.engine.rows.reading:fast_look_up",
        "tablegate.gateway.engine.rows.reading:read_in_slices",
        "tests/gateway/engine/rows/test_reading.py::test_looking_up_in_one_statement_finds_what_a_transaction_finds",
        1.51,
    ),
    FastPath(
        "tablegate.gateway.engine.rows.page_builder:PageBuilder._fast_take",
        "tablegate.gateway.engine.rows.page_builder:PageBuilder._add_row",
        "tests/gateway/engine/rows/test_page_builder.py::test_pages_taken_many_rows_at_once_are_those_of_a_walk_row_by_row",
        1.35,
    ),
    FastPath(
        "tablegate.gateway.engine.rows.reading:fast_concatenated",
        "tablegate.gateway.engine.rows.page_builder:PageBuilder.add",
        "tests/gateway/engine/test_concatenated.py::test_pages_are_those_of_a_walk_row_by_row",
        1.57,
    ),
    FastPath(
        "tablegate.gateway.engine.rows.reading:fast_prefiltered",
        "tablegate.gateway.engine.rows.page_builder:PageBuilder.add_in_slices",
        "tests/gateway/engine/test_prefiltered_scans.py::test_pages_are_those_of_a_walk_row_by_row",
        14.31,
    ),
    FastPath(
        "tablegate.gateway.server.fast_heads:whole_request",
        "tablegate.gateway.server.request_parser:RequestParser.feed",
        "tests/gateway/server/test_fast_heads.py::test_both_ways_hand_on_the_same_requests",
        1.24,
    ),
    FastPath(
        "tablegate.transfer.comparing.sums:fast_add_bodies",
        "tablegate.transfer.comparing.sides:ComparedSide.sum_page_generally",
        "tests/transfer/comparing/test_verifying.py::test_the_fast_way_and_the_general_one_find_the_same",
        9.82,
    ),
)
