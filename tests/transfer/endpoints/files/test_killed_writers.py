"""A process that writes a file is killed at any moment.

No partial file looks complete. Another process continues and neither loses nor repeats a row.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tablegate.transfer.endpoints.files.opening import open_file
from tablegate.transfer.endpoints.files.staging import partial_path
from tests.support.running import ROOT
from tests.support.waiting import PATIENCE_S
from tests.transfer.support.small_table import DEFINITION, PAIR, of_values, scanned, simple_row

pytestmark = pytest.mark.extended

ROWS = 300
# As a job does: what was written is noted, here by the parent, before more is written, and before the file is finished.
WRITER = """
import sys
from tests.transfer.support.small_table import DEFINITION, simple_row
from tablegate.transfer.endpoints.files.opening import open_file
path, since, rows, options = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), dict(each.split("=") for each in sys.argv[4:])
target = open_file(path, options)
if since < 0:
    target.create(DEFINITION)
    since = 0
else:
    target.reopen()
print("open", flush=True)
for first in range(since, rows, 10):
    target.write([simple_row(number) for number in range(first, min(first + 10, rows))])
    print(first + 10, flush=True)
    sys.stdin.readline()
print("finishing", flush=True)
target.finish()
print("finished", flush=True)
"""


SOAKING = "TABLEGATE_TEST_SOAK_SECONDS" in os.environ
NAMES = ["t.jsonl.zst", "export"] + (
    ["t.jsonl", "t.jsonl.gz", "t.parquet", "t.typed.csv", "t.ion"] if SOAKING else []
)


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_a_killed_writer_loses_and_doubles_nothing(tmp_path, name):
    keys = ["keys=pk:S,sk:N"] if name in ("export", "t.ion") else []
    format_option = ["format=dynamodb-export"] if name == "export" else []
    path = tmp_path / name
    chance = random.Random(name)
    noted = -1
    kills = [chance.randrange(31) for _ in range(8 if SOAKING else 1)]
    for kill_at in (*kills, 31, None):
        noted = _write(path, noted, format_option, kill_at)
        if kill_at is not None and noted < ROWS:
            assert not path.exists(), "only a whole file has its name"
    options = dict(each.split("=") for each in [*format_option, *keys])
    found = scanned(open_file(str(path), options))
    assert len(found) == ROWS
    if name != "t.typed.csv":
        expected = sorted(of_values(simple_row(number)) for number in range(ROWS))
        assert sorted(map(of_values, found)) == expected
    assert [each.name for each in tmp_path.iterdir()] == [name], "and nothing else is left"


def _write(path: Path, noted: int, options: list[str], kill_after: int | None) -> int:
    """Continue from the notes, and stop after this number of output lines, during the work that follows."""
    arguments = [sys.executable, "-c", WRITER, str(path), str(noted), str(ROWS), *options]
    with subprocess.Popen(
        arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for count, line in enumerate(process.stdout):
            if line[0].isdigit():
                noted = int(line)
                process.stdin.write("noted\n")
                process.stdin.flush()
            elif line == "open\n":
                noted = max(noted, 0)
            if count == kill_after:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGKILL)
                break
        process.wait(PATIENCE_S)
    if kill_after is None:
        assert process.returncode == 0
    return noted


def test_a_missing_partial_file_is_reported(tmp_path):
    path = tmp_path / "t.jsonl"
    target = open_file(str(path), {})
    target.create(DEFINITION)
    target.write([simple_row(1)])
    target.close()
    assert DEFINITION.key_schema == PAIR
    partial_path(path).unlink()
    again = open_file(str(path), {})
    again.reopen()
    with pytest.raises(Exception, match=r"partial was removed with the copied rows"):
        again.write([simple_row(2)])
