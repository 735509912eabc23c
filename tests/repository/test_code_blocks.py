"""Every code block of README.md, CONTRIBUTING.md and docs/ is run by a test, shows output, or states why it
is not run.
"""

from __future__ import annotations

import shutil
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.databases import PostgresServer
from tests.support.document_blocks import OUTPUT, Block, DocumentShell, blocks_of
from tests.support.running import ROOT
from tests.support.tables import each_row

DATABASE = "postgresql://tablegate@localhost/tablegate"
PORTS = ("8000", "8001", "9000", "10002")
# Documents with tests of their own: they need two clouds, or toolchains of other languages.
RUN_ELSEWHERE = {
    "README.md": "tests/repository/test_readme.py",
    "docs/migrate/tutorial.md": "tests/transfer/test_walks.py",
    "docs/test/control.md": "tests/testing/test_document.py",
    "docs/test/other-languages.md": "tests/testing/test_document.py",
    "docs/test/pytest.md": "tests/testing/test_document.py",
}
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
)


def runnable(document: str) -> list[Block]:
    """The blocks that a test must run."""
    found = blocks_of((ROOT / document).read_text())
    return [each for each in found if not each.is_marked and each.language not in OUTPUT]


@each_row("document", DOCUMENTS)
def test_every_block_names_its_language(document: str) -> None:
    """Indented blocks have no language, so it is unclear whether they can be run."""
    assert [each.line for each in blocks_of((ROOT / document).read_text()) if not each.language] == []


def test_documents_run_by_other_tests_are_named_in_them() -> None:
    for document, test in RUN_ELSEWHERE.items():
        assert runnable(document), document
        assert document in (ROOT / test).read_text(), test


@pytest.fixture
def free_ports() -> dict[str, str]:
    """Other ports for those that the documents name."""
    with ExitStack() as opened:
        listening = [opened.enter_context(socket.socket()) for _ in PORTS]
        for each in listening:
            each.bind(("127.0.0.1", 0))
        return {named: str(each.getsockname()[1]) for named, each in zip(PORTS, listening, strict=True)}


RUN_HERE = [document for document in DOCUMENTS if document not in RUN_ELSEWHERE and runnable(document)]


@pytest.mark.clients
@pytest.mark.parametrize("document", RUN_HERE)
def test_blocks_run(
    document: str, tmp_path: Path, free_ports: dict[str, str], request: pytest.FixtureRequest
) -> None:
    """In the order of the page, in one folder."""
    text = (ROOT / document).read_text()
    if "\ncurl " in text and shutil.which("curl") is None:
        pytest.skip("no curl")
    with ExitStack() as opened:
        replaced = dict(free_ports)
        if DATABASE in text:
            postgres: PostgresServer = request.getfixturevalue("postgres")
            new = opened.enter_context(postgres.new_database())
            replaced = {DATABASE: new.replace("postgresql+psycopg", "postgresql"), **replaced}
        shell = DocumentShell(tmp_path, replaced)
        opened.callback(shell.close)
        shell.run(blocks_of(text))
