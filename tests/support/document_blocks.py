"""Code blocks of the documents, and a shell that runs them as a reader would.

The word after the language of a block tells the runner how to run it. The rendered page omits it:

- ```` ```sh ````: run it. Exported variables stay for the blocks that follow.
- ```` ```sh background ````: start it, wait for its first line of output, and stop what an earlier block started.
- ```` ```sh background also ````: the same, but earlier background blocks continue.
- ```` ```python ````: run it as a program.
- ```` ```python app.py ````: save it as this file. Any language can have a file name.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

from tests.support.running import ROOT
from tests.support.waiting import PATIENCE_S

NOT_RUN = "Not run by the tests:"
"""The beginning of the HTML comment above a block that no test runs. The reason follows."""
OUTPUT = frozenset({"text", "json"})
"""Languages of blocks that show output or a form, and are not run."""


class Block(NamedTuple):
    """A code block of a document."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int
    is_marked: bool  # as not run

    @property
    def file(self) -> str | None:
        """The name of the file that the block is to be saved as."""
        return next((word for word in self.words if "." in word), None)


def blocks_of(markdown: str) -> Iterator[Block]:
    """The blocks of a document or a part of one, in order. Directives of the site are left out."""
    above = ""
    for token in MarkdownIt("commonmark").parse(markdown):
        if token.type in ("inline", "html_block"):
            above = token.content
        elif token.type in ("fence", "code_block"):
            language, *words = token.info.split() or [""]
            line = (token.map or [0])[0] + 1
            if not language.startswith("{"):
                is_marked = above.removeprefix("<!--").lstrip().startswith(NOT_RUN)
                yield Block(language, tuple(words), token.content, line, is_marked)
            above = ""


def chapter_of(markdown: str, heading: str) -> str:
    """The text below a heading of the second level."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", markdown, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


class DocumentShell:
    """Runs blocks in one folder, with `tablegate` on the PATH, and with these words instead of others."""

    def __init__(self, folder: Path, replaced: Mapping[str, str], **environment: str) -> None:
        commands = folder / "bin"
        commands.mkdir()
        for name, words in {
            "tablegate": ["-m", "tablegate"],
            "python": [],
            "pytest": ["-m", "pytest"],
        }.items():
            program = commands / name
            program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, *words])} "$@"\n')
            program.chmod(0o755)
        own = ("TABLEGATE_", "AWS_", "AZURE_", "PYTEST_")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        path = f"{commands}:{os.environ['PATH']}"
        self._environment = {
            **clean,
            "PATH": path,
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            **environment,
        }
        self._folder, self._replaced = folder / "work", replaced
        self._folder.mkdir()
        self._state = folder / "exported"
        self._state.touch()
        self._background: list[subprocess.Popen[bytes]] = []

    def run(self, blocks: Iterable[Block]) -> str:
        """Run these blocks and return their output. Fails with the output of the command that failed."""
        return "".join(map(self._run, blocks))

    def _run(self, block: Block) -> str:
        text = block.text
        if self._replaced:
            names = "|".join(rf"(?<!\d){re.escape(name)}(?!\d)" for name in self._replaced)
            text = re.sub(names, lambda found: self._replaced[found[0]], text)
        if block.is_marked or (block.language in OUTPUT and block.file is None):
            return ""
        if block.file is not None:
            path = self._folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return ""
        if block.language == "python":
            return self._call([sys.executable, "-c", text], block)
        assert block.language == "sh", f"line {block.line}: a block of {block.language!r} has no runner"
        if "background" in block.words:
            if "also" not in block.words:
                self.close()
            self._start(text)
            return ""
        script = f"source {self._state}\n{text}\nexport -p > {self._state}"
        return self._call(["bash", "-euo", "pipefail", "-c", script], block)

    def _call(self, words: list[str], block: Block) -> str:
        done = subprocess.run(
            words, cwd=self._folder, env=self._environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"line {block.line}: {block.text}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def _start(self, text: str) -> None:
        started = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", f"source {self._state}\nexec {text}"],
            cwd=self._folder, env=self._environment, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._background.append(started)
        assert started.stdout is not None
        line = started.stdout.readline()
        assert line.startswith(b"http"), f"{text}\n{line!r}"

    def close(self) -> None:
        """Stop the background processes."""
        while self._background:
            started = self._background.pop()
            started.send_signal(signal.SIGTERM)
            started.communicate(timeout=PATIENCE_S)
