"""PgBouncer in front of a PostgreSQL server, for tests of its refusals and of failovers."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.support.running import free_port
from tests.support.waiting import wait_until


def require_pgbouncer() -> None:
    """Skip the test if PgBouncer is not installed."""
    if shutil.which("pgbouncer") is None:
        pytest.skip("pgbouncer is not installed (Debian: apt-get install pgbouncer)")


class PgBouncer:
    """A PgBouncer in front of a PostgreSQL server, in transaction mode. `host`: its address or the folder of its socket.

    `ignored`: the parameters of a connection's start that it ignores. It refuses others.
    """

    def __init__(
        self,
        folder: Path,
        server_port: int,
        host: str = "127.0.0.1",
        ignored: str = "extra_float_digits,options",
    ) -> None:
        self.port = free_port()
        self._file = folder / f"{self.port}.ini"
        self._file.write_text(
            f"[databases]\n* = host={host} port={server_port} user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            "auth_type = any\npool_mode = transaction\n"
            f"ignore_startup_parameters = {ignored}\n"
        )
        folder.chmod(0o755)
        self.start()

    def start(self) -> None:
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        self._process = subprocess.Popen(["pgbouncer", "-q", *user, self._file], stderr=subprocess.DEVNULL)
        wait_until(self._answers)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
