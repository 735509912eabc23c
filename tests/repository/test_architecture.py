"""The import rules of docs/architecture.md, section 1, and the purpose of every module."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable

import pytest

from tablegate.gateway.capabilities import CAPABILITIES, CONSOLE_PAGES
from tablegate.migrations.schema import PARTS
from tests.support.capabilities import INSTALLED
from tests.support.reference_pages import purpose_of
from tests.support.sources import FILES, FOLDERS, PRODUCT, ROOT, imports, tree

# The pages of capabilities in the console. They are in the folders of capabilities, and import the console.
OF_CONSOLE = tuple(name.removeprefix("tablegate.gateway.") for name in CONSOLE_PAGES)
# From the lowest to the highest: a module imports from its own group and from lower ones. A group is a folder or a
# single module. A module inside a folder can be a separate, lower group than the rest of the folder.
GROUPS = {
    "gateway": (
        "model", "configuration", "observability", "http", "observability.audit", "store", "observability.audit_sinks",
        "security", "engine", "features", "capabilities", "security.quotas", "security.gate", "observability.telemetry",
        "server.listening", "dialects", "control", "application", "wiring", "doctor", "console", *OF_CONSOLE, "app", "server",
        "command_line", "__main__",
    ),
    "adapters.dynamodb": (
        "wire", "call", "values", "detection", "tables.properties", "tables.table_extensions", "export_files",
        "expressions", "validation", "operation", "tables", "capacity", "throughput", "operations", "features",
        "capabilities", "operation_table", "dispatch", "request_info", "seeds", "security_tokens", "display",
        "administration_forms", "administration", "dialect",
    ),
    "adapters.azuretable": (
        "detection", "wire", "values", "keys", "shared_access", "auth", "flavours", "call", "entities", "filter_grammar",
        "replies", "queries", "xml_documents", "service", "tables", "batches", "operation_table", "request_info", "display",
        "administration", "dialect",
    ),
    "adapters.tablestore": (
        "views", "detection", "wire", "call", "values", "capacity", "operation_table", "table_properties",
        "secondary_indexes", "tables", "rows", "features.streams", "features.tunnels", "features.sql", "features",
        "request_info", "display", "administration", "dialect",
    ),
    "transfer": (
        "errors", "progress", "threads", "endpoints.endpoint", "mapping", "endpoints", "comparing", "copying", "traffic",
        "commands", "comparison_commands",
    ),
}  # fmt: skip
# Pure third-party packages, permitted everywhere: they do no I/O and import nothing of tablegate.
PURE = {"orjson", "msgspec", "lark", "google", "re2", "rjieba"}


LAYERS = ("model", "store", "engine", "features")
FEATURES = "gateway.features"


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def outside(module: str) -> bool:
    return module.partition(".")[0] not in FOLDERS and module.partition(".")[0] not in sys.stdlib_module_names


def of(package: str) -> list[str]:
    return sorted(module for module in FILES if within(module, package))


def excesses(modules: Iterable[str], may_import: Callable[[str], bool]) -> list[str]:
    """Return the imports that a rule forbids, as lines to be read."""
    return [
        f"{module} imports {imported}"
        for module in modules
        for imported in imports(module)
        if not may_import(imported)
    ]


def test_the_model_imports_only_itself() -> None:
    def may_import(imported: str) -> bool:
        if outside(imported):
            return imported.partition(".")[0] in PURE
        return within(imported, "gateway.model") or not within(imported, "gateway")

    assert excesses(of("gateway.model"), may_import) == []


def test_the_store_imports_only_the_model_and_its_database() -> None:
    # psycopg and sqlite3 are the drivers of the hot path. alembic and migrations manage the schema. xxhash computes the
    # checksums of rows.
    packages = PURE | {"xxhash", "sqlalchemy", "psycopg", "alembic"}

    def may_import(imported: str) -> bool:
        if outside(imported):
            return imported.partition(".")[0] in packages
        if within(imported, "gateway"):
            return within(imported, "gateway.store") or within(imported, "gateway.model")
        return not within(imported, "adapters")

    assert excesses(of("gateway.store"), may_import) == []


def test_the_engine_and_capabilities_import_only_the_store_and_the_model() -> None:
    def may_import(imported: str) -> bool:
        if outside(imported):
            return imported.partition(".")[0] in PURE | {"numpy", "usearch", "sqlalchemy"}
        if within(imported, "gateway") or within(imported, "adapters"):
            return any(within(imported, f"gateway.{layer}") for layer in LAYERS)
        return True

    pages = [f"gateway.{name}" for name in OF_CONSOLE]
    modules = [module for module in (*of("gateway.engine"), *of(FEATURES)) if module not in pages]
    assert excesses(modules, may_import) == []


def test_the_scheduler_imports_no_work() -> None:
    """Capabilities register their works (issue 47, point 3)."""

    def may_import(imported: str) -> bool:
        layers = (
            "gateway.engine.scheduler",
            "gateway.store.sql",
            "gateway.store.store",
            "gateway.model.errors",
        )
        return not within(imported, "gateway") or any(within(imported, layer) for layer in layers)

    assert excesses(["gateway.engine.scheduler"], may_import) == []


@pytest.mark.extended
def test_numpy_is_for_vector_searches() -> None:
    """numpy is optional and slow to load.

    Searches load it (features/vectors/vector_support.py). The module that builds graphs loads usearch.
    """
    graphs = "gateway.features.vectors.index_images"
    may = ("gateway.features.vectors.exact_search", graphs, "gateway.features.vectors.index_images")
    at_need = (*may, "gateway.features.vectors.vector_search")
    assert excesses(set(FILES) - {graphs}, lambda imported: not within(imported, "usearch")) == []
    assert excesses(set(FILES) - {*may}, lambda imported: not within(imported, "numpy")) == []
    for module in FILES:
        assert "usearch" not in str([getattr(node, "module", "") for node in tree(module).body]), module
        if module not in at_need:
            assert not [
                node
                for node in tree(module).body
                if isinstance(node, ast.ImportFrom) and node.module == "tablegate.gateway.features.vectors"
                for name in node.names
                if f"gateway.features.vectors.{name.name}" in at_need
            ], module


def capability_of(module: str) -> str:
    """Return the name of the capability of a module, the folder in gateway/features, or "" for other modules."""
    return module.split(".")[2] if within(module, FEATURES) and module != FEATURES else ""


def test_the_core_imports_no_capability() -> None:
    """The core asks each command itself, calls the hooks of tables, and knows works by their names (issue 47).

    Transfers carry indexes of other kinds as BaseIndex.
    """
    layers = ("model", "store", "engine", "security", "server", "dialects", "capabilities")
    core = [
        module
        for package in (*(f"gateway.{layer}" for layer in layers), "transfer")
        for module in of(package)
    ]
    assert excesses(core, lambda imported: not within(imported, FEATURES)) == []


def test_all_capabilities_are_listed_and_can_be_installed() -> None:
    folders = {capability_of(module) for module in of(FEATURES)} - {""}
    assert set(CAPABILITIES) == folders
    assert [name for name in folders if f"{FEATURES}.{name}.install" not in FILES] == []


def test_tests_know_every_capability() -> None:
    """Tests of a capability that `needs` does not know are skipped without notice."""
    assert {path.parent.name for path in PRODUCT.rglob("features/*/__init__.py")} == INSTALLED


# The other capabilities that each of them may import.
OF_OTHERS = {"history": {"jobs"}, "jobs": {"history"}, "search": {"vectors"}}


def test_capabilities_import_only_others_that_they_name() -> None:
    for module in of(FEATURES):
        own = capability_of(module)
        may = {"", own, *OF_OTHERS.get(own, set())}
        assert excesses([module], lambda imported, may=may: capability_of(imported) in may) == []


def test_the_sql_of_a_capability_imports_no_engine() -> None:
    stores = [module for module in of(FEATURES) if module.endswith(("_store", "_schema"))]
    assert stores
    assert excesses(stores, lambda imported: not within(imported, "gateway.engine")) == []


def is_pure(module: str) -> bool:
    """True if a module of a capability imports only the model and other such modules."""
    return all(
        within(imported, "gateway.model") or (bool(capability_of(imported)) and is_pure(imported))
        for imported in imports(module)
        if within(imported, "gateway")
    )


# The capabilities of the DynamoDB adapter, each a folder or a file, with the others that they import.
OF_DYNAMODB: dict[str, set[str]] = {
    "backups": set(),
    "exports_imports": set(),
    "global_tables": set(),
    "insights": set(),
    "kinesis": {"streams"},  # a delivered record has the parts of a record of a stream
    "partiql": set(),
    "streams": set(),
    "vectors": set(),
}
# The common modules that import capabilities.
USERS_OF_DYNAMODB: dict[str, set[str]] = {
    "capabilities": {"global_tables", "insights", "vectors"},  # the list of their extensions and counters
    "display": {"partiql"},  # the console runs statements
    "dialect": {"exports_imports", "kinesis"},  # it registers background work if the settings ask for it
}


def test_common_modules_of_dynamodb_import_no_capability() -> None:
    """They call extensions of tables and counters of keys (issue 47). A capability imports only those that it names."""
    adapter, features = "adapters.dynamodb", "adapters.dynamodb.features"

    def owner(module: str) -> str:
        return (
            module.removeprefix(features).removeprefix(".").partition(".")[0]
            if within(module, features)
            else ""
        )

    assert {owner(module) for module in of(features)} <= {"", *OF_DYNAMODB}
    for module in FILES:
        own = owner(module)
        may = {
            "",
            own,
            *OF_DYNAMODB.get(own, ()),
            *USERS_OF_DYNAMODB.get(module.removeprefix(f"{adapter}."), ()),
        }
        assert excesses([module], lambda imported, may=may: owner(imported) in may) == []

    of_engine = (f"{FEATURES}.vectors", f"{FEATURES}.global_tables")
    common = [module for module in of(adapter) if not owner(module)]
    assert excesses(common, lambda imported: not any(within(imported, part) for part in of_engine)) == []


# Capability -> its modules in the gateway and in the adapter of Table Store, and the capabilities that it may import.
OF_TABLE_STORE: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "search": (("gateway.features.search", "adapters.tablestore.features.search"), set()),
    "search.sql": (("adapters.tablestore.features.search.sql",), {"search", "sql"}),
    "sql": (("adapters.tablestore.features.sql",), set()),
    "streams": (("adapters.tablestore.features.streams",), set()),
    "tunnels": (
        ("gateway.features.tunnels", "adapters.tablestore.features.tunnels"),
        {"streams"},
    ),
}  # fmt: skip


def test_capabilities_of_table_store_are_imported_by_the_list_only() -> None:
    """Each can be deleted with its lines in the list (issue 47). `search.sql` goes with either of its two."""

    def owner(module: str) -> str:
        owners = [(part, name) for name, (parts, _) in OF_TABLE_STORE.items() for part in parts]
        return max(((part, name) for part, name in owners if within(module, part)), default=("", ""))[1]

    for module in set(FILES) - {"gateway.capabilities"}:
        own = owner(module)
        may = {"", own, *(OF_TABLE_STORE[own][1] if own else ())}
        assert excesses([module], lambda imported, may=may: owner(imported) in may) == []


def test_an_adapter_imports_only_the_engine_the_model_and_http() -> None:
    entry_points = (
        "configuration.settings",
        "dialects",
        "features.jobs.job_runner",
        "engine.engine",
        "features.vectors.vector_support",
        "http.messages",
        "http.request_bodies",
        "http.request_context",
        "model",
        "observability.audit",
        "observability.metrics",
        "security.credentials",
        "security.signatures",
        "security.gate",
        "security.identities",
    )
    for module in of("adapters"):
        own = ".".join(module.split(".")[:2])

        def may_import(imported: str, own: str = own) -> bool:
            if within(imported, "adapters"):
                return within(imported, own) or imported == "adapters"
            if within(imported, "gateway"):
                entry_point = any(within(imported, f"gateway.{entry_point}") for entry_point in entry_points)
                return entry_point or (bool(capability_of(imported)) and is_pure(imported))
            return not any(within(imported, package) for package in ("sqlalchemy", "flask", "werkzeug"))

        assert excesses([module], may_import) == []


def test_the_gateway_imports_no_adapter() -> None:
    assert excesses(of("gateway"), lambda imported: not within(imported, "adapters")) == []


def test_sqlalchemy_stays_in_the_store_and_in_schemas() -> None:
    schemas = {module for module in of(FEATURES) if module.endswith("_schema")}
    others = set(FILES) - {*of("gateway.store"), *of("migrations"), *schemas}
    assert excesses(others, lambda imported: not within(imported, "sqlalchemy")) == []


def height(module: str, package: str) -> int:
    """Return the position of a module's group among those of its package. The package itself is below all."""
    if module == package:
        return -1
    groups = [group for group in GROUPS[package] if within(module, f"{package}.{group}")]
    assert groups, f"{module} is in no group of {package}"
    return GROUPS[package].index(max(groups, key=len))


@pytest.mark.parametrize("package", GROUPS)
def test_arrows_between_groups_run_one_way(package: str) -> None:
    upwards = [
        f"{module} imports {imported}"
        for module in of(package)
        if module != package
        for imported in imports(module)
        if imported in FILES
        and within(imported, package)
        and height(imported, package) > height(module, package)
    ]
    assert upwards == []


def test_every_adapter_has_its_groups() -> None:
    assert {f"adapters.{name.split('.')[1]}" for name in of("adapters") if "." in name} == set(GROUPS) - {
        "gateway",
        "transfer",
    }


def test_only_the_command_line_imports_transfers() -> None:
    """The command line loads their commands by name."""
    others = set(FILES) - set(of("transfer"))
    assert excesses(others, lambda imported: not within(imported, "transfer")) == []


@pytest.mark.parametrize("package", ["gateway.store.sqlite", "gateway.store.postgresql"])
def test_only_opening_imports_the_databases(package: str) -> None:
    others = set(FILES) - {*of(package), "gateway.store.opening"}
    assert excesses(others, lambda imported: not within(imported, package)) == []


def test_no_text_tests_for_a_database_by_name() -> None:
    """Differences between databases are methods of each (store/sql/databases.py)."""
    question = "is_" + "postgresql"
    for folder in ("tablegate", "tests", "benchmarks", "docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".toml"):
                assert question not in path.read_text(), path


def test_only_settings_and_command_lines_name_a_module() -> None:
    """adapter.py finds an adapter by its name in the settings, and the operations of a capability. capabilities.py finds
    the installation of each, __main__.py a command, blueprint.py the pages of a capability, and the schema the modules
    with SQL tables.

    Everything else is imported.
    """
    others = set(FILES) - {
        "gateway.dialects.adapter",
        "gateway.__main__",
        "gateway.capabilities",
        "gateway.console.blueprint",
        "migrations.schema",
    }
    assert excesses(others, lambda imported: imported != "importlib") == []
    assert [module for module in others if "__import__" in FILES[module].read_text()] == []


def test_there_are_no_import_cycles() -> None:
    finished: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module not in finished:
            for imported in imports(module):
                if imported in FILES and imported != module:
                    visit(imported, (*path, module))
            finished.add(module)

    for module in sorted(FILES):
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
        "transfer.mapping.identities",
    },
    "psycopg": {"gateway.store.postgresql", "gateway.configuration.database_urls"},
}


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_driver_is_its_databases_own(driver: str) -> None:
    others = [module for module in FILES if not any(within(module, owner) for owner in DRIVERS[driver])]
    assert excesses(others, lambda imported: not within(imported, driver)) == []


def test_no_code_compares_the_database_name() -> None:
    own = {"gateway.store.sqlite", "gateway.store.postgresql"}
    # The parsers of URLs, the start of a migration, and arguments of SQLAlchemy that contain a database's name.
    schema = {part.__name__.removeprefix("tablegate.") for part in PARTS}
    may = {"gateway.store.opening", "gateway.store.migrating", *own, *schema}
    for module in (module for layer in LAYERS for module in of(f"gateway.{layer}")):
        if not any(within(module, allowed) for allowed in may):
            words = words_of(tree(module))
            naming = {word for word in words if re.search("sqlite|postgres|psycopg", word, re.IGNORECASE)}
            assert naming == set(), module


def words_of(module: ast.Module) -> set[str]:
    """Return the names, attributes and short texts of a module."""
    words = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Name):
            words.add(node.id)
        elif isinstance(node, ast.Attribute):
            words.add(node.attr)
        elif isinstance(node, ast.Constant) and is_short(node):
            words.add(str(node.value))
    return words


def is_short(node: ast.Constant) -> bool:
    """True if a constant is a word and no docstring."""
    return isinstance(node.value, str) and " " not in node.value


# The purpose of each module


def test_every_module_has_a_purpose() -> None:
    """Its docstring's first sentence, which `make docs` lists."""
    paths = sorted(PRODUCT.rglob("*.py"))
    assert [str(path) for path in paths if not purpose_of(path) and not path.name.endswith("_pb2.py")] == []


@pytest.mark.parametrize(
    "name", ["architecture", "glossary", "contribute/adding-a-database", "contribute/adding-a-dialect"]
)
def test_lines_of_documents_are_of_a_readable_length(name: str) -> None:
    """Tables cannot be broken into lines."""
    lines = (ROOT / "docs" / f"{name}.md").read_text().splitlines()
    assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == []
