"""Progress on a terminal: a bar for each table, with sentences between them. Elsewhere: lines."""

from __future__ import annotations

import io

import pytest

from tablegate.transfer.progress import BarProgress, LineProgress, for_stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Not a fixture: pytest captures standard error anew for the test itself."""
    written = Terminal()
    monkeypatch.setattr("sys.stderr", written)
    return written


def test_each_table_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    progress = for_stderr()
    assert isinstance(progress, BarProgress)
    progress.begin("music", 200)
    progress.advance(100, 5_000, 1)
    progress.say("a sentence")
    progress.begin("films", None, rows=7)
    progress.advance(1, 10, 0)
    progress.close()
    # A bar is drawn over itself, so what remains of a line is after its last return to the first column.
    drawn = terminal.getvalue().split("\r")
    [half] = [each for each in drawn if "100 rows" in each and "music" in each]
    assert half.count("#") == half.count("-") > 10
    assert "5.0 kB" in half
    assert "1 rejected" in half
    assert any(each.startswith("\x1b[Ka sentence\n") for each in drawn)
    assert any("films" in each and "8 rows" in each for each in drawn)
    assert terminal.getvalue().endswith("\x1b[?25h\n")  # the cursor is shown again


def test_changes_that_are_followed_have_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    progress = for_stderr()
    progress.following(2.5, 10, 3)
    progress.following(0.0, 13, 0)
    progress.close()
    assert "2.5 s behind, 10 changes applied, 3 waiting" in terminal.getvalue()
    assert "0.0 s behind, 13 changes applied, 0 waiting" in terminal.getvalue()


def test_more_rows_than_expected_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    progress = for_stderr()
    progress.begin("music", 10)
    for _ in range(3):
        progress.advance(8, 0, 0)
    progress.close()
    assert "24 rows" in terminal.getvalue()


def test_a_file_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    progress = for_stderr()
    assert isinstance(progress, LineProgress)
    progress.begin("music", 10)
    progress.advance(10, 0, 0)
    progress.close()
    assert written.getvalue().startswith("music: about 10 rows\nmusic: 10 rows, ")
