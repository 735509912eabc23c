DELETE FROM backups WHERE copy_id = ?

DELETE FROM changes WHERE stream_id = ? AND shard = ? AND slot = ? AND sequence <= ?

DELETE FROM copies WHERE target_id = ?

DELETE FROM counters WHERE (name, slot) IN (SELECT name, slot FROM counters WHERE name >= ? AND name < ? ORDER BY name LIMIT ?)

DELETE FROM counters WHERE name = ? AND slot = ?

DELETE FROM entries WHERE index_id = ?

DELETE FROM entries WHERE index_id = ? AND partition = ? AND sort = ? AND slot = ?

DELETE FROM expiry_backfills WHERE table_id = ?

DELETE FROM histories WHERE id = ?

DELETE FROM history WHERE history_id = ?

DELETE FROM history WHERE history_id = ? AND (changed_at, slot, partition, sort) < (?, ?, ?, ?)

DELETE FROM history WHERE history_id = ? AND changed_at <= ?

DELETE FROM indexes WHERE id = ?

DELETE FROM partition_locks WHERE id = ? AND slot = ?

DELETE FROM progress WHERE work = ? AND id = ?

DELETE FROM purges WHERE kind = ? AND id = ?

DELETE FROM rows WHERE table_id = ?

DELETE FROM rows WHERE table_id = ? AND (partition, sort) < (?, ?)

DELETE FROM rows WHERE table_id = ? AND partition = ? AND sort = ? AND slot = ?

DELETE FROM shards WHERE stream_id = ?

DELETE FROM shards WHERE stream_id = ? AND number = ?

DELETE FROM staged_writes WHERE transaction_id = ? AND slot = ?

DELETE FROM streams WHERE id = ?

DELETE FROM tables WHERE id = ?

DELETE FROM tokens WHERE (scope, name, slot) IN (SELECT scope, name, slot FROM tokens WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?)

INSERT INTO alembic_version (version_num) VALUES ('0008')

INSERT INTO backups (id, namespace, table_name, name, kind, copy_id, definition, rows, size_bytes, ready, created_at_ms, expires_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

INSERT INTO changes (slot, stream_id, shard, sequence, at_ms, kind, noop, actor, key, old_modified_at, old_kinds, old_body, new_modified_at, new_kinds, new_body, actions) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

INSERT INTO copies (target_id, source_id, history_id, at, phase, mark) VALUES (?, ?, ?, ?, ?, NULL)

INSERT INTO counters (name, slot, value) VALUES (?, ?, ?) ON CONFLICT (name, slot) DO UPDATE SET value = max(counters.value, ?) + ? RETURNING value

INSERT INTO entries (index_id, partition, sort, slot, size_bytes, row_partition, row_sort, row_slot, full_key) SELECT ?, partition, sort, slot, size_bytes, row_partition, row_sort, row_slot, full_key FROM entries WHERE index_id = ?

INSERT INTO entries (index_id, partition, sort, slot, size_bytes, row_partition, row_sort, row_slot, full_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (index_id, partition, sort, slot) DO UPDATE SET size_bytes = excluded.size_bytes

INSERT INTO expiry_backfills (table_id, mark) VALUES (?, NULL) ON CONFLICT (table_id) DO UPDATE SET mark = NULL

INSERT INTO histories (id, table_id, days) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET days = excluded.days

INSERT INTO history (history_id, changed_at, slot, partition, sort, full_key, modified_at, size_bytes, kinds, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

INSERT INTO indexes (id, table_id, name, definition, properties, filled, busy_until_ms) VALUES (?, ?, ?, ?, ?, ?, ?)

INSERT INTO partition_locks (id, slot, table_id, partition, expires_at_ms, size_bytes, writes) VALUES (?, ?, ?, ?, ?, ?, ?)

INSERT INTO progress (work, id, rows_done) VALUES (?, ?, ?) ON CONFLICT (work, id) DO UPDATE SET rows_done = progress.rows_done + excluded.rows_done

INSERT INTO purges (kind, id) VALUES ('history', ?)

INSERT INTO purges (kind, id) VALUES ('index', ?)

INSERT INTO purges (kind, id) VALUES ('table', ?)

INSERT INTO rows (table_id, partition, sort, slot, modified_at, expires_at_ms, size_bytes, kinds, body, full_key) SELECT ?, partition, sort, slot, modified_at, NULL, size_bytes, kinds, body, full_key FROM rows WHERE table_id = ? AND body IS NOT NULL

INSERT INTO rows (table_id, partition, sort, slot, modified_at, expires_at_ms, size_bytes, kinds, body, full_key) SELECT ?, partition, sort, slot, modified_at, expires_at_ms, size_bytes, kinds, body, full_key FROM rows WHERE table_id = ? AND body IS NOT NULL

INSERT INTO rows (table_id, partition, sort, slot, modified_at, expires_at_ms, size_bytes, kinds, body, full_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (table_id, partition, sort, slot) DO UPDATE SET
    modified_at = max(excluded.modified_at, rows.modified_at + 1), expires_at_ms = excluded.expires_at_ms,
    size_bytes = excluded.size_bytes, kinds = excluded.kinds, body = excluded.body, full_key = excluded.full_key
WHERE rows.kinds IS NULL

INSERT INTO rows (table_id, partition, sort, slot, modified_at, expires_at_ms, size_bytes, kinds, body, full_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (table_id, partition, sort, slot) DO UPDATE SET modified_at = excluded.modified_at,
    expires_at_ms = excluded.expires_at_ms, size_bytes = excluded.size_bytes, kinds = excluded.kinds,
    body = excluded.body, full_key = excluded.full_key

INSERT INTO rows (table_id, partition, sort, slot, modified_at, expires_at_ms, size_bytes, kinds, body, full_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

INSERT INTO shards (stream_id, number, first_slot, last_slot, parents, opened_at_ms, closed_at_ms, last_sequence, trimmed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

INSERT INTO staged_writes (transaction_id, slot, ordinal, partition, sort, full_key, kind, modified_at, size_bytes, kinds, body, actions) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

INSERT INTO streams (id, table_id, namespace, table_name, key_schema, rule, opened_at_ms, ended_at_ms, label) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

INSERT INTO tables (id, namespace, name, azure_name, key_schema, rules, properties, state, busy_until_ms, version, created_at_ms, azure_name_lower) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

INSERT INTO tokens (scope, name, slot, digest, answer, expires_at_ms) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (scope, name, slot) DO UPDATE SET digest = excluded.digest, answer = excluded.answer, expires_at_ms = excluded.expires_at_ms

SELECT 'purge' AS work, id, kind, id AS counted FROM purges
UNION ALL SELECT 'index_backfill', id, 'table', table_id FROM indexes WHERE filled = 0
UNION ALL SELECT 'expiry_refill', table_id, 'table', table_id FROM expiry_backfills
UNION ALL SELECT 'copy', target_id, 'table', source_id FROM copies
ORDER BY 1, 2 LIMIT ?

SELECT 0, r.slot, r.partition, r.sort, r.size_bytes FROM rows r WHERE r.table_id = ? AND (r.slot, r.partition, r.sort) > (?, ?, ?) ORDER BY r.slot, r.partition, r.sort LIMIT ?

SELECT 1 FROM changes WHERE stream_id = ? AND shard = ? AND slot = ? AND at_ms < ? LIMIT 1

SELECT 1 FROM copies WHERE source_id = ? LIMIT 1

SELECT 1 FROM purges LIMIT 1

SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?

SELECT 1 FROM tables WHERE namespace = ? AND azure_name_lower = ?

SELECT COUNT(*), 0 FROM (SELECT 1 AS size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND (k.partition, k.sort) >= (?, ?) AND (k.partition, k.sort) < (?, ?) ORDER BY k.partition DESC, k.sort DESC LIMIT ?) s

SELECT COUNT(*), 0 FROM (SELECT 1 AS size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND (k.partition, k.sort) >= (?, ?) AND (k.partition, k.sort) < (?, ?) ORDER BY k.partition, k.sort LIMIT ?) s

SELECT COUNT(*), 0 FROM (SELECT 1 AS size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND k.partition = ? AND k.sort >= ? AND k.sort < ? ORDER BY k.sort LIMIT ?) s

SELECT COUNT(*), 0 FROM (SELECT 1 AS size_bytes FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) ORDER BY r.partition DESC, r.sort DESC LIMIT ?) s

SELECT COUNT(*), 0 FROM (SELECT 1 AS size_bytes FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) ORDER BY r.partition, r.sort LIMIT ?) s

SELECT COUNT(*), 0 FROM (SELECT 1 AS size_bytes FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? ORDER BY r.sort DESC LIMIT ?) s

SELECT COUNT(*), 0 FROM (SELECT 1 AS size_bytes FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? ORDER BY r.sort LIMIT ?) s

SELECT COUNT(*), SUM(s.size_bytes) FROM (SELECT k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND (k.partition, k.sort) >= (?, ?) AND (k.partition, k.sort) < (?, ?) ORDER BY k.partition DESC, k.sort DESC LIMIT ?) s

SELECT COUNT(*), SUM(s.size_bytes) FROM (SELECT k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND (k.partition, k.sort) >= (?, ?) AND (k.partition, k.sort) < (?, ?) ORDER BY k.partition, k.sort LIMIT ?) s

SELECT COUNT(*), SUM(s.size_bytes) FROM (SELECT k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND k.partition = ? AND k.sort >= ? AND k.sort < ? ORDER BY k.sort DESC LIMIT ?) s

SELECT COUNT(*), SUM(s.size_bytes) FROM (SELECT k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND k.partition = ? AND k.sort >= ? AND k.sort < ? ORDER BY k.sort LIMIT ?) s

SELECT COUNT(*), SUM(s.size_bytes) FROM (SELECT r.size_bytes FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) ORDER BY r.partition DESC, r.sort DESC LIMIT ?) s

SELECT COUNT(*), SUM(s.size_bytes) FROM (SELECT r.size_bytes FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) ORDER BY r.partition, r.sort LIMIT ?) s

SELECT COUNT(*), SUM(s.size_bytes) FROM (SELECT r.size_bytes FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? ORDER BY r.sort DESC LIMIT ?) s

SELECT COUNT(*), SUM(s.size_bytes) FROM (SELECT r.size_bytes FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? ORDER BY r.sort LIMIT ?) s

SELECT changed_at FROM history WHERE history_id = ? AND changed_at < ? ORDER BY changed_at LIMIT ?

SELECT changed_at FROM history WHERE history_id = ? ORDER BY changed_at DESC LIMIT 1

SELECT changed_at, slot, partition, sort, size_bytes FROM history WHERE history_id = ? ORDER BY changed_at, slot, partition, sort LIMIT ?

SELECT count(*) FROM (SELECT 1 FROM entries WHERE index_id = ? AND slot >= 0 LIMIT ?) AS counted

SELECT count(*) FROM (SELECT 1 FROM history WHERE history_id = ? LIMIT ?) AS counted

SELECT count(*) FROM (SELECT 1 FROM rows WHERE table_id = ? AND slot >= 0 LIMIT ?) AS counted

SELECT count(*) FROM counters WHERE name LIKE 'drawn/%'

SELECT count(*) FROM entries

SELECT count(*) FROM history

SELECT count(*) FROM partition_locks

SELECT count(*) FROM progress

SELECT count(*) FROM purges

SELECT count(*) FROM rows

SELECT count(*) FROM staged_writes

SELECT count(*), COALESCE(sum(size_bytes), 0) FROM entries WHERE index_id = ?

SELECT count(*), COALESCE(sum(size_bytes), 0) FROM rows WHERE table_id = ?

SELECT count(*), sum(s.size_bytes), 0, max(length(s.sort)), max(s.sort),
    group_concat(s.modified_at, ','), CAST(group_concat(s.body, '
') AS BLOB)
FROM (SELECT r.sort, r.size_bytes, r.kinds, r.body, r.modified_at FROM rows r
    WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ?
    ORDER BY r.sort LIMIT ?) s

SELECT count(*), sum(s.size_bytes), 0, max(length(s.sort)), min(s.sort),
    group_concat(s.modified_at, ','), CAST(group_concat(s.body, '
') AS BLOB)
FROM (SELECT r.sort, r.size_bytes, r.kinds, r.body, r.modified_at FROM rows r
    WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ?
    ORDER BY r.sort DESC LIMIT ?) s

SELECT count(*), sum(s.size_bytes), count(s.kinds), max(length(s.sort)), max(s.sort),
    NULL, CAST(group_concat(s.body, ',') AS BLOB)
FROM (SELECT r.sort, r.size_bytes, r.kinds, r.body, r.modified_at FROM rows r
    WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ?
    ORDER BY r.sort LIMIT ?) s

SELECT count(*), sum(s.size_bytes), count(s.kinds), max(length(s.sort)), min(s.sort),
    NULL, CAST(group_concat(s.body, ',') AS BLOB)
FROM (SELECT r.sort, r.size_bytes, r.kinds, r.body, r.modified_at FROM rows r
    WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ?
    ORDER BY r.sort DESC LIMIT ?) s

SELECT digest, answer, expires_at_ms FROM tokens WHERE scope = ? AND name = ? AND slot = ?

SELECT e.partition, e.sort, e.slot, e.size_bytes, e.row_partition, e.row_sort, e.row_slot, e.full_key FROM entries e JOIN indexes i ON i.id = e.index_id WHERE i.table_id = ? ORDER BY 1, 2

SELECT filled_up_to FROM indexes WHERE id = ?

SELECT h.id, h.days, (SELECT min(c.at) FROM copies c WHERE c.history_id = h.id) FROM histories h WHERE h.days IS NOT NULL ORDER BY h.id

SELECT id FROM partition_locks WHERE expires_at_ms <= ? LIMIT ?

SELECT id FROM partition_locks WHERE table_id = ? AND partition = ? AND slot = ?

SELECT id FROM partition_locks WHERE table_id = ? AND partition = ? AND slot = ? AND expires_at_ms > ?

SELECT id FROM tables WHERE id = ?

SELECT id, namespace, name, azure_name, key_schema, rules, properties, state, busy_until_ms, version, created_at_ms FROM tables WHERE id = ?

SELECT id, namespace, name, azure_name, key_schema, rules, properties, state, busy_until_ms, version, created_at_ms FROM tables WHERE id IN (SELECT table_id FROM indexes WHERE filled = 0) ORDER BY id LIMIT 1

SELECT id, namespace, name, azure_name, key_schema, rules, properties, state, busy_until_ms, version, created_at_ms FROM tables WHERE namespace = ? AND azure_name_lower = ?

SELECT id, namespace, name, azure_name, key_schema, rules, properties, state, busy_until_ms, version, created_at_ms FROM tables WHERE namespace = ? AND azure_name_lower > ? ORDER BY azure_name_lower LIMIT ?

SELECT id, namespace, name, azure_name, key_schema, rules, properties, state, busy_until_ms, version, created_at_ms FROM tables WHERE namespace = ? AND name = ?

SELECT id, namespace, name, azure_name, key_schema, rules, properties, state, busy_until_ms, version, created_at_ms FROM tables WHERE namespace = ? AND name > ? ORDER BY name

SELECT id, namespace, name, azure_name, key_schema, rules, properties, state, busy_until_ms, version, created_at_ms FROM tables WHERE namespace = ? AND name > ? ORDER BY name LIMIT ?

SELECT id, namespace, name, azure_name, key_schema, rules, properties, state, busy_until_ms, version, created_at_ms FROM tables WHERE namespace IN (?) ORDER BY id

SELECT id, namespace, name, azure_name, key_schema, rules, properties, state, busy_until_ms, version, created_at_ms FROM tables WHERE namespace IN (?, ?) ORDER BY id

SELECT id, namespace, name, azure_name, key_schema, rules, properties, state, busy_until_ms, version, created_at_ms FROM tables WHERE namespace NOT LIKE ? AND namespace NOT LIKE ? ORDER BY id

SELECT id, namespace, name, azure_name, key_schema, rules, properties, state, busy_until_ms, version, created_at_ms FROM tables WHERE state = 'deleting' AND busy_until_ms <= ? ORDER BY busy_until_ms LIMIT ?

SELECT id, namespace, table_name, name, kind, copy_id, definition, rows, size_bytes, ready, created_at_ms, expires_at_ms FROM backups WHERE copy_id = ?

SELECT id, namespace, table_name, name, kind, copy_id, definition, rows, size_bytes, ready, created_at_ms, expires_at_ms FROM backups WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?

SELECT id, namespace, table_name, name, kind, copy_id, definition, rows, size_bytes, ready, created_at_ms, expires_at_ms FROM backups WHERE id = ?

SELECT id, namespace, table_name, name, kind, copy_id, definition, rows, size_bytes, ready, created_at_ms, expires_at_ms FROM backups WHERE namespace = ? AND (table_name, created_at_ms, id) > (?, ?, ?) ORDER BY table_name, created_at_ms, id LIMIT ?

SELECT id, slot, table_id, partition, expires_at_ms, size_bytes, writes FROM partition_locks WHERE id = ? AND slot = ?

SELECT id, table_id, namespace, table_name, key_schema, rule, opened_at_ms, ended_at_ms FROM streams WHERE id > ? ORDER BY id LIMIT ?

SELECT id, table_id, namespace, table_name, key_schema, rule, opened_at_ms, ended_at_ms FROM streams WHERE namespace = ? AND table_name = ? AND label = ? ORDER BY table_name, id

SELECT id, table_id, namespace, table_name, key_schema, rule, opened_at_ms, ended_at_ms FROM streams WHERE namespace = ? AND table_name = ? ORDER BY table_name, id

SELECT id, table_id, namespace, table_name, key_schema, rule, opened_at_ms, ended_at_ms FROM streams WHERE namespace = ? ORDER BY table_name, id

SELECT id, version FROM tables WHERE id IN ()

SELECT id, version FROM tables WHERE id IN (?)

SELECT id, version FROM tables WHERE id IN (?, ?)

SELECT k.partition, k.sort, k.full_key FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND k.partition >= ? AND k.partition < ? ORDER BY k.partition LIMIT 1

SELECT k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND (k.partition, k.sort) >= (?, ?) AND (k.partition, k.sort) < (?, ?) ORDER BY k.partition DESC, k.sort DESC LIMIT ?

SELECT k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND (k.partition, k.sort) >= (?, ?) AND (k.partition, k.sort) < (?, ?) ORDER BY k.partition, k.sort LIMIT ?

SELECT kind, id FROM purges ORDER BY id LIMIT 1

SELECT min(sequence) FROM changes WHERE stream_id = ? AND shard = ? AND slot = ? AND at_ms >= ?

SELECT number, first_slot, last_slot, parents, opened_at_ms, closed_at_ms, last_sequence, trimmed FROM shards WHERE stream_id = ? AND number = ?

SELECT number, first_slot, last_slot, parents, opened_at_ms, closed_at_ms, last_sequence, trimmed FROM shards WHERE stream_id = ? ORDER BY number

SELECT partition, sort, 0 FROM entries WHERE index_id = ? ORDER BY partition, sort LIMIT ?

SELECT partition, sort, full_key, kind, modified_at, size_bytes, kinds, body, actions FROM staged_writes WHERE transaction_id = ? AND slot = ? ORDER BY ordinal

SELECT partition, sort, full_key, size_bytes FROM rows WHERE table_id = ? AND (slot, partition, sort) >= (?, ?, ?) ORDER BY slot, partition, sort LIMIT ?

SELECT partition, sort, modified_at, size_bytes, kinds, body, full_key FROM rows WHERE table_id = ?

SELECT partition, sort, size_bytes FROM rows WHERE table_id = ? ORDER BY partition, sort LIMIT ?

SELECT partition, sort, slot, expires_at_ms, size_bytes, kinds, body, full_key FROM rows WHERE table_id = ? ORDER BY partition, sort

SELECT partition, sort, slot, size_bytes, row_partition, row_sort, row_slot FROM entries WHERE index_id = ? ORDER BY partition, sort

SELECT r.changed_at, r.slot, r.partition, r.sort, r.size_bytes FROM history r WHERE r.history_id = ? AND r.changed_at > ? AND (r.changed_at, r.slot, r.partition, r.sort) < (?, ?, ?, ?) ORDER BY r.changed_at DESC, r.slot DESC, r.partition DESC, r.sort DESC LIMIT ?

SELECT r.partition, r.sort, r.full_key FROM rows r WHERE r.table_id = ? AND r.partition >= ? AND r.partition < ? ORDER BY r.partition LIMIT 1

SELECT r.partition, r.sort, r.full_key, r.modified_at, NULL, r.size_bytes, r.kinds, r.body FROM history r WHERE r.history_id = ? AND r.changed_at > ? AND (r.changed_at, r.slot, r.partition, r.sort) < (?, ?, ?, ?) AND (r.changed_at, r.slot, r.partition, r.sort) >= (?, ?, ?, ?) ORDER BY r.changed_at DESC, r.slot DESC, r.partition DESC, r.sort DESC

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body FROM rows r WHERE r.table_id = ? AND (r.slot, r.partition, r.sort) > (?, ?, ?) AND (r.slot, r.partition, r.sort) <= (?, ?, ?) ORDER BY r.slot, r.partition, r.sort

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort = ? AND r.slot = ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, k.slot, k.partition, k.sort, k.full_key, k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND (k.partition, k.sort) >= (?, ?) AND (k.partition, k.sort) < (?, ?) AND (CAST(r.body AS TEXT) GLOB ?) ORDER BY k.partition DESC, k.sort DESC

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, k.slot, k.partition, k.sort, k.full_key, k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND (k.partition, k.sort) >= (?, ?) AND (k.partition, k.sort) < (?, ?) AND (CAST(r.body AS TEXT) GLOB ?) ORDER BY k.partition, k.sort

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, k.slot, k.partition, k.sort, k.full_key, k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND (k.partition, k.sort) >= (?, ?) AND (k.partition, k.sort) < (?, ?) ORDER BY k.partition DESC, k.sort DESC LIMIT 1 OFFSET ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, k.slot, k.partition, k.sort, k.full_key, k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND (k.partition, k.sort) >= (?, ?) AND (k.partition, k.sort) < (?, ?) ORDER BY k.partition DESC, k.sort DESC LIMIT ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, k.slot, k.partition, k.sort, k.full_key, k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND (k.partition, k.sort) >= (?, ?) AND (k.partition, k.sort) < (?, ?) ORDER BY k.partition, k.sort LIMIT 1 OFFSET ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, k.slot, k.partition, k.sort, k.full_key, k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND (k.partition, k.sort) >= (?, ?) AND (k.partition, k.sort) < (?, ?) ORDER BY k.partition, k.sort LIMIT ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, k.slot, k.partition, k.sort, k.full_key, k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND k.partition = ? AND k.sort >= ? AND k.sort < ? AND (CAST(r.body AS TEXT) GLOB ?) ORDER BY k.sort

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, k.slot, k.partition, k.sort, k.full_key, k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND k.partition = ? AND k.sort >= ? AND k.sort < ? AND (CAST(r.body AS TEXT) GLOB ?) ORDER BY k.sort DESC

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, k.slot, k.partition, k.sort, k.full_key, k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND k.partition = ? AND k.sort >= ? AND k.sort < ? AND COALESCE(substr(k.full_key, ?), k.sort) >= ? AND COALESCE(substr(k.full_key, ?), k.sort) < ? ORDER BY COALESCE(substr(k.full_key, ?), k.sort) LIMIT ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, k.slot, k.partition, k.sort, k.full_key, k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND k.partition = ? AND k.sort >= ? AND k.sort < ? ORDER BY k.sort DESC LIMIT ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, k.slot, k.partition, k.sort, k.full_key, k.size_bytes FROM entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot AND k.partition = ? AND k.sort >= ? AND k.sort < ? ORDER BY k.sort LIMIT ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) AND ((CAST(r.body AS TEXT) GLOB ?) AND (CAST(r.body AS TEXT) GLOB ?)) ORDER BY r.partition, r.sort

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) AND ((CAST(r.body AS TEXT) GLOB ?) OR (r.kinds IS NOT NULL AND CAST(r.body AS TEXT) GLOB ?)) ORDER BY r.partition DESC, r.sort DESC

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) AND ((CAST(r.body AS TEXT) GLOB ?) OR (r.kinds IS NOT NULL AND CAST(r.body AS TEXT) GLOB ?)) ORDER BY r.partition, r.sort

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) AND (CAST(r.body AS TEXT) GLOB ?) ORDER BY r.partition DESC, r.sort DESC

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) AND (CAST(r.body AS TEXT) GLOB ?) ORDER BY r.partition, r.sort

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) ORDER BY r.partition DESC, r.sort DESC LIMIT 1 OFFSET ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) ORDER BY r.partition DESC, r.sort DESC LIMIT ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) ORDER BY r.partition, r.sort LIMIT 1 OFFSET ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) ORDER BY r.partition, r.sort LIMIT ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND (r.slot, r.partition, r.sort) >= (?, ?, ?) AND r.slot <= ? ORDER BY r.slot, r.partition, r.sort LIMIT ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? AND ((CAST(r.body AS TEXT) GLOB ?) OR (r.kinds IS NOT NULL AND CAST(r.body AS TEXT) GLOB ?)) ORDER BY r.sort

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? AND (CAST(r.body AS TEXT) GLOB ?) ORDER BY r.sort

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? AND (CAST(r.body AS TEXT) GLOB ?) ORDER BY r.sort DESC

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? AND COALESCE(substr(r.full_key, ?), r.sort) >= ? AND COALESCE(substr(r.full_key, ?), r.sort) < ? ORDER BY COALESCE(substr(r.full_key, ?), r.sort) DESC LIMIT ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? AND COALESCE(substr(r.full_key, ?), r.sort) >= ? AND COALESCE(substr(r.full_key, ?), r.sort) < ? ORDER BY COALESCE(substr(r.full_key, ?), r.sort) LIMIT ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? ORDER BY r.sort DESC LIMIT 1 OFFSET ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? ORDER BY r.sort DESC LIMIT ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? ORDER BY r.sort LIMIT 1 OFFSET ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.slot FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? ORDER BY r.sort LIMIT ?

SELECT r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body, r.table_id FROM rows r WHERE r.expires_at_ms IS NOT NULL AND r.expires_at_ms <= ? ORDER BY r.expires_at_ms LIMIT ?

SELECT r.size_bytes FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) ORDER BY r.partition DESC, r.sort DESC LIMIT ?

SELECT r.size_bytes FROM rows r WHERE r.table_id = ? AND (r.partition, r.sort) >= (?, ?) AND (r.partition, r.sort) < (?, ?) ORDER BY r.partition, r.sort LIMIT ?

SELECT r.size_bytes FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? ORDER BY r.sort DESC LIMIT ?

SELECT r.size_bytes FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.sort >= ? AND r.sort < ? ORDER BY r.sort LIMIT ?

SELECT sequence, at_ms, COALESCE(length(old_body), 0) + COALESCE(length(new_body), 0) FROM changes WHERE stream_id = ? AND shard = ? AND slot = ? ORDER BY sequence LIMIT ?

SELECT shard, sequence, at_ms, kind, noop, actor, key, old_modified_at, old_kinds, old_body, new_modified_at, new_kinds, new_body, actions FROM changes WHERE stream_id = ? AND shard = ? AND slot = ? AND sequence >= ? ORDER BY sequence LIMIT ?

SELECT table_id, id, name, definition, properties, filled, busy_until_ms FROM indexes WHERE table_id IN (?) ORDER BY id

SELECT table_id, id, name, definition, properties, filled, busy_until_ms FROM indexes WHERE table_id IN (?, ?, ?, ?, ?, ?) ORDER BY id

SELECT table_id, mark FROM expiry_backfills ORDER BY table_id LIMIT 1

SELECT target_id, source_id, history_id, at, phase, mark FROM copies ORDER BY target_id LIMIT 1

SELECT target_id, source_id, history_id, at, phase, mark FROM copies WHERE target_id = ?

SELECT value FROM counters WHERE name = ? AND slot = ?

SELECT work, id, rows_done FROM progress

UPDATE backups SET ready = 1 WHERE copy_id = ?

UPDATE copies SET phase = ?, mark = ? WHERE target_id = ?

UPDATE expiry_backfills SET mark = ? WHERE table_id = ?

UPDATE indexes SET filled_up_to = ? WHERE id = ?

UPDATE indexes SET properties = ?, filled = ?, busy_until_ms = ? WHERE id = ?

UPDATE partition_locks SET writes = ?, size_bytes = ? WHERE id = ? AND slot = ?

UPDATE rows SET expires_at_ms = ? WHERE table_id = ? AND partition = ? AND sort = ? AND slot = ? AND modified_at = ?

UPDATE shards SET closed_at_ms = ?, last_sequence = ? WHERE stream_id = ? AND number = ?

UPDATE shards SET trimmed = ? WHERE stream_id = ? AND number = ?

UPDATE streams SET ended_at_ms = ? WHERE id = ? AND ended_at_ms IS NULL

UPDATE streams SET rule = ? WHERE id = ?

UPDATE tables SET namespace = ?, version = version + 1 WHERE id = ?

UPDATE tables SET rules = ?, properties = ?, state = ?, busy_until_ms = ?, version = version + 1 WHERE id = ?
