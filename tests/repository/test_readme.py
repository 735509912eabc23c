"""The examples of README.md, unchanged, against a live server with the unmodified official SDKs."""

from __future__ import annotations

import re

import pytest

from tests.support.running import ROOT, Running

EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
SAYS = {"boto3": "Feeling Good", "azure": "1933", "tablestore": "Feeling Good"}


@pytest.mark.parametrize("sdk", SAYS)
def test_an_example_works(sdk: str, server: Running, capsys: pytest.CaptureFixture[str]) -> None:
    [example] = [text for text in EXAMPLES if re.search(rf"^(import|from) {sdk}", text)]
    assert "http://127.0.0.1:8000" in example
    exec(compile(example.replace("http://127.0.0.1:8000", server.url), "README.md", "exec"), {})
    assert SAYS[sdk] in capsys.readouterr().out
