"""The gate in front of the engine: which code may call the engine, and that everything else passes the gate."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.support.sources import FILES, tree

ALLOWED = {
    "gateway.security.gate": "the gate",
    "gateway.engine.engine": "the definition of run_with_retries",
    "gateway.server.lane": "runs the commands of many requests, around which the tick calls refusal and review",
    "gateway.security.quotas": "counts the bytes of namespaces for quotas: it has no caller",
}
"""Modules that call the engine, and why they may."""

_CALLS = frozenset({"run", "run_in_slices", "run_with_retries"})
_NAMES = re.compile(r"engine_*\s*\.\s*run\b|run_in_slices|run_with_retries")
"""A call has the engine's name before `run`, or one of the other names."""


def engine_calls(tree: ast.Module) -> Iterator[str]:
    """Return the uses of the engine's entry points in a module, whether they are called there or handed on."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (name.name for name in node.names if name.name in _CALLS - {"run"})
        elif isinstance(node, ast.Attribute) and node.attr in _CALLS:
            owner = ast.unparse(node.value)
            if owner.rpartition(".")[2].strip("_").endswith("engine") or node.attr != "run":
                yield ast.unparse(node)


def test_the_engine_is_called_by_the_gate_and_the_tick_alone() -> None:
    # To search a text takes a hundredth of the time to parse it.
    texts = {module: file.read_text() for module, file in FILES.items()}
    candidates = [module for module, text in texts.items() if _NAMES.search(text)]
    found = {module: sorted(set(engine_calls(tree(module)))) for module in candidates}
    calling = {module: calls for module, calls in found.items() if calls}
    beside = {module: calls for module, calls in calling.items() if module not in ALLOWED}
    assert beside == {}, "these call the engine beside gateway/security/gate.py"
    assert calling.keys() == set(ALLOWED), "these call the engine no longer"


def test_a_call_beside_the_gate_is_found() -> None:
    for source in (
        "[found] = self._engine.run([FindTable(namespace, name)])",
        "outcomes = opened.engine.run(commands)",
        "run = partial(gateway.engine.run_in_slices, commands)",
        "from tablegate.gateway.engine.engine import run_with_retries",
        "outcomes = engine_module.run_with_retries(engine, commands)",
    ):
        assert list(engine_calls(ast.parse(source))), source
    for source in ("gate.run(engine, commands, None)", "click.run(main)", "self.run(ListTables(namespace))"):
        assert not list(engine_calls(ast.parse(source))), source
