"""A late module is loaded by the first call of one of its functions, and not before."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gateway.model.late_modules import LateModule


def test_a_module_is_loaded_by_the_first_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "late_example.py").write_text(
        "def doubled(number, *, plus=0):\n    return 2 * number + plus\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    late = LateModule("late_example")
    doubled = late.doubled
    assert "late_example" not in sys.modules
    assert doubled(2, plus=1) == 5
    assert sys.modules.pop("late_example").doubled(2) == 4
