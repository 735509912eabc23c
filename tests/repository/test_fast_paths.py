"""The list of fast paths is complete, names existing code, and equals docs/contribute/fast-paths.md."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys

import pytest

from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.fast_paths import FAST_PATHS, FastPath
from tests.support.sources import FILES, ROOT, tree
from tests.support.waiting import PATIENCE_S

# Parts of a listed fast path: its closures, the condition that selects it, the replacement when it is off.
PARTS = {
    "tablegate.adapters.dynamodb.values.values:fast_render_row": "tablegate.adapters.dynamodb.values.values:fast_render_rows",
    "tablegate.gateway.model.expressions.updates:_fast_draft_of": "tablegate.gateway.model.expressions.updates:FastDraft",
}


def named(path: FastPath) -> str:
    return path.fast


def found(name: str) -> object:
    """Return the object that a `module:name` names. For an attribute of a dataclass, its field."""
    module, _, inner = name.partition(":")
    thing: object = importlib.import_module(module)
    for part in inner.split("."):
        thing = vars(thing)[part]
    return thing


@pytest.mark.parametrize("path", FAST_PATHS, ids=named)
def test_both_implementations_and_their_test_exist(path: FastPath) -> None:
    assert found(path.fast) is not None
    assert found(path.general) is not None
    file, _, test = path.test.partition("::")
    assert (ROOT / file).is_file()
    assert f"\ndef {test}(" in (ROOT / file).read_text()


@pytest.mark.parametrize("path", FAST_PATHS, ids=named)
def test_fast_paths_are_called_fast(path: FastPath) -> None:
    module, _, inner = path.fast.partition(":")
    names = (module.rpartition(".")[2], inner.rpartition(".")[2].lstrip("_").lower())
    assert any(name.startswith("fast") for name in names)


_DEFINITION = re.compile(r"\b(def|class)\s+_*fast", re.IGNORECASE)


def fast_definitions() -> set[str]:
    """Return every function, method and class of the project with a fast path's name, and modules of such a name."""
    definitions = set()
    for module, file in FILES.items():
        if module.startswith("migrations") or file.name == "fast_paths.py":
            continue
        if file.name.startswith("fast_"):
            definitions.add(f"tablegate.{module}")
            continue
        if not _DEFINITION.search(file.read_text()):  # takes a hundredth of the time to parse
            continue
        for node in ast.walk(tree(module)):
            is_named = isinstance(node, (ast.FunctionDef, ast.ClassDef))
            if is_named and node.name.lstrip("_").lower().startswith("fast"):
                definitions.add(f"tablegate.{module}:{node.name}")
    return definitions


def test_the_list_is_complete() -> None:
    listed = set()
    for path in FAST_PATHS:
        module, _, inner = path.fast.partition(":")
        listed.add(
            module
            if module.rpartition(".")[2].startswith("fast_")
            else f"{module}:{inner.rpartition('.')[2]}"
        )
    assert fast_definitions() - PARTS.keys() == listed
    assert set(PARTS.values()) <= {path.fast for path in FAST_PATHS}


def test_the_documentation_has_the_list() -> None:
    text = (ROOT / "docs/contribute/fast-paths.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) == len(FAST_PATHS)
    for line, path in zip(rows, FAST_PATHS, strict=True):
        assert all(f"`{name}`" in line for name in (path.fast, path.general, path.test)), line
        assert float(line.split("|")[-2]) >= 1.3, "a fast path with a lower ratio is removed"


@pytest.mark.fast_paths
def test_a_fast_path_is_taken_while_it_is_safe() -> None:
    """A new field of a command or table switches off the fast paths that have not heard of it: here is where that shows."""
    from tablegate.gateway.engine.rows import page_builder, reading
    from tablegate.gateway.model.expressions import updates

    assert updates._draft_of is updates._fast_draft_of
    assert page_builder._TAKES_CONCATENATED
    assert reading._IS_SAFE


def test_one_switch_turns_all_of_them_off() -> None:
    """Runs in a separate process, because the switch is read once. Every choice is then the general path."""
    program = """
from tablegate.adapters.azuretable.entities import entity_renderer
from tablegate.adapters.dynamodb.values import values
from tablegate.adapters.dynamodb.operation_table import OPERATIONS
from tablegate.adapters.dynamodb.validation import fast_validator
from tablegate.adapters.tablestore.rows import selections, writes
from tablegate.gateway.engine.rows import page_builder, reading
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.expressions import updates
from tablegate.transfer.comparing import sides
assert not fast_paths.ARE_ON
assert OPERATIONS["PutItem"].check.fast_check is fast_validator.leave_to_full_validator
assert (values.render_row, values.render_rows) == (values.render_row_generally, values.render_rows_generally)
assert entity_renderer._SPLICED == ()
assert writes._fast_put_of is writes._no_fast_put
assert not selections._ENCODES
assert updates._draft_of == updates.RowDraft.of
assert not page_builder._TAKES_CONCATENATED
assert not sides._HASHES_BODIES
assert (reading._prefiltered, reading._concatenated) == (reading._row_by_row, reading._no_bodies)
"""
    switched_off = {**os.environ, "TABLEGATE_FAST_PATHS": "off"}
    subprocess.run(
        [sys.executable, "-c", program], env=switched_off, cwd=ROOT, check=True, timeout=PATIENCE_S
    )


def test_choose_returns_the_fast_implementation_if_fast_paths_are_on() -> None:
    fast, general = object(), object()
    assert fast_paths.choose(fast, general) is (fast if fast_paths.ARE_ON else general)
    assert fast_paths.choose(fast, general, is_safe=False) is general
