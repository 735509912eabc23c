"""The `tablegate` command as its users run it: processes, exit codes, and output."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import signal
import sqlite3
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.server.listening import make_self_signed_certificate
from tablegate.gateway.wiring import connect, open_store
from tests.support import packages
from tests.support.raw_client import RawClient
from tests.support.running import ROOT, Process, free_port
from tests.support.waiting import PATIENCE_S, wait_until


def tablegate(folder: Path, *arguments: str, code: int = 0, typed: str = "") -> str:
    """Run a command in this process, as if in a folder.

    Returns its standard output, with errors if it failed. `typed` is the standard input.
    """
    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, arguments, input=typed)
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.output


def refusal(folder: Path, *flags: str) -> str:
    """Why `tablegate serve` would not start."""
    process = Process(folder, *flags)
    code, errors = process.end()
    assert code == 1, errors
    return errors


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Process]:
    """`tablegate serve --port 0` with no other argument."""
    process = Process(tmp_path)
    yield process
    process.kill()


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as reply:
        return str(reply.read().decode())


def test_serve_needs_no_argument(serving: Process, tmp_path: Path) -> None:
    told = serving.wait_until_ready()
    assert serving.url.startswith("http://127.0.0.1:")
    assert str(tmp_path / "tablegate.sqlite") in told
    assert get(f"{serving.url}/readyz") == "ready\n"
    assert "ready" in tablegate(tmp_path, "healthcheck", "--port", serving.url.rpartition(":")[2])
    # A second server on the file is refused with the pid of the first.
    assert f"pid {serving.pid}" in refusal(tmp_path)
    # Other commands can read it meanwhile.
    tablegate(tmp_path, "tables")
    code, errors = serving.terminate()
    assert (code, errors) == (0, "")
    assert (tmp_path / "tablegate.sqlite.lock").read_text() == ""


@pytest.mark.extended
def test_after_a_crash_the_next_server_gets_in(tmp_path: Path) -> None:
    first = Process(tmp_path)
    first.wait_until_ready()
    first.kill()
    second = Process(tmp_path)
    second.wait_until_ready()
    assert second.terminate()[0] == 0


@pytest.mark.extended
def test_the_files_of_a_database_are_its_owners_alone(tmp_path: Path) -> None:
    server = Process(tmp_path)
    server.wait_until_ready()
    with RawClient(server.url) as client:
        client.create_table("things")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {f"tablegate.sqlite{ending}": 0o600 for ending in ("", "-wal", "-shm", ".lock")}
    assert server.terminate() == (0, "")
    # Access that the owner has granted stays, with a warning.
    (tmp_path / "tablegate.sqlite").chmod(0o640)
    server = Process(tmp_path)
    server.wait_until_ready()
    assert (tmp_path / "tablegate.sqlite").stat().st_mode & 0o777 == 0o640
    code, errors = server.terminate()
    assert (code, errors.count("\n"), '"mode":"0640"' in errors) == (0, 1, True)


def test_commands_make_a_database_for_its_owner_alone_too(tmp_path: Path) -> None:
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "target.sqlite")  # leads nowhere yet
    for name in ("new.sqlite", "link.sqlite"):
        tablegate(tmp_path, "migrate", "--database", f"sqlite:///{name}")
    assert (tmp_path / "new.sqlite").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "target.sqlite").stat().st_mode & 0o777 == 0o600


@pytest.mark.extended
def test_a_database_is_locked_under_each_of_its_names(serving: Process, tmp_path: Path) -> None:
    serving.wait_until_ready()
    (tmp_path / "other.sqlite").symlink_to(tmp_path / "tablegate.sqlite")
    assert f"pid {serving.pid}" in refusal(tmp_path, "--database", "sqlite:///other.sqlite")
    # Neither removing the lock file nor a new name unlocks the database.
    (tmp_path / "tablegate.sqlite.lock").unlink()
    assert "another server" in refusal(tmp_path)
    (tmp_path / "tablegate.sqlite").rename(tmp_path / "moved.sqlite")
    assert "another server" in refusal(tmp_path, "--database", "sqlite:///moved.sqlite")
    (tmp_path / "moved.sqlite").rename(tmp_path / "tablegate.sqlite")
    status, said = serving.terminate()
    # If the server checked while the file had another name, it has refused writes and logged the reason.
    assert status == 0
    assert all("was removed or replaced" in line for line in said.splitlines())
    again = Process(tmp_path, "--database", "sqlite:///other.sqlite")
    again.wait_until_ready()
    assert again.terminate() == (0, "")


def test_a_database_of_two_hard_links_is_refused(tmp_path: Path) -> None:
    tablegate(tmp_path, "migrate")
    (tmp_path / "second.sqlite").hardlink_to(tmp_path / "tablegate.sqlite")
    for name in ("tablegate.sqlite", "second.sqlite"):
        said = refusal(tmp_path, "--database", f"sqlite:///{name}")
        assert "2 hard links" in said
        assert said.count("\n") == 1
        assert "2 hard links" in tablegate(tmp_path, "tables", "--database", f"sqlite:///{name}", code=1)
    (tmp_path / "second.sqlite").unlink()
    tablegate(tmp_path, "tables")


@pytest.mark.extended
def test_two_servers_in_memory_do_not_meet(tmp_path: Path) -> None:
    servers = [Process(tmp_path, "--memory") for _ in range(2)]
    for server in servers:
        assert "nothing is kept" in server.wait_until_ready()
        assert get(f"{server.url}/readyz") == "ready\n"
    assert [server.terminate() for server in servers] == [(0, "")] * 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.extended
def test_dev_is_not_for_the_network(tmp_path: Path) -> None:
    said = refusal(tmp_path, "--host", "0.0.0.0")
    assert "--auth strict" in said
    assert "--insecure" in said
    for flag in (("--insecure",), ("--auth", "strict")):
        server = Process(tmp_path, "--host", "0.0.0.0", *flag)
        assert server.url.startswith("http://")
        server.terminate()


def test_a_port_in_use_is_reported(serving: Process, tmp_path: Path) -> None:
    serving.wait_until_ready()
    said = refusal(tmp_path, "--memory", "--port", serving.url.rpartition(":")[2])
    assert said.startswith("Error: cannot listen on 127.0.0.1")
    assert "with --host or --port," in said
    taken = ("--port", "0", "--azure-port", serving.url.rpartition(":")[2])
    assert "with --host or --azure-port," in refusal(tmp_path, "--memory", *taken)


def test_tls_with_a_certificate_of_our_own_making(tmp_path: Path) -> None:
    server = Process(tmp_path, "--tls-self-signed", "--azure-port", str(free_port()))
    assert "also on https://" in server.wait_until_ready()
    context = ssl.create_default_context(cafile=tmp_path / "tablegate-cert.pem")
    with urllib.request.urlopen(f"{server.url}/healthz", timeout=PATIENCE_S, context=context) as reply:
        assert reply.read() == b"ok\n"
    assert server.terminate()[0] == 0


@pytest.mark.extended
@pytest.mark.parametrize("workers", ["1", "2"])
def test_sighup_reads_certificates_again_and_ends_nothing(tmp_path: Path, postgres, workers: str) -> None:
    certificate, key = make_self_signed_certificate(tmp_path, "127.0.0.1")
    flags = ["--workers", workers, "--tls-cert", str(certificate), "--tls-key", str(key)]
    if workers != "1":
        flags += ["--database", postgres.empty_database()]
    credentials, pid_file = tmp_path / "credentials.json", tmp_path / "pid"
    os.mkfifo(credentials)

    def replace_certificate_during_the_start() -> None:
        # The server has read its certificate and now waits for its credentials. It does not serve yet.
        with credentials.open("w") as file:
            make_self_signed_certificate(tmp_path, "127.0.0.1")
            os.kill(int(pid_file.read_text()), signal.SIGHUP)
            file.write('{"credentials": []}')

    thread = threading.Thread(target=replace_certificate_during_the_start)
    thread.start()
    server = Process(
        tmp_path, *flags, "--credentials-file", str(credentials),
        environment={"TABLEGATE_SECRET_KEY": "k" * 16},
        command=("sh", "-c", f'echo $$ > pid; exec "{sys.executable}" -m tablegate "$@"', "tablegate"),
    )  # fmt: skip
    thread.join()
    server.wait_until_ready()
    pids = server.workers() if workers != "1" else [server.pid]
    wait_until(lambda: all(takes_hangups(pid) for pid in pids))
    before = certificate.read_text()
    assert shown_by(server) == {before}
    make_self_signed_certificate(tmp_path, "127.0.0.1")
    assert shown_by(server) == {before}
    os.kill(server.pid, signal.SIGHUP)
    after = certificate.read_text()
    assert after != before
    wait_until(lambda: shown_by(server) == {after})
    key.write_text("no key")
    os.kill(server.pid, signal.SIGHUP)
    server.wait_for_error(*["the previous one stays in use"] * int(workers))
    assert shown_by(server) == {after}
    assert server.terminate()[0] == 0


@pytest.mark.extended
def test_a_worker_that_takes_the_place_of_another_shows_the_certificate_of_now(
    tmp_path: Path, postgres
) -> None:
    certificate, key = make_self_signed_certificate(tmp_path, "127.0.0.1")
    flags = ["--tls-cert", str(certificate), "--tls-key", str(key), "--database", postgres.empty_database()]
    server = Process(tmp_path, "--workers", "2", *flags, environment={"TABLEGATE_SECRET_KEY": "k" * 16})
    server.wait_until_ready()
    first = server.workers()
    make_self_signed_certificate(tmp_path, "127.0.0.1")
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    server.wait_for_error(*["is being restarted"] * 2)
    assert shown_by(server) == {certificate.read_text()}
    assert server.terminate()[0] == 0


def shown_by(server: Process) -> set[str]:
    """The certificates that eight connections are shown."""
    address = ("127.0.0.1", int(server.url.rpartition(":")[2]))
    return {ssl.get_server_certificate(address, timeout=PATIENCE_S) for _ in range(8)}


def takes_hangups(pid: int) -> bool:
    """True if a process handles SIGHUP."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(re.search(r"^SigCgt:\t(\w+)$", status, re.MULTILINE)[1], 16)  # type: ignore[index]
    return bool(caught >> (signal.SIGHUP - 1) & 1)


def test_the_limit_of_descriptors_allows_all_connections(tmp_path: Path) -> None:
    # With the usual soft limit of 1,024, the database would have had the 24 that clients leave.
    shell = ("sh", "-c", 'ulimit -S -n 256; exec "$0" "$@"', sys.executable, "-m", "tablegate")
    server = Process(tmp_path, "--memory", "--max-connections", "1000", command=shell)
    server.wait_until_ready()
    [line] = [
        it
        for it in Path(f"/proc/{server.pid}/limits").read_text().splitlines()
        if it.startswith("Max open files")
    ]
    assert int(line.split()[3]) >= min(2000, int(line.split()[4]))
    assert server.terminate()[0] == 0


@pytest.mark.extended
def test_metrics_may_have_a_port_of_their_own(tmp_path: Path) -> None:
    port = free_port()
    server = Process(tmp_path, "--metrics-port", str(port), "--auth", "strict", "--host", "0.0.0.0")
    assert f"http://127.0.0.1:{port}/metrics" in server.wait_until_ready()
    assert "tablegate_connections" in get(f"http://127.0.0.1:{port}/metrics")
    # The server listens only on a loopback address, and refuses pages under other host names that resolve to it.
    [listening] = [
        line for line in Path("/proc/net/tcp").read_text().splitlines() if f":{port:04X} 00000000:" in line
    ]
    assert listening.split()[1].startswith("0100007F:")
    rebound = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Host": "evil.example.com"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(rebound, timeout=PATIENCE_S)
    assert "with --host or --metrics-port" in refusal(tmp_path, "--memory", "--metrics-port", str(port))
    server.terminate()


@pytest.mark.extended
@pytest.mark.parametrize("workers", ["1", "2"])
def test_series_of_dropped_tables_go_away(tmp_path: Path, postgres, workers: str) -> None:
    flags = ["--database", postgres.empty_database(), "--workers", workers]
    server = Process(tmp_path, *flags, environment={"TABLEGATE_SECRET_KEY": "k" * 16})
    server.wait_until_ready()

    def charged(table: str) -> bool:
        return (
            f'tablegate_consumed_capacity_total{{dialect="dynamodb",index="",kind="write",table="{table}"}}'
            in get(f"{server.url}/metrics")
        )

    for table in ("kept", "dropped"):
        with RawClient(server.url) as client:
            client.create_table(table)
            client.call("PutItem", TableName=table, Item={"p": {"S": "x"}})
    wait_until(lambda: charged("kept"))
    wait_until(lambda: charged("dropped"))
    with RawClient(server.url) as client:
        client.call("DeleteTable", TableName="dropped")
    assert charged("kept")
    assert not charged("dropped")
    with RawClient(server.url) as client:
        client.create_table("dropped")
        client.call("PutItem", TableName="dropped", Item={"p": {"S": "x"}})
    wait_until(lambda: charged("dropped"))
    assert server.terminate() == (0, "")


@pytest.mark.extended
def test_several_workers_share_a_port_and_are_replaced(tmp_path: Path, postgres) -> None:
    database = postgres.empty_database()
    server = Process(
        tmp_path, "--workers", "2", "--database", database, environment={"TABLEGATE_SECRET_KEY": "k" * 16}
    )
    server.wait_until_ready()
    assert {get(f"{server.url}/readyz") for _ in range(10)} == {"ready\n"}
    wait_until(lambda: 'status="200"} 10.0' in get(f"{server.url}/metrics"))
    before = server.workers()
    assert len(before) == 2
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    server.wait_for_error("is being restarted", "is being restarted")
    assert get(f"{server.url}/readyz") == "ready\n"
    assert not set(before) & set(server.workers())
    code, errors = server.terminate()
    assert (code, errors) == (0, "")


@pytest.mark.extended
def test_workers_do_not_outlive_their_parent(tmp_path: Path, postgres) -> None:
    """A service manager that kills what has hung must find the port free."""
    database = postgres.empty_database()
    server = Process(
        tmp_path, "--workers", "2", "--database", database, environment={"TABLEGATE_SECRET_KEY": "k" * 16}
    )
    server.wait_until_ready()
    workers = server.workers()
    server.kill()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def test_a_database_of_a_later_release_is_refused(tmp_path: Path) -> None:
    assert "ran 0001" in tablegate(tmp_path, "migrate")
    assert "up to date" in tablegate(tmp_path, "migrate")
    with sqlite3.connect(tmp_path / "tablegate.sqlite") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("DELETE FROM schema_compatibility")
    said = refusal(tmp_path)
    assert said == "Error: the database has schema 9999 of a later release of tablegate. Use that release\n"


def test_a_missing_database_is_reported(tmp_path: Path) -> None:
    url = f"postgresql://nobody@127.0.0.1:{free_port()}/none"
    said = refusal(tmp_path, "--database", url)
    assert said.startswith("Error: the database: ")
    assert "does not exist" in refusal(tmp_path, "--database", "nowhere/a.sqlite")


def test_credentials_from_adding_to_removing(tmp_path: Path) -> None:
    tablegate(tmp_path, "migrate")
    added = tablegate(tmp_path, "credentials", "add", "AKID", "--place", "123456789012")
    assert "secret=" in added
    account = tablegate(tmp_path, "credentials", "add", "acct", "--scheme", "azure")
    assert account.count("secret=") == 2
    assert "stored already" in tablegate(tmp_path, "credentials", "add", "AKID", code=1)
    assert tablegate(tmp_path, "credentials", "list") == "aws\tAKID\tplace=123456789012\nazure\tacct\n"
    rotated = tablegate(tmp_path, "credentials", "rotate", "acct", "--scheme", "azure", "--key", "2")
    assert rotated.split("\t")[2] == account.split("\t")[2]
    assert rotated != account
    assert "removed aws AKID" in tablegate(tmp_path, "credentials", "remove", "AKID")
    assert "no aws credential" in tablegate(tmp_path, "credentials", "remove", "AKID", code=1)


def secrets_of(folder: Path, access_id: str) -> tuple[str, ...]:
    """The secrets that are stored for an access id."""
    settings = load({"database": str(folder / "tablegate.sqlite")}, {})
    opened = open_store(settings, connect(settings))
    try:
        [found] = [item for item in opened.credential_store.load() if item.access_id == access_id]
        return found.secrets
    finally:
        opened.close()


def test_secrets_need_not_be_on_a_command_line(tmp_path: Path) -> None:
    """Every user of the machine can see arguments (ps, shell history), but not a file or a pipe.

    The secrets in these are not printed.
    """
    tablegate(tmp_path, "migrate")
    first, second = base64.b64encode(b"first").decode(), base64.b64encode(b"second").decode()
    (tmp_path / "keys").write_text(f"{first}\n{second}\n")
    added = tablegate(tmp_path, "credentials", "add", "acct", "--scheme", "azure", "--secret-file", "keys")
    assert added == "azure\tacct\n"
    assert secrets_of(tmp_path, "acct") == (first, second)
    assert (
        tablegate(tmp_path, "credentials", "add", "AK", "--secret-file", "-", typed="swordfish\n")
        == "aws\tAK\n"
    )
    assert secrets_of(tmp_path, "AK") == ("swordfish",)
    rotated = tablegate(tmp_path, "credentials", "rotate", "AK", "--secret-file", "-", typed="other")
    assert (rotated, secrets_of(tmp_path, "AK")) == ("aws\tAK\n", ("other",))


def test_a_file_of_one_azure_key_is_given_a_second(tmp_path: Path) -> None:
    tablegate(tmp_path, "migrate")
    first = base64.b64encode(b"first").decode()
    added = tablegate(
        tmp_path, "credentials", "add", "acct", "--scheme", "azure", "--secret-file", "-", typed=first
    )
    [shown] = added.rstrip().split("\t")[2:]
    assert secrets_of(tmp_path, "acct") == (first, shown.removeprefix("secret="))


def test_files_of_too_many_secrets_or_none_are_refused(tmp_path: Path) -> None:
    tablegate(tmp_path, "migrate")
    add = ("credentials", "add", "AK", "--secret-file", "-")
    assert "is empty" in tablegate(tmp_path, *add, typed="\n", code=1)
    assert "has 1 secret(s), not 2" in tablegate(tmp_path, *add, typed="a\nb\n", code=1)
    tablegate(tmp_path, *add, typed="a")
    assert "one new secret" in tablegate(tmp_path, "credentials", "rotate", *add[2:], typed="a\nb\n", code=1)


def test_a_session_token_may_come_from_a_file(tmp_path: Path) -> None:
    tablegate(tmp_path, "migrate")
    (tmp_path / "token").write_text("swordfish\n")
    added = tablegate(tmp_path, "credentials", "add", "AK", "--session-token-file", "token")
    assert added.endswith("session_token=...\n")
    settings = load({"database": str(tmp_path / "tablegate.sqlite")}, {})
    opened = open_store(settings, connect(settings))
    [found] = opened.credential_store.load()
    opened.close()
    assert found.session_token == "swordfish"


def test_a_table_store_key_is_bound_or_made_for_all_by_name(tmp_path: Path) -> None:
    tablegate(tmp_path, "migrate")
    add = ("credentials", "add", "--scheme", "tablestore", "--secret", "x")
    assert tablegate(tmp_path, *add, "one") == "tablestore\tone\tsecret=x\n"
    assert "place=inst" in tablegate(tmp_path, *add, "two", "--place", "inst")
    assert "place=*" in tablegate(tmp_path, *add, "three", "--any-place")
    bind = ("credentials", "bind", "one", "--scheme", "tablestore")
    assert tablegate(tmp_path, *bind, "--place", "inst") == "tablestore\tone\tplace=inst\n"
    assert tablegate(tmp_path, *bind, "--any-place") == "tablestore\tone\tplace=*\n"
    assert secrets_of(tmp_path, "one") == ("x",)
    assert "--any-place" in tablegate(tmp_path, *bind, code=2)
    assert "12 digits" in tablegate(tmp_path, "credentials", "add", "AK", "--any-place", code=1)


@pytest.mark.clients
def test_a_built_wheel_in_an_empty_environment_migrates_serves_and_stops(tmp_path: Path) -> None:
    wheels, environment, folder = tmp_path / "wheels", tmp_path / "venv", tmp_path / "folder"
    folder.mkdir()
    uv = str(Path(sys.executable).with_name("uv"))
    python = environment / "bin" / "python"
    [wheel, _] = packages.build(wheels)
    assert wheel.stat().st_size <= packages.MOST_WHEEL_BYTES
    for command in (
        ["venv", "--python", sys.executable, environment],
        ["pip", "install", "--python", python, "--constraint", ROOT / "requirements.lock", wheel],
        ["pip", "check", "--python", python],
    ):
        subprocess.run([uv, "--quiet", *command], check=True, capture_output=True)
    assert len([*environment.glob("lib/*/site-packages/*.dist-info")]) - 1 <= packages.MOST_DEPENDENCIES
    bare = {"PATH": str(python.parent), "HOME": str(folder)}
    listed = subprocess.run(
        [python, "-c", _LIST_PACKAGES], check=True, capture_output=True, text=True, cwd=folder, env=bare
    ).stdout
    assert listed.split() == ["tablegate"]
    _make_project_with_packages_of_our_names(folder)
    migrated = subprocess.run(
        ["tablegate", "migrate"], check=True, capture_output=True, text=True, cwd=folder, env=bare
    )
    assert "ran 0001" in migrated.stdout
    ran = subprocess.run(
        [python, "-m", "project"], check=True, capture_output=True, text=True, cwd=folder, env=bare
    )
    assert ran.stdout == "gateway adapters migrations\n"
    as_module = subprocess.run(
        [python, "-m", "tablegate", "--version"],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env=bare,
    )
    assert as_module.stdout.startswith("tablegate")
    server = Process(folder, command=(str(python.parent / "tablegate"),), environment={"PYTHONPATH": ""})
    server.wait_until_ready()
    assert get(f"{server.url}/readyz") == "ready\n"
    assert server.terminate() == (0, "")


def _make_project_with_packages_of_our_names(folder: Path) -> None:
    """Create a user's project that imports tablegate and has packages with the names of tablegate's."""
    names = ("gateway", "adapters", "migrations")
    for name in names:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"NAME = {name!r}\n")
    (folder / "project.py").write_text(
        f"import tablegate, {', '.join(names)}\nprint(*[each.NAME for each in ({', '.join(names)})])\n"
    )


_LIST_PACKAGES = """
import importlib.metadata
files = importlib.metadata.files("tablegate")
print(*sorted({file.parts[0] for file in files if ".dist-info" not in file.parts[0] and file.parts[0] != ".."}))
"""


def test_the_secret_key_is_changed_for_all_or_none(tmp_path: Path) -> None:
    tablegate(tmp_path, "migrate")
    old, new = "the old secret key, long enough", "the new secret key, long enough"
    flags = ["--secret-key", old]
    for access_id in ("ONE", "TWO"):
        tablegate(tmp_path, "credentials", "add", access_id, "--secret", f"secret of {access_id}", *flags)
    file = tmp_path / "new.key"
    file.write_text("short\n")
    assert "at least 16" in tablegate(
        tmp_path, "credentials", "reseal", "--new-secret-key-file", str(file), *flags, code=1
    )
    file.write_text(new + "\n")
    wrong = ["--secret-key", "a wrong secret key, long enough"]
    assert "cannot decrypt" in tablegate(
        tmp_path, "credentials", "reseal", "--new-secret-key-file", str(file), *wrong, code=1
    )
    assert "2 credentials" in tablegate(
        tmp_path, "credentials", "reseal", "--new-secret-key-file", str(file), *flags
    )
    assert "cannot decrypt" in tablegate(tmp_path, "credentials", "list", *flags, code=1)
    told = tablegate(tmp_path, "credentials", "rotate", "ONE", "--secret", "another", "--secret-key", new)
    assert "secret=another" in told
    assert "TWO" in tablegate(tmp_path, "credentials", "list", "--secret-key", new)
