"""Exchanges as text files, byte for byte: requests that SDKs cannot produce, and requests of frameworks.

A file of `exchanges/` is a sequence of exchanges on one fresh service. Each is a request, a line `----`, and the
expected reply. A line of `=` separates exchanges. Lines that begin with `#` are comments.

A request is signed unless it names a caller. Headers of a reply are those that must be present (`!Name` must be
absent). In both, «name» is a variable: its first occurrence in a reply sets it, and later ones must be equal. A body of
`*` matches any body.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tablegate.gateway.http.messages import Reply
from tests.adapters.azuretable.client import AzureTableService

FILES = sorted((Path(__file__).parent / "exchanges").glob("*.txt"))
_NAME = re.compile(r"«(\w+)»")
_TEXT = (r"[^\n]+?", r"[\s\S]+?")  # a name that ends in _lines may hold several


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_exchanges(path: Path, service: AzureTableService) -> None:
    caught: dict[str, str] = {}
    steps = re.split(r"^=+\n", path.read_text(), flags=re.MULTILINE)
    for number, step in enumerate(steps, 1):
        request, separator, expected = re.sub(r"^#.*\n", "", step, flags=re.MULTILINE).partition("\n----\n")
        assert separator, f"{path.name}, exchange {number} has no reply"
        reply = send(service, request.lstrip("\n"), caught)
        compare(f"{path.name}, exchange {number}", reply, expected.strip("\n"), caught)


def send(service: AzureTableService, text: str, caught: dict[str, str]) -> Reply:
    """Send a request written as text. `\\` at the end of a line joins the next to it."""
    text = _NAME.sub(lambda found: caught.get(found.group(1), found.group()), text.replace("\\\n", ""))
    head, _, body = text.partition("\n\n")
    first, *lines = head.splitlines()
    method, _, target = first.partition(" ")
    headers = dict(line.split(": ", 1) for line in lines)
    if "multipart" in headers.get("Content-Type", ""):
        body = body.replace("\n", "\r\n")
    if target.startswith("/"):
        return service.handle(service.request(method, target, body.encode() or None, headers, base=""))
    return service.send(method, "/" + target, body.encode() or None, headers)


def compare(where: str, reply: Reply, expected: str, caught: dict[str, str]) -> None:
    head, _, body = expected.partition("\n\n")
    status, *lines = head.splitlines()
    assert f"{reply.status}" == status, f"{where}: {reply}"
    headers = {name.lower(): value for name, value in reply.headers}
    for line in lines:
        if line.startswith("!"):
            assert line[1:].lower() not in headers, f"{where}: {line}"
            continue
        name, _, value = line.partition(": ")
        match(f"{where}, {name}", headers.get(name.lower(), "(absent)"), value, caught)
    if body.strip("\n") == "*":
        return
    match(where, reply.body.decode().replace("\r\n", "\n").strip("\n"), body.strip("\n"), caught)


def match(where: str, actual: str, expected: str, caught: dict[str, str]) -> None:
    """Actual text against expected, names in it caught or the same as before. `\\` at a line's end joins the next."""
    pattern, position = "", 0
    expected = expected.replace("\\\n", "")
    named: set[str] = set()
    for found in _NAME.finditer(expected):
        name = found.group(1)
        pattern += re.escape(expected[position : found.start()])
        if name in caught:
            pattern += re.escape(caught[name])
        else:
            pattern += f"(?P={name})" if name in named else f"(?P<{name}>{_TEXT[name.endswith('_lines')]})"
            named.add(name)
        position = found.end()
    pattern += re.escape(expected[position:])
    result = re.fullmatch(pattern, actual)
    assert result is not None, f"{where}\n--- expected\n{expected}\n--- actual\n{actual}\n--- caught {caught}"
    caught.update(result.groupdict())
