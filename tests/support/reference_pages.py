"""`make reference`: the pages of docs/reference, generated from the code. A test compares them with it.

`make docs` adds the list of modules.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from pathlib import Path
from typing import Any

from tablegate.adapters.azuretable import operation_table as azure_operations
from tablegate.adapters.azuretable.wire import errors as azure_errors
from tablegate.adapters.dynamodb import operation_table as dynamodb_operations
from tablegate.adapters.dynamodb.wire import errors as dynamodb_errors
from tablegate.adapters.tablestore import operation_table as tablestore_operations
from tablegate.adapters.tablestore.wire import errors as tablestore_errors
from tablegate.gateway.configuration.settings import SETTINGS, Settings
from tests.support.command_reference import COMMAND_PAGES, GENERATED, cell, commands_page, table
from tests.support.operations_by_feature import FEATURES, features_of
from tests.support.sources import PRODUCT, ROOT

REFERENCE = ROOT / "docs" / "reference"
DIALECTS = {"dynamodb": "DynamoDB", "azuretable": "Azure Table", "tablestore": "Table Store"}


# Modules


def modules_page() -> Iterator[str]:
    """Every folder and file of the product, with its purpose."""
    yield "# Modules\n"
    yield f"Every folder and file of the product, and the first sentence of its docstring. {GENERATED}"
    yield "[architecture.md](../architecture.md) describes how they work together.\n"
    yield from _folder_lines(PRODUCT)


def _folder_lines(folder: Path) -> Iterator[str]:
    own = folder / "__init__.py"
    purpose = f": {purpose_of(own).rstrip('.')}" if own.exists() and purpose_of(own) else ""
    files = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
    if files:
        yield f"## `{folder.relative_to(ROOT)}/`{purpose}\n"
        yield from table(("file", "purpose"), ((f"`{path.name}`", purpose_of(path)) for path in files))
    for inner in sorted(folder.iterdir()):
        if inner.is_dir() and inner.name != "__pycache__":
            yield from _folder_lines(inner)


def purpose_of(path: Path) -> str:
    """Return the first sentence of a module's docstring, or ""."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    found = re.match(r"(.+?[.:])(?= [A-Z`]|$)", first)
    sentence = found[1] if found else first
    return sentence.rstrip(":").replace("|", "\\|")


# Settings


def settings_by_group() -> dict[str, list[str]]:
    """Return the names of the settings by group."""
    groups: dict[str, list[str]] = {}
    for name, field in SETTINGS.items():
        groups.setdefault(field.metadata["group"], []).append(name)
    return groups


SERVICE_GROUPS = frozenset({"DynamoDB", "Azure Table", "Table Store"})


def settings_page() -> Iterator[str]:
    """Every setting with its flag, its variable and its default, but for those of one service."""
    yield "# Settings\n"
    yield f"`tablegate serve` has {len(SETTINGS)} settings. Those of one service are on [their own"
    yield f"page](settings-services.md). {GENERATED}\n"
    yield "A setting is taken from the first of these that has it: a flag, an environment variable, a TOML file"
    yield "(`--config FILE` or `TABLEGATE_CONFIG`), the default. The variable of `--max-body-bytes` is"
    yield "`TABLEGATE_MAX_BODY_BYTES`, its name in the file `max_body_bytes`. `tablegate config` prints the settings in"
    yield "force and their sources, and `tablegate config --example` a file with all of them.\n"
    yield from _tables_of_settings(settings_by_group().keys() - SERVICE_GROUPS)


def service_settings_page() -> Iterator[str]:
    """The settings of one service each."""
    yield "# Settings of services\n"
    yield f"[Settings](settings.md) has all others, and says where a value is taken from. {GENERATED}\n"
    yield from _tables_of_settings(SERVICE_GROUPS)


def _tables_of_settings(groups: Set[str]) -> Iterator[str]:
    for group, names in settings_by_group().items():
        if group in groups:
            yield f"## {group}\n"
            yield from table(("flag", "type", "default", "meaning"), map(setting_row, names))


def setting_row(name: str) -> tuple[str, str, str, str]:
    field = SETTINGS[name]
    flag = "--" + (field.metadata["flag"] or name.replace("_", "-"))
    shown = field.default
    if isinstance(shown, bool):
        flag, shown = f"{flag}` `--no-{flag[2:]}", str(shown).lower()
    elif isinstance(shown, tuple):
        shown = ",".join(shown)
    return (
        f"`{flag}`",
        " or ".join(f"`{each}`" for each in field.metadata["choices"]) or _type_name(name),
        "" if shown in (None, "") else f"`{shown}`",
        cell(field.metadata["meaning"]),
    )


def _type_name(name: str) -> str:
    hint = typing.get_type_hints(Settings)[name]
    members = [each for each in typing.get_args(hint) if each is not types.NoneType]
    if typing.get_origin(hint) is tuple:
        return "list"
    names = {"bool": "switch", "str": "text", "int": "integer", "float": "number", "Path": "path"}
    return names[(members[0] if members else hint).__name__]


# Metrics


class MetricFacts(typing.NamedTuple):
    """A metric as the page describes it."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str


def metrics() -> list[MetricFacts]:
    """The metrics that gateway/observability/prometheus.py defines, by name."""
    found = []
    for call in ast.walk(ast.parse((PRODUCT / "gateway/observability/prometheus.py").read_text())):
        if (
            isinstance(call, ast.Call)
            and getattr(call.func, "id", "") in _METRIC_TYPES
            and len(call.args) > 1
        ):
            name, meaning, *labels = (ast.literal_eval(argument) for argument in call.args)
            labels += [ast.literal_eval(each.value) for each in call.keywords if each.arg == "labels"]
            kind = _METRIC_TYPES[getattr(call.func, "id", "")]
            found.append(MetricFacts(name, kind, tuple(*labels), meaning))
    return sorted(found)


_METRIC_TYPES = {
    "Counter": "counter",
    "Gauge": "gauge",
    "GaugeMetricFamily": "gauge",
    "Histogram": "histogram",
    "_BulkHistogram": "histogram",
}


def metrics_page() -> Iterator[str]:
    """Every metric with its type and labels."""
    found = metrics()
    yield "# Metrics\n"
    yield f"The {len(found)} metrics that `/metrics` shows in the format of Prometheus. {GENERATED}"
    yield "[Monitor](../operate/monitor.md) says which to watch.\n"
    rows = (
        (f"`{each.name}`", each.type, ", ".join(f"`{label}`" for label in each.labels), cell(each.meaning))
        for each in found
    )
    yield from table(("name", "type", "labels", "meaning"), rows)


# The control API


def _openapi() -> Any:
    return json.loads((PRODUCT / "gateway/control/openapi.json").read_text())


def control_operations() -> list[tuple[str, str, Mapping[str, Any]]]:
    """(method, path, description) of each operation in openapi.json."""
    return [
        (method.upper(), path, operation)
        for path, item in _openapi()["paths"].items()
        for method, operation in item.items()
        if method in ("get", "put", "post", "delete", "patch")
    ]


def control_page() -> Iterator[str]:
    """Every operation of the control API."""
    found = control_operations()
    yield "# Control API\n"
    yield f"The {len(found)} operations under `/_tablegate`. {GENERATED} A running server describes them at"
    yield "`/_tablegate/openapi.json`. [The control API](../test/control.md) shows their use.\n"
    rows = (
        (f"`{method} {path}`", cell(operation.get("summary", "")), ", ".join(members(operation)))
        for method, path, operation in found
    )
    yield from table(("operation", "effect", "members of the request"), rows)


def members(operation: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"`{each['name']}`" for each in operation.get("parameters", []) if "name" in each)
    for media in operation.get("requestBody", {}).get("content", {}).values():
        yield from (f"`{name}`" for name in resolved(media["schema"]).get("properties", {}))


def resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema of openapi.json, without a reference."""
    if "$ref" not in schema:
        return schema
    found: Mapping[str, Any] = _openapi()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


# Errors


def error_codes() -> dict[str, dict[str, str]]:
    """The error codes of each dialect, with their HTTP statuses."""
    return {
        "dynamodb": _dynamodb_codes(),
        "azuretable": {code: str(status) for code, (status, _) in sorted(azure_errors.CATALOGUE.items())},
        "tablestore": {code: str(status) for code, status in sorted(tablestore_errors.STATUS.items())},
    }


def _dynamodb_codes() -> dict[str, str]:
    """The codes of the ServiceErrors that the adapter's source makes, with their statuses."""
    found: dict[str, set[str]] = {code: {"400"} for code in dynamodb_errors.REFUSALS}
    for path in (PRODUCT / "adapters/dynamodb").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call) or not call.args or not isinstance(call.args[0], ast.Constant):
                continue
            code = call.args[0].value
            if getattr(call.func, "id", "") == "ServiceError" and isinstance(code, str):
                given = [each.value for each in call.keywords if each.arg == "status"] or call.args[2:3]
                found.setdefault(code, set()).update(map(ast.unparse, given or [ast.Constant(400)]))
    return {code: ", ".join(sorted(statuses)) for code, statuses in sorted(found.items())}


def errors_page() -> Iterator[str]:
    """Every error code by dialect."""
    yield "# Error codes\n"
    yield "The error codes that each dialect answers with, and their HTTP statuses. The texts are those of the services."
    yield f"{GENERATED}\n"
    for dialect, codes in error_codes().items():
        yield f"## {DIALECTS[dialect]}\n"
        yield from table(("code", "status"), ((f"`{code}`", status) for code, status in codes.items()))


# Operations


def operations() -> dict[str, list[str]]:
    """The supported operations of each dialect."""
    return {
        "dynamodb": sorted(dynamodb_operations.NAMES),
        "azuretable": [_azure_name(*key) for key in azure_operations.OPERATIONS],
        "tablestore": sorted(tablestore_operations.OPERATIONS),
    }


_AZURE_PATHS = {
    "TableSet": "/Tables",
    "TableEntry": "/Tables('TABLE')",
    "EntitySet": "/TABLE",
    "Entity": "/TABLE(PartitionKey='P',RowKey='R')",
    "Batch": "/$batch",
    "Service": "/",
}


def _azure_name(resource: type, method: str, component: str) -> str:
    restype = "restype=service&" if resource.__name__ == "Service" else ""
    query = f"?{restype}comp={component}" if component else ""
    return f"{method} {_AZURE_PATHS[resource.__name__]}{query}"


def operations_page() -> Iterator[str]:
    """Every operation that clients can call, by feature and dialect."""
    by_dialect = operations()
    yield "# Operations\n"
    yield f"The operations that each dialect answers, by feature: {sum(map(len, by_dialect.values()))} in all. {GENERATED}"
    yield "[Semantics](../explain/semantics.md) compares what the features mean,"
    yield "[differences](../explain/differences.md) lists where an answer differs from the service's.\n"
    counts = (f"{len(by_dialect[dialect])} of {title}" for dialect, title in DIALECTS.items())
    yield f"There are {', '.join(counts)}. `none` means: no operation of its own. DynamoDB's secondary"
    yield "indexes and streams, and Table Store's streams and time to live, are members of CreateTable and UpdateTable.\n"
    rows = (
        (feature, *(_operations_cell(feature, dialect, by_dialect[dialect]) for dialect in DIALECTS))
        for feature in FEATURES
    )
    yield from table(("feature", *DIALECTS.values()), rows)


def _operations_cell(feature: str, dialect: str, names: Iterable[str]) -> str:
    of_feature = [name.rpartition(".")[2] for name in names if feature in features_of(dialect, name)]
    return ", ".join(f"`{name}`" for name in of_feature) or "none"


# Limits


LIMIT_PAGES = {
    "dynamodb": "limits.md",
    "azuretable": "limits-azure-table.md",
    "tablestore": "limits-table-store.md",
}


def limits_page(dialect: str) -> Iterator[str]:
    """The numbers of a dialect's limits.py, with their comments."""
    others = " and ".join(
        f"[{DIALECTS[each]}]({page})" for each, page in LIMIT_PAGES.items() if each != dialect
    )
    yield f"# Limits of {DIALECTS[dialect]}\n"
    yield f"{GENERATED}"
    yield f"{others} have pages of their own."
    yield "Limits that are called *ours* are not documented by the service: they bound the cost of a request. Numbers in"
    yield "brackets are rules of the protocol notes.\n"
    yield from table(("limit", "value", "note"), limits_of(dialect))


def limits_of(dialect: str) -> Iterator[tuple[str, str, str]]:
    """(name, value, comment) of each number in a dialect's limits.py."""
    path = PRODUCT / "adapters" / dialect / "wire/limits.py"
    values = vars(importlib.import_module(f"tablegate.adapters.{dialect}.wire.limits"))
    lines = path.read_text().splitlines()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if isinstance(values[name], (int, float)):
                note = " ".join(re.findall(r"#\s*(.+)", " ".join(lines[node.lineno - 1 : node.end_lineno])))
                yield f"`{name}`", f"{values[name]:,}", cell(note)


PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    **{page: partial(commands_page, page) for page in COMMAND_PAGES},
    "control-api.md": control_page,
    "errors.md": errors_page,
    **{page: partial(limits_page, dialect) for dialect, page in LIMIT_PAGES.items()},
    "metrics.md": metrics_page,
    "operations.md": operations_page,
    "settings.md": settings_page,
    "settings-services.md": service_settings_page,
}


def text_of(page: str) -> str:
    """The text of a page of docs/reference."""
    return _text(PAGES[page]())


def _text(lines: Iterator[str]) -> str:
    return "\n".join(lines).rstrip("\n") + "\n"


def main(words: list[str]) -> None:
    """Write the generated pages. With the word `modules`, only the list of modules, which is not in the repository."""
    if words == ["modules"]:
        (REFERENCE / "modules.md").write_text(_text(modules_page()))
        return
    from tests.support import public_interface

    for page in PAGES:
        (REFERENCE / page).write_text(text_of(page))
    public_interface.add_new_lines()


if __name__ == "__main__":
    main(sys.argv[1:])
