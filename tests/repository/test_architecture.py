"""The import rules of docs/architecture.md, section 1, and the purpose of every module."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import reference_pages
from tests.support.reference_pages import purpose_of

ROOT = Path(__file__).parents[2]
PACKAGE = "tablegate."
OUR_FOLDERS = ("gateway", "adapters", "migrations", "transfer")
# From the lowest to the highest: a module imports from its own group and from lower ones. A group is a folder or a
# single module. A module inside a folder can be a separate, lower group than the rest of the folder.
GROUPS = {
    "gateway": (
        "model", "exchanges", "configuration", "observability", "request_context", "http", "request_bodies", "request_memory",
        "observability.audit", "store", "observability.audit_sinks", "security", "engine", "security.quota_keeper",
        "security.gate", "clock", "observability.telemetry", "server.flask_bridge", "server.certificates", "dialect",
        "control", "health", "application", "administration", "adapter_modules", "wiring", "doctor", "console", "app",
        "background", "server", "command_line", "__main__",
    ),
    "adapters.dynamodb": (
        "wire", "values", "export_files", "object_stores", "expressions", "validation", "tables", "capacity", "operations",
        "jobs", "kinesis", "partiql", "operation_table", "request_facts", "seed_definitions", "seeds", "request_code",
        "statement_pages", "display", "administration_forms", "administration", "entry",
    ),
    "adapters.azuretable": (
        "wire", "values", "auth", "call_context", "entities", "replies", "queries", "tables", "batches",
        "operation_table", "request_facts", "request_code", "display", "administration", "entry",
    ),
    "adapters.tablestore": (
        "values.views", "wire", "values", "capacity", "tables", "streams", "rows", "operation_table", "request_facts",
        "request_code", "display", "administration", "entry",
    ),
    "transfer": (
        "errors", "progress", "endpoints.endpoint", "mapping", "endpoints", "comparing", "copying", "traffic",
        "flags", "comparison_commands", "commands",
    ),
}  # fmt: skip
# Pure third-party packages, permitted everywhere: they do no I/O and import nothing of tablegate.
PURE = {"orjson", "msgspec", "lark", "google", "re2"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it: at the top, in a function, under TYPE_CHECKING.

    Ours are without the name of the package, `tablegate`, as `module_name` gives them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.removeprefix(PACKAGE) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module is not None
            for name in node.names:
                module = node.module.removeprefix(PACKAGE)
                whole = f"{node.module}.{name.name}".removeprefix(PACKAGE)
                yield whole if whole in MODULES else module


FILES = {module_name(path): path for folder in OUR_FOLDERS for path in (ROOT / folder).rglob("*.py")}
MODULES = set(FILES)
TREES = {module: ast.parse(path.read_text()) for module, path in FILES.items()}
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
def test_the_model_imports_only_itself(module: str) -> None:
    for imported in IMPORTS[module]:
        assert within(imported, "gateway.model") or not within(imported, "gateway"), imported
        assert not outside(imported) or imported.partition(".")[0] in PURE, imported


@pytest.mark.parametrize("module", of("gateway.store"))
def test_the_store_imports_only_the_model_and_its_database(module: str) -> None:
    # psycopg and sqlite3 are the drivers of the hot path. alembic and migrations manage the schema. xxhash computes the
    # checksums of rows. The others are for files.
    allowed = PURE | {"xxhash", "sqlalchemy", "psycopg", "alembic", "zstandard", "fastcrc"}
    for imported in IMPORTS[module]:
        if outside(imported):
            assert imported.partition(".")[0] in allowed, imported
        elif within(imported, "gateway"):
            assert within(imported, "gateway.store") or within(imported, "gateway.model"), imported
        else:
            assert not within(imported, "adapters"), imported


@pytest.mark.parametrize("module", of("gateway.engine"))
def test_the_engine_imports_only_the_store_and_the_model(module: str) -> None:
    for imported in IMPORTS[module]:
        assert not outside(imported) or imported.partition(".")[0] in PURE | {"numpy", "usearch"}, imported
        if within(imported, "gateway") or within(imported, "adapters"):
            assert any(within(imported, f"gateway.{room}") for room in ("engine", "store", "model")), imported


@pytest.mark.parametrize("module", sorted(MODULES))
def test_numpy_is_for_vector_searches(module: str) -> None:
    """numpy is optional and slow to load.

    Searches load it (gateway/engine/rows/reading.py). The module that builds graphs loads usearch.
    """
    may = (
        "gateway.engine.vectors.exact_search",
        "gateway.engine.vectors.vector_graphs",
        "gateway.engine.vectors.index_images",
    )
    if module != "gateway.engine.vectors.vector_graphs":
        assert not [name for name in IMPORTS[module] if within(name, "usearch")]
    assert "usearch" not in str([getattr(node, "module", "") for node in TREES[module].body])
    if module not in may:
        assert not [name for name in IMPORTS[module] if within(name, "numpy")]
    if module not in (*may, "gateway.engine.vectors.searching"):
        assert not [
            node
            for node in TREES[module].body
            if isinstance(node, ast.ImportFrom) and node.module == "tablegate.gateway.engine"
            for name in node.names
            if f"gateway.engine.{name.name}" in (*may, "gateway.engine.vectors.searching")
        ]


@pytest.mark.parametrize("module", of("adapters"))
def test_an_adapter_imports_only_the_engine_the_model_and_http(module: str) -> None:
    own = ".".join(module.split(".")[:2])
    entry_points = (
        "administration",
        "engine.engine",
        "exchanges",
        "model",
        "security.credentials",
        "security.gate",
        "dialect",
        "request_context",
        "http",
        "observability.metrics",
        "request_bodies",
        "request_memory",
        "observability.audit",
        "configuration.settings",
    )
    for imported in IMPORTS[module]:
        if within(imported, "adapters"):
            assert within(imported, own) or imported == "adapters", f"another adapter: {imported}"
        elif within(imported, "gateway"):
            assert any(within(imported, f"gateway.{entry_point}") for entry_point in entry_points), imported
        assert not within(imported, "sqlalchemy"), imported
        assert not within(imported, "flask") and not within(imported, "werkzeug"), imported


@pytest.mark.parametrize("module", of("gateway"))
def test_the_gateway_imports_no_adapter(module: str) -> None:
    assert not [imported for imported in IMPORTS[module] if within(imported, "adapters")]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_sqlalchemy_stays_in_the_store(module: str) -> None:
    if not within(module, "gateway.store") and not within(module, "migrations"):
        assert not [name for name in IMPORTS[module] if within(name, "sqlalchemy")]


GROUPED = [(package, module) for package in GROUPS for module in of(package) if module != package]


def height(module: str, package: str) -> int:
    """Return the position of a module's group among those of its package. The package itself is below all."""
    if module == package:
        return -1
    groups = [group for group in GROUPS[package] if within(module, f"{package}.{group}")]
    assert groups, f"{module} is in no group of {package}"
    return GROUPS[package].index(max(groups, key=len))


@pytest.mark.parametrize(("package", "module"), GROUPED, ids=[module for _, module in GROUPED])
def test_arrows_between_groups_run_one_way(package: str, module: str) -> None:
    own = height(module, package)
    upwards = [
        imported
        for imported in IMPORTS[module]
        if imported in MODULES and within(imported, package) and height(imported, package) > own
    ]
    assert not upwards


def test_every_adapter_has_its_groups() -> None:
    assert {f"adapters.{name.split('.')[1]}" for name in of("adapters") if "." in name} == set(GROUPS) - {
        "gateway",
        "transfer",
    }


@pytest.mark.parametrize("module", sorted(MODULES))
def test_only_the_command_line_imports_transfers(module: str) -> None:
    if not within(module, "transfer"):
        allowed = (
            {"transfer.commands", "transfer.traffic.commands"} if module == "gateway.__main__" else set()
        )
        assert not [name for name in IMPORTS[module] if within(name, "transfer") and name not in allowed]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_only_opening_imports_the_databases(module: str) -> None:
    for package in ("gateway.store.sqlite", "gateway.store.postgresql"):
        if module != "gateway.store.opening.opening" and not within(module, package):
            assert not [imported for imported in IMPORTS[module] if within(imported, package)]


def test_no_text_tests_for_a_database_by_name() -> None:
    """Differences between databases are methods of each (store/sql/databases.py)."""
    question = "is_" + "postgresql"
    for folder in (*OUR_FOLDERS, "tests", "benchmarks", "docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".toml"):
                assert question not in path.read_text(), path


@pytest.mark.parametrize("module", sorted(MODULES))
def test_only_the_settings_name_a_module(module: str) -> None:
    """adapter_modules.py finds an adapter by its name in the settings. Everything else is imported."""
    if module != "gateway.adapter_modules":
        assert not [name for name in IMPORTS[module] if name == "importlib"]
        assert "__import__" not in FILES[module].read_text()


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


# Differences between databases

# psycopg's parser reads addresses. A transfer's job is an SQLite file. So is data that may exceed memory: rows that a
# comparison suspects, changes of an export.
DRIVERS = {
    "sqlite3": {
        "gateway.store.sqlite",
        "transfer.copying",
        "transfer.comparing",
        "transfer.endpoints.files",
    },
    "psycopg": {"gateway.store.postgresql", "gateway.configuration.database_urls"},
}


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_driver_is_its_databases_own(driver: str) -> None:
    for module in sorted(MODULES):
        if any(within(imported, driver) for imported in IMPORTS[module]):
            assert any(within(module, room) for room in DRIVERS[driver]), module


@pytest.mark.parametrize("module", [*of("gateway.model"), *of("gateway.engine"), *of("gateway.store")])
def test_no_code_compares_the_database_name(module: str) -> None:
    own = {"gateway.store.sqlite", "gateway.store.postgresql"}
    # The parsers of URLs, the start of a migration, and arguments of SQLAlchemy that contain a database's name.
    schema = {"gateway.store.sql.schema", "gateway.store.sql.administration_schema"}
    may = {"gateway.store.opening.opening", "gateway.store.opening.migrating", *schema}
    if module in may or any(within(module, folder) for folder in own):
        return
    words = {node.id for node in ast.walk(TREES[module]) if isinstance(node, ast.Name)}
    words |= {node.attr for node in ast.walk(TREES[module]) if isinstance(node, ast.Attribute)}
    words |= {
        str(node.value)
        for node in ast.walk(TREES[module])
        if isinstance(node, ast.Constant) and is_short(node)
    }
    assert not [word for word in words if re.search("sqlite|postgres|psycopg", word, re.IGNORECASE)]


def is_short(node: ast.Constant) -> bool:
    """True if a constant is a word and no docstring."""
    return isinstance(node.value, str) and " " not in node.value


# The purpose of each module


def test_every_module_has_a_purpose() -> None:
    """Its docstring's first sentence, from which docs/reference/modules.md is generated."""
    paths = [path for folder in reference_pages.FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert [str(path) for path in paths if not purpose_of(path) and not path.name.endswith("_pb2.py")] == []


@pytest.mark.parametrize(
    "name", ["architecture", "glossary", "contribute/adding-a-database", "contribute/adding-a-dialect"]
)
def test_lines_of_documents_are_of_a_readable_length(name: str) -> None:
    """Tables cannot be broken into lines."""
    lines = (ROOT / "docs" / f"{name}.md").read_text().splitlines()
    assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == []
