"""Section 2 of docs/architecture.md as a test: who may import whom."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OUR_FOLDERS = ("gateway", "adapters", "migrations")
# Pure third-party parts, free to all: they do no I/O and know nothing of us.
PURE = {"orjson", "msgspec", "lark", "google", "re2"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it: at the top, in a function, under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module is not None
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                yield whole if whole in MODULES else node.module


FILES = {module_name(path): path for folder in OUR_FOLDERS for path in (ROOT / folder).rglob("*.py")}
MODULES = set(FILES)
IMPORTS = {module: sorted(set(imports_of(path))) for module, path in FILES.items()}


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def outside(module: str) -> bool:
    return (
        module.partition(".")[0] not in OUR_FOLDERS
        and module.partition(".")[0] not in sys.stdlib_module_names
    )


def of(package: str) -> list[str]:
    return sorted(module for module in MODULES if within(module, package))


@pytest.mark.parametrize("module", of("gateway.model"))
def test_the_model_knows_only_itself(module: str) -> None:
    for imported in IMPORTS[module]:
        assert within(imported, "gateway.model") or not within(imported, "gateway"), imported
        assert not outside(imported) or imported.partition(".")[0] in PURE, imported


@pytest.mark.parametrize("module", of("gateway.store"))
def test_the_store_knows_the_model_and_its_database(module: str) -> None:
    # psycopg and sqlite3 are the drivers of the hot path; alembic and migrations lead to the schema.
    allowed = PURE | {"sqlalchemy", "psycopg", "alembic"}
    for imported in IMPORTS[module]:
        if outside(imported):
            assert imported.partition(".")[0] in allowed, imported
        elif within(imported, "gateway"):
            assert within(imported, "gateway.store") or within(imported, "gateway.model"), imported
        else:
            assert not within(imported, "adapters"), imported


@pytest.mark.parametrize("module", of("gateway.engine"))
def test_the_engine_knows_the_store_and_the_model(module: str) -> None:
    for imported in IMPORTS[module]:
        assert not outside(imported) or imported.partition(".")[0] in PURE, imported
        if within(imported, "gateway") or within(imported, "adapters"):
            assert any(within(imported, f"gateway.{room}") for room in ("engine", "store", "model")), imported


@pytest.mark.parametrize("module", of("adapters"))
def test_an_adapter_knows_the_engine_the_model_and_http(module: str) -> None:
    own = ".".join(module.split(".")[:2])
    entry_points = ("engine.engine", "model", "security.credentials", "http", "metrics", "settings")
    for imported in IMPORTS[module]:
        if within(imported, "adapters"):
            assert within(imported, own) or imported == "adapters", f"another adapter: {imported}"
        elif within(imported, "gateway"):
            assert any(within(imported, f"gateway.{entry_point}") for entry_point in entry_points), imported
        assert not within(imported, "sqlalchemy"), imported


@pytest.mark.parametrize("module", of("gateway"))
def test_the_gateway_knows_no_adapter(module: str) -> None:
    assert not [imported for imported in IMPORTS[module] if within(imported, "adapters")]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_sqlalchemy_stays_in_the_store(module: str) -> None:
    if not within(module, "gateway.store") and not within(module, "migrations"):
        # The command line names its errors, to say them clearly.
        allowed = {"sqlalchemy.exc"} if module == "gateway.__main__" else set()
        assert not [name for name in IMPORTS[module] if within(name, "sqlalchemy") and name not in allowed]


def test_there_are_no_circles() -> None:
    finished: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module not in finished:
            for imported in IMPORTS[module]:
                if imported in MODULES and imported != module:
                    visit(imported, (*path, module))
            finished.add(module)

    for module in sorted(MODULES):
        visit(module, ())
