"""Impossible values of options and arguments: an error of one line, and no traceback."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from tablegate.gateway.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("healthcheck", "--url", "localhost:8000"), "is not the address of a server"),
        (("healthcheck", "--url", "http://localhost:x"), "is not the address of a server"),
        (("wait", "--url", "/"), "is not the address of a server"),
        (("wait", "--seconds", "nan"), "nan is not a finite number"),
        (("wait", "--seconds", "-1"), "is not in the range"),
        (("jobs", "cancel", f"{1 << 63}"), "is not in the range"),
        (("replay", "t.zst", "--against", "http://h", "--speed", "inf"), "inf is not a finite number"),
    ],
)
def test_a_value_is_refused(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    with contextlib.chdir(tmp_path):
        done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr.splitlines()[-1]


def test_an_argument_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        assert CliRunner().invoke(main, ["migrate"]).exit_code == 0
        done = CliRunner().invoke(main, ["quotas", "remove", "\udcff"])
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (1, "Error: An argument is not text in UTF-8.")


@pytest.mark.parametrize("arguments", [("backup", "copy.sqlite"), ("tables",), ("migrate",)])
def test_a_name_that_is_too_long_is_one_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with contextlib.chdir(tmp_path):
        done = CliRunner().invoke(main, [*arguments, "--database", "d" * 256])
    assert done.exit_code == 1
    assert done.stderr.strip().endswith("File name too long")


def test_a_server_that_does_not_speak_http_is_not_ready() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"\0\n")

        threading.Thread(target=answer, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        done = CliRunner().invoke(main, ["healthcheck", "--url", url])
    assert done.exit_code == 1
    assert done.stderr.startswith(f"Error: The server is not ready at {url}/readyz: the answer is not ")
