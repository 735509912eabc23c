"""A database and files of this release, for the tests of later ones: `python -m tests.support.released_files`.

They are in tests/durability/released/VERSION. tests/durability/test_released_files.py reads them.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from pathlib import Path

import zstandard
from click.testing import CliRunner

from tablegate.gateway import __version__
from tablegate.gateway.__main__ import main
from tablegate.testing import Server
from tests.support.filled import fill
from tests.support.live_dynamodb import Live
from tests.support.sources import ROOT
from tests.transfer.traffic.proxies import recorder

FOLDER = ROOT / "tests" / "durability" / "released"
ACCESS_ID, SECRET, SECRET_KEY = "RELEASED", "a-secret-of-a-test", "sixteen-characters"
DATABASE, SNAPSHOT, TRACE = "tablegate.sqlite.zst", "snapshot.tgz", "trace.jsonl.zst"
ROWS = ("people.jsonl.zst", "people.parquet")


def tablegate(*arguments: object) -> None:
    """Run a command that must succeed."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output


def make(folder: Path) -> None:
    """Write the files into an empty folder."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "tablegate.sqlite"
        url = f"sqlite:///{path}"
        with Server(database=url, secret_key=SECRET_KEY) as server:
            fill(server.url)
            with recorder(server.url, folder / TRACE) as proxy:
                Live(proxy.url).client.scan(TableName="people")
            server.control.save("first")
            server.control.export("first", folder / SNAPSHOT)
        given = ("--secret", SECRET, "--all", "--database", url, "--secret-key", SECRET_KEY)
        tablegate("credentials", "add", ACCESS_ID, *given)
        for name in ROWS:
            tablegate(
                "copy", f"tablegate:{url}#people", f"file:{folder / name}", "--job", f"{scratch}/{name}.job"
            )
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("VACUUM")
        (folder / DATABASE).write_bytes(zstandard.compress(path.read_bytes(), 19))


if __name__ == "__main__":
    (FOLDER / __version__).mkdir(parents=True)
    make(FOLDER / __version__)
