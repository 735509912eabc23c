"""Fast paths: second implementations that exist for speed only. A property test compares each with the general one.

FAST_PATHS and docs/contribute/fast-paths.md list them. The environment variable TABLEGATE_FAST_PATHS=off disables all
of them at the start of the process. `make test-general` runs the tests that way, so the general implementations are
covered by all tests. The choice is made when a module is loaded or an object is created (`choose`, ARE_ON), not for
each request.

The module is in the model because all packages have fast paths and may import the model. It refers to other packages by
name and imports none of them.
"""

from __future__ import annotations

import os
from dataclasses import fields, is_dataclass
from typing import NamedTuple, TypeVar

ARE_ON = os.environ.get("TABLEGATE_FAST_PATHS", "on").lower() != "off"
"""True if fast paths are enabled. Read once."""

_Way = TypeVar("_Way")


def choose(fast: _Way, general: _Way, is_safe: bool = True) -> _Way:
    """Return the fast one of two equivalent implementations, or the general one if fast paths are off or this one is
    not safe."""
    return fast if ARE_ON and is_safe else general


def covers(kind: type, known_fields: str) -> bool:
    """Return True if a command or context type has no other fields than the known ones, and fast paths are on.

    A fast path is designed for the known fields. A new field disables it until the author of the field has checked it.
    Raises ValueError for a known field that does not exist, because a renamed field would disable it unnoticed.
    """
    names = {item.name for item in fields(kind)} if is_dataclass(kind) else {*kind._fields}  # type: ignore[attr-defined]
    expected_names = {*known_fields.split()}
    if not expected_names <= names:
        raise ValueError(f"{kind.__name__} has no fields {sorted(expected_names - names)}")
    return ARE_ON and names == expected_names


class FastPath(NamedTuple):
    """A fast path and its general implementation, both as `module:name`.

    `test`: the pytest id of the test that compares them. `docs/contribute/fast-paths.md` has the gain of each.
    """

    fast: str
    general: str
    test: str


_DYNAMODB, _AZURE, _TABLESTORE = (
    "tablegate.adapters.dynamodb",
    "tablegate.adapters.azuretable",
    "tablegate.adapters.tablestore",
)

FAST_PATHS: tuple[FastPath, ...] = (
    FastPath(
        f"{_DYNAMODB}.validation.fast_validator:fast_check",
        f"{_DYNAMODB}.validation.full_validator:clean",
        "tests/adapters/dynamodb/validation/test_requests_fuzz.py::test_any_body_is_cleaned_or_refused",
    ),
    FastPath(
        f"{_DYNAMODB}.values.values:fast_render_rows",
        f"{_DYNAMODB}.values.values:render_rows_generally",
        "tests/adapters/dynamodb/test_fast_paths.py::test_copied_bodies_are_what_their_values_are_rendered_as",
    ),
    FastPath(
        f"{_AZURE}.entities.fast_pages:entities",
        f"{_AZURE}.entities.entity_renderer:EntityFormat.member",
        "tests/adapters/azuretable/entities/test_fast_pages.py::test_a_page_equals_its_rendered_rows",
    ),
    FastPath(
        f"{_TABLESTORE}.rows.fast_rows:put_of",
        f"{_TABLESTORE}.rows.writes:checked_put_cells",
        "tests/adapters/tablestore/rows/test_fast_rows.py::test_plain_puts_come_to_the_same",
    ),
    FastPath(
        f"{_TABLESTORE}.rows.fast_rows:encoder",
        f"{_TABLESTORE}.rows.selections:RowSelection.cutter",
        "tests/adapters/tablestore/rows/test_fast_rows.py::test_rows_are_encoded_the_same",
    ),
    FastPath(
        "tablegate.gateway.model.expressions.updates:FastDraft",
        "tablegate.gateway.model.expressions.updates:RowDraft",
        "tests/gateway/model/test_fast_drafts.py::test_both_paths_of_an_edit_agree",
    ),
    FastPath(
        "tablegate.gateway.engine.rows.loading:fast_load",
        "tablegate.gateway.engine.rows.writing:WriteBatch.run",
        "tests/gateway/engine/rows/test_loading.py::test_a_load_and_puts_leave_the_same_rows",
    ),
    FastPath(
        "tablegate.gateway.engine.tables.expiring:fast_remove",
        "tablegate.gateway.engine.tables.expiring:deletes_of",
        "tests/gateway/engine/tables/test_expiring.py::test_bulk_removal_and_single_deletes_leave_the_same",
    ),
    FastPath(
        "tablegate.gateway.engine.rows.reading:fast_concatenated",
        "tablegate.gateway.engine.rows.page_builder:PageBuilder.add",
        "tests/gateway/engine/test_concatenated.py::test_pages_are_those_of_a_walk_row_by_row",
    ),
    FastPath(
        "tablegate.gateway.engine.rows.reading:fast_prefiltered",
        "tablegate.gateway.engine.rows.page_builder:PageBuilder.add",
        "tests/gateway/engine/test_prefiltered_scans.py::test_pages_are_those_of_a_walk_row_by_row",
    ),
    FastPath(
        "tablegate.transfer.comparing.checksums:fast_add_bodies",
        "tablegate.transfer.comparing.sides:ComparedSide.sum_page_generally",
        "tests/transfer/comparing/test_verifying.py::test_the_fast_way_and_the_general_one_find_the_same",
    ),
)
