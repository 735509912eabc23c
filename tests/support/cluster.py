"""A Citus cluster of three servers on loopback, for one command.

    python -m tests.support.cluster COMMAND ...

Starts a coordinator and two workers in a temporary folder, and runs the command with their URLs in the environment
(tests/support/databases.py). Citus must be installed with the PostgreSQL of `pg_config`, or of PG_CONFIG. If the
environment names a cluster, that one is used.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from tests.support.databases import OWN_URL

_SETTINGS = {
    "shared_preload_libraries": "citus",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "wal_level": "logical",
    "fsync": "off",
    "max_connections": 300,
    "max_prepared_transactions": 300,
    # Each test database has a maintenance daemon.
    "max_worker_processes": 64,
    "citus.recover_2pc_interval": "5s",
    "citus.metadata_sync_interval": "1s",
    "citus.metadata_sync_retry_interval": "1s",
    # A restore reads the log from the folder of the server.
    "wal_keep_size": "1GB",
}


def free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _execute(port: int, *statements: str) -> None:
    with psycopg.connect(_url(port), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[arg-type]


def _url(port: int) -> str:
    return f"postgresql://postgres@127.0.0.1:{port}/postgres"


def main() -> int:
    """Run the command, and return its exit code."""
    if OWN_URL:
        return subprocess.run(sys.argv[1:], check=False).returncode
    pg_config = os.environ.get("PG_CONFIG", "pg_config")
    try:
        programs, library = (
            Path(subprocess.check_output([pg_config, option], text=True).strip())
            for option in ("--bindir", "--pkglibdir")
        )
    except OSError:
        sys.exit(f"{pg_config} is not there: install PostgreSQL with its server headers, or set PG_CONFIG")
    if not (library / "citus.so").exists():
        sys.exit(f"Citus is not installed in {library}: install its package, or build it from its source")
    # PostgreSQL does not run as root.
    owner: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="tablegate-cluster-"))
    if owner:
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
    ports = free_ports(3)

    def run(program: str, *arguments: str) -> None:
        # Servers connect to each other as clients, which look for certificates in the home folder.
        environment = {**os.environ, "HOME": str(folder)}
        command = [programs / program, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, env=environment, **owner)

    data = [folder / str(port) for port in ports]
    try:
        for port, place in zip(ports, data, strict=True):
            run(
                "initdb",
                "-D",
                str(place),
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
                "--no-sync",
            )
            options = " ".join(f"-c {name}={value}" for name, value in {**_SETTINGS, "port": port}.items())
            run("pg_ctl", "-D", str(place), "-l", f"{place}.log", "-o", options, "-w", "start")
            _execute(port, "CREATE EXTENSION citus")
        coordinator, *workers = ports
        _execute(coordinator, f"SELECT citus_set_coordinator_host('127.0.0.1', {coordinator})")
        _execute(coordinator, *(f"SELECT citus_add_node('127.0.0.1', {port})" for port in workers))
        urls = {
            "TABLEGATE_TEST_DATABASE_URL": _url(coordinator),
            "TABLEGATE_TEST_SECOND_DATABASE_URL": _url(workers[0]),
        }
        return subprocess.run(sys.argv[1:], env={**os.environ, **urls}, check=False).returncode
    finally:
        for place in data:
            if (place / "postmaster.pid").exists():
                run("pg_ctl", "-D", str(place), "-m", "immediate", "stop")
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
