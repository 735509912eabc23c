"""A cluster node on this machine that tests can kill and restart."""

from __future__ import annotations

import contextlib
import copy
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url

from tests.support.waiting import PATIENCE_S, wait_until


class ClusterNode:
    """A PostgreSQL server that the tests did not start. Skips the test if its processes cannot be killed from here."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._process: subprocess.Popen[bytes] | None = None
        pid = int(self._ask("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)"))
        process = Path(f"/proc/{pid}")
        try:
            self._command = (process / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            said = (process / "environ").read_bytes().rstrip(b"\0").split(b"\0")
            self._environment = dict(each.split(b"=", 1) for each in said if b"=" in each)
            self._owner = process.stat()
            self._folder = (process / "cwd").readlink()
            os.kill(pid, 0)
        except OSError:
            pytest.skip("the nodes are no processes of this machine that tests may kill")

    def kill(self) -> None:
        """SIGKILL to the server, and to all that it started, which would keep its memory."""
        processes = self._processes()
        _send(processes, signal.SIGKILL)
        if self._process is not None:
            self._process.wait()  # or its number would count as a server that runs
        while any(Path(f"/proc/{each}").exists() and not _is_zombie(each) for each in processes):
            time.sleep(0.01)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the server and its sessions during the block, so that its connections stay open without an answer."""
        processes = self._processes()
        _send(processes, signal.SIGSTOP)
        try:
            yield
        finally:
            _send(processes, signal.SIGCONT)

    def _processes(self) -> list[int]:
        pid = int(self._ask("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)"))
        return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]

    def start(self, port: int | None = None) -> None:
        """Start it, again where it finds the memory of the last still in use and gives up, and wait until it answers.

        `port`: another port than before.
        """
        if port is not None:
            self._command += [b"-c", b"port=%d" % port]
            self._url = make_url(self._url).set(port=port).render_as_string(hide_password=False)
        until = time.monotonic() + PATIENCE_S
        while True:
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    self._command,
                    cwd=self._folder,
                    env=self._environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    **self._as_owner(),
                )
            try:
                self._ask("SELECT 1")
                return
            except psycopg.OperationalError:
                assert time.monotonic() < until
                time.sleep(0.1)

    def back_up(self, folder: Path) -> None:
        """Copy the data of the running server into a new folder, from which `restored` starts another."""
        programs = Path(os.fsdecode(self._command[0])).parent
        command = [
            programs / "pg_basebackup",
            "-D",
            folder,
            "-d",
            self._plain("postgres"),
            "-X",
            "none",
            "-c",
            "fast",
        ]
        subprocess.run(
            command, check=True, stderr=subprocess.DEVNULL, env=self._environment, **self._as_owner()
        )

    def restored(self, folder: Path, port: int, restore_point: str) -> ClusterNode:
        """Start a server on a backup of this one, with the log up to a restore point."""
        self._ask("SELECT pg_switch_wal()::text")
        (folder / "recovery.signal").touch()
        with (folder / "postgresql.auto.conf").open("a") as settings:
            settings.write(
                f"restore_command = 'cp {self._folder}/pg_wal/%f %p'\n"
                f"recovery_target_name = '{restore_point}'\nrecovery_target_action = promote\n"
            )
        other = copy.copy(self)
        other._command = [
            os.fsencode(folder) if word == os.fsencode(self._folder) else word for word in self._command
        ]
        other._folder = folder
        other.start(port)
        wait_until(lambda: not other._ask("SELECT pg_is_in_recovery()"))
        return other

    def _plain(self, database: str) -> str:
        return make_url(self._url).set(database=database).render_as_string(hide_password=False)

    def _as_owner(self) -> dict[str, Any]:
        return {"user": self._owner.st_uid, "group": self._owner.st_gid} if os.geteuid() == 0 else {}

    def recover(self) -> None:
        """Commit or roll back what a crash left prepared, which Citus does by itself every minute."""
        self._ask("SELECT recover_prepared_transactions()")

    def _ask(self, statement: str) -> Any:
        with psycopg.connect(self._url, autocommit=True, connect_timeout=5) as connection:
            found = connection.execute(statement).fetchone()  # type: ignore[arg-type]
            return found[0] if found else None


def _send(processes: list[int], number: signal.Signals) -> None:
    for each in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, number)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
