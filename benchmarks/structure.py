"""Structure of the product: the code that a request enters, and modules, classes and functions above a bound.

`python -m benchmarks.structure` prints

- the number of our files and functions that each traced request enters, with its bound (one warm request on SQLite
in memory)
- everything above the bounds of size
- the size of the product: lines, files, imports, docstrings on short private functions, modules that a start imports
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.azuretable import changeset
from benchmarks.in_process import (
    PORT,
    REQUESTS,
    ROOT,
    Calls,
    InProcess,
    dynamodb_request,
    in_process,
    row_key,
    tablestore_request,
)
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages

PRODUCT = ROOT / "tablegate"
MOST_FILE_LINES = 450
MOST_FUNCTION_LINES = 45
MOST_PARAMETERS = 7
MOST_METHODS = 30
MOST_IMPORTED_MODULES = 22
SMALL_FILE_LINES = 100
SHORT_BODY_LINES = 3
_GENERATED = ("_pb2.py",)


class Traced(NamedTuple):
    """A request that is sent twice, first to warm up and then counted. `files` and `functions` are its bounds."""

    name: str
    requests: tuple[bytes, bytes]
    files: int
    functions: int


def traced() -> Iterator[Traced]:
    """Yield the requests that have a bound."""
    puts, conditional = REQUESTS["DynamoDB PutItem"](), REQUESTS["DynamoDB PutItem on a condition"]()
    yield Traced("DynamoDB PutItem", (puts[0], puts[1]), 24, 80)
    yield Traced("DynamoDB PutItem on a condition", (conditional[0], conditional[1]), 32, 115)
    query = dynamodb_request(
        "Query", TableName="items", KeyConditionExpression="pk = :p AND begins_with(sk, :s)", FilterExpression="v1 <> :v",
        ExpressionAttributeValues={":p": {"S": "p1"}, ":s": {"S": "00"}, ":v": {"S": "z"}},
    )  # fmt: skip
    yield Traced("DynamoDB Query with a filter", (query, query), 30, 115)
    changes = [
        changeset(
            PORT, "people", [{"PartitionKey": "changed", "RowKey": f"{n}{m}", "Name": "x"} for m in "ab"]
        )
        for n in range(2)
    ]
    yield Traced("Azure changeset of 2", (changes[0], changes[1]), 28, 120)
    rows = tablestore_request(
        "GetRange",
        messages.GetRangeRequest(
            table_name="rows", direction=messages.FORWARD, max_versions=1, limit=20,
            inclusive_start_primary_key=row_key(0), exclusive_end_primary_key=row_key(100),
        ),
    )  # fmt: skip
    yield Traced("Table Store GetRange of 20", (rows, rows), 30, 130)


async def _count_entered(running: InProcess) -> dict[str, tuple[int, int]]:
    """Return request -> number of files and functions that it enters."""
    entered = {}
    for trace in traced():
        await running.send([trace.requests[0]])
        with Calls() as calls:
            await running.send([trace.requests[1]])
        entered[trace.name] = len({name.partition(":")[0] for name in calls.names}), len(calls.names)
    return entered


class Excess(NamedTuple):
    """Something above a bound: the bound's name, the place and the number found."""

    bound: str
    place: str
    number: int


def excesses(path: Path) -> Iterator[Excess]:
    """Yield everything in a module above the bounds."""
    text = path.read_text()
    place = str(path.relative_to(ROOT))
    lines = text.count("\n")
    if lines > MOST_FILE_LINES:
        yield Excess(f"files over {MOST_FILE_LINES} lines", place, lines)
    tree = ast.parse(text)
    imported = {name for node in ast.walk(tree) for name in _imported_modules(node)}
    if len(imported) > MOST_IMPORTED_MODULES:
        yield Excess(f"modules that import over {MOST_IMPORTED_MODULES} of ours", place, len(imported))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            methods = sum(isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) for member in node.body)
            if methods > MOST_METHODS:
                yield Excess(f"classes over {MOST_METHODS} methods", f"{place}:{node.name}", methods)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _function_excesses(node, f"{place}:{node.name}")


def _function_excesses(node: ast.FunctionDef | ast.AsyncFunctionDef, place: str) -> Iterator[Excess]:
    size = (node.end_lineno or node.lineno) - node.lineno + 1
    if size > MOST_FUNCTION_LINES:
        yield Excess(f"functions over {MOST_FUNCTION_LINES} lines", place, size)
    is_command = any(
        "click" in ast.unparse(part) or ".command(" in ast.unparse(part) for part in node.decorator_list
    )
    names = [part.arg for part in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    count = sum(name not in ("self", "cls") for name in names)
    if count > MOST_PARAMETERS and not is_command:
        yield Excess(f"functions over {MOST_PARAMETERS} parameters", place, count)


def _imported_modules(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("tablegate."):
        for name in node.names:
            is_module = (ROOT / node.module.replace(".", "/") / f"{name.name}.py").exists()
            yield f"{node.module}.{name.name}" if is_module else node.module
    elif isinstance(node, ast.Import):
        yield from (name.name for name in node.names if name.name.startswith("tablegate."))


def import_lines(tree: ast.Module) -> int:
    """Return the number of lines of import statements, wherever they stand."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def documented_short_functions(tree: ast.Module) -> int:
    """Return the number of private functions that have a docstring and at most SHORT_BODY_LINES lines besides."""
    number = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("_"):
            body = node.body[1:] if ast.get_docstring(node) and not node.name.endswith("__") else []
            number += bool(body) and (node.end_lineno or node.lineno) - body[0].lineno < SHORT_BODY_LINES
    return number


_SERVE = ("-m", "tablegate", "serve", "--port", "0", "--database", "sqlite://")


def modules_of_a_start() -> int:
    """Return the number of our modules that a server with default settings has imported when it listens."""
    command = [sys.executable, "-X", "importtime", *_SERVE]
    with tempfile.TemporaryFile("w+") as times:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=times, text=True, cwd=ROOT) as server:
            assert server.stdout is not None
            server.stdout.readline()
            server.terminate()
        times.seek(0)
        names = [line.rpartition("|")[2].strip() for line in times]
    return sum(name.startswith("tablegate") for name in names)


def product() -> list[Path]:
    """Return the Python files of the product without generated ones."""
    return [path for path in sorted(PRODUCT.rglob("*.py")) if not path.name.endswith(_GENERATED)]


def main() -> None:
    """Print the traces, everything above a bound, and the number of lines."""
    entered: dict[str, Any] = in_process(_count_entered)
    print("| request | files (bound) | functions (bound) |\n|---|---|---|")
    for trace in traced():
        files, functions = entered[trace.name]
        print(f"| {trace.name} | {files} ({trace.files}) | {functions} ({trace.functions}) |")
    modules = product()
    by_bound: dict[str, list[Excess]] = {}
    for excess in (excess_of_module for path in modules for excess_of_module in excesses(path)):
        by_bound.setdefault(excess.bound, []).append(excess)
    for bound, excesses_of_bound in sorted(by_bound.items()):
        print(f"\n{bound}: {len(excesses_of_bound)}")
        for excess in sorted(excesses_of_bound, key=lambda excess_of_module: -excess_of_module.number):
            print(f"  {excess.number:5} {excess.place}")
    _print_sizes(modules)


def _print_sizes(modules: list[Path]) -> None:
    texts = [path.read_text() for path in modules]
    trees = [ast.parse(text) for text in texts]
    lines = [text.count("\n") for text in texts]
    imported = sum(map(import_lines, trees))
    small = sum(number < SMALL_FILE_LINES for number in lines)
    documented = sum(map(documented_short_functions, trees))
    print(
        f"\nlines of Python: {sum(lines):,} in {len(lines)} files, {small} of them below {SMALL_FILE_LINES} lines"
    )
    print(f"import lines: {imported:,}, {imported / sum(lines):.1%} of all lines")
    print(f"docstrings on private functions of {SHORT_BODY_LINES} lines or fewer: {documented}")
    print(f"modules of ours that a start imports: {modules_of_a_start()}")


if __name__ == "__main__":
    main()
