"""Files of backups (gateway/store/tables/backup_files.py) as a source of `tablegate copy`: a table comes again without its
database."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.commands.backup_commands import CreateBackup, KeepHistory
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.row_lines import row_line
from tablegate.gateway.model.values.rows import Contents
from tablegate.gateway.model.values.values import text
from tablegate.gateway.security.credentials import SHARED_NAMESPACE
from tablegate.gateway.store.opening.opening import open_database
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables.backup_files import BackupDirectory
from tablegate.transfer.endpoints.database.endpoint import DatabaseEndpoint
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.files.json_lines import JsonLines
from tablegate.transfer.errors import BadFile
from tests.transfer.support.memory_endpoint import PAIR


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of a backup of a table of three rows, which has a history."""
    url = f"sqlite:///{tmp_path}/a.sqlite"
    with closing(DatabaseEndpoint(f"{url}#things")) as endpoint:
        endpoint.create(Definition("things", Service.DYNAMODB, PAIR))
    store = Store(open_database(url))
    store.backup_files = BackupDirectory(tmp_path)
    with closing(Engine(store)) as engine:
        with store.read() as session:
            table = store.catalog.find(session, SHARED_NAMESPACE, "things")
        assert table is not None
        [table] = engine.run([KeepHistory(table, 35)])
        assert isinstance(table, Table)
        for number in range(3):
            values = {name: text(f"{number}") for name in PAIR.names}
            put = Write(table, PAIR.key(values), Replace(Contents.of_values(values)))
            assert isinstance(engine.run([WriteGroup((put,))])[0], list)
        engine.run([CreateBackup(table, "first")])
        while engine.background_batch() or engine.job_batch():
            pass
    [found] = tmp_path.glob("*.jsonl.zst")
    return found


def test_the_table_comes_again(file: Path, tmp_path: Path) -> None:
    """Without what belonged to the other one alone: its history is no rule of this one."""
    source = JsonLines(file)
    definition = source.describe()
    assert (definition.service, definition.rows) == (Service.DYNAMODB, 3)
    assert definition.rules.history is None
    rows = [row for page in source.scan(source.segments(1)[0]) for row in page.rows]
    with closing(DatabaseEndpoint(f"sqlite:///{tmp_path}/b.sqlite#things")) as target:
        target.create(definition)
        assert target.write(rows) == []
        target.finish()
        assert target.describe().properties == definition.properties
        again = [row for page in target.scan([0, 1]) for row in page.rows]
        assert sorted(row.body for row in again) == sorted(row.body for row in rows)


def test_a_table_with_a_history_is_described_without_it(file: Path, tmp_path: Path) -> None:
    """A history is of one table of one database: its number means another one elsewhere."""
    with closing(DatabaseEndpoint(f"sqlite:///{tmp_path}/a.sqlite#things")) as endpoint:
        assert endpoint.describe().rules.history is None


@pytest.mark.parametrize("member", [b'"table":{', b'"rows":3'])
def test_a_header_that_is_damaged(file: Path, tmp_path: Path, member: bytes) -> None:
    lines = JsonLines(file)
    rows = [row_line(row) for page in lines.scan(lines.segments(1)[0]) for row in page.rows]
    assert len(rows) == 3
    import zstandard

    plain = zstandard.ZstdDecompressor().stream_reader(file.read_bytes()).read()
    changed = tmp_path / "changed.jsonl"
    changed.write_bytes(plain.replace(member, b'"other":' + member.partition(b":")[2], 1))
    with pytest.raises(BadFile):
        JsonLines(changed).describe()
