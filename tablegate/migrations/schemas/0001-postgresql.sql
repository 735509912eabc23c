CREATE TABLE audit_events (
	at_ms BIGINT NOT NULL,
	id TEXT NOT NULL,
	line TEXT NOT NULL,
	PRIMARY KEY (at_ms, id)
)

CREATE TABLE backups (
	id BIGINT NOT NULL,
	namespace TEXT COLLATE "C" NOT NULL,
	table_name TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	kind TEXT NOT NULL,
	copy_id BIGINT NOT NULL,
	definition TEXT NOT NULL,
	rows BIGINT NOT NULL,
	size_bytes BIGINT NOT NULL,
	ready SMALLINT NOT NULL,
	created_at_ms BIGINT NOT NULL,
	expires_at_ms BIGINT,
	PRIMARY KEY (id)
)

CREATE INDEX backups_by_table ON backups (namespace, table_name, created_at_ms)

CREATE INDEX ix_backups_copy_id ON backups (copy_id)

CREATE INDEX ix_backups_expires_at_ms ON backups (expires_at_ms)

CREATE TABLE changes (
	stream_id BIGINT NOT NULL,
	shard INTEGER NOT NULL,
	sequence BIGINT NOT NULL,
	slot SMALLINT NOT NULL,
	at_ms BIGINT NOT NULL,
	kind TEXT NOT NULL,
	noop SMALLINT NOT NULL,
	actor TEXT NOT NULL,
	key BYTEA NOT NULL,
	old_modified_at BIGINT,
	old_kinds BYTEA,
	old_body BYTEA,
	new_modified_at BIGINT,
	new_kinds BYTEA,
	new_body BYTEA,
	actions BYTEA,
	PRIMARY KEY (stream_id, shard, sequence, slot)
)

CREATE INDEX changes_by_time ON changes (stream_id, shard, at_ms)

CREATE TABLE copies (
	target_id BIGINT NOT NULL,
	source_id BIGINT NOT NULL,
	history_id BIGINT,
	at BIGINT,
	phase SMALLINT NOT NULL,
	mark BYTEA,
	PRIMARY KEY (target_id)
)

CREATE INDEX ix_copies_source_id ON copies (source_id)

CREATE TABLE counters (
	name TEXT COLLATE "C" NOT NULL,
	slot SMALLINT NOT NULL,
	value BIGINT NOT NULL,
	PRIMARY KEY (name, slot)
)

CREATE TABLE credentials (
	scheme TEXT COLLATE "C" NOT NULL,
	access_id TEXT COLLATE "C" NOT NULL,
	place TEXT NOT NULL,
	encrypted_secrets BYTEA NOT NULL,
	changed_at_ms BIGINT NOT NULL,
	PRIMARY KEY (scheme, access_id)
)

CREATE TABLE entries (
	index_id BIGINT NOT NULL,
	partition BYTEA NOT NULL,
	sort BYTEA NOT NULL,
	slot SMALLINT NOT NULL,
	size_bytes INTEGER NOT NULL,
	row_partition BYTEA NOT NULL,
	row_sort BYTEA NOT NULL,
	row_slot SMALLINT NOT NULL,
	full_key BYTEA,
	PRIMARY KEY (index_id, partition, sort, slot)
)

CREATE INDEX entries_by_slot ON entries (index_id, slot, partition, sort)

CREATE TABLE expiry_backfills (
	table_id BIGINT NOT NULL,
	mark BYTEA,
	PRIMARY KEY (table_id)
)

CREATE TABLE followers (
	id BIGINT NOT NULL,
	table_id BIGINT NOT NULL,
	kind TEXT NOT NULL,
	target TEXT COLLATE "C" NOT NULL,
	stream_id BIGINT NOT NULL,
	positions TEXT NOT NULL,
	copying SMALLINT NOT NULL,
	mark BYTEA,
	owner TEXT NOT NULL,
	owned_until_ms BIGINT NOT NULL,
	ending TEXT,
	PRIMARY KEY (id)
)

CREATE INDEX ix_followers_table_id ON followers (table_id)

CREATE TABLE grants (
	id TEXT COLLATE "C" NOT NULL,
	grantee TEXT COLLATE "C" NOT NULL,
	form TEXT NOT NULL,
	document TEXT NOT NULL,
	created_at_ms BIGINT NOT NULL,
	PRIMARY KEY (id)
)

CREATE TABLE histories (
	id BIGINT NOT NULL,
	table_id BIGINT NOT NULL,
	days INTEGER,
	PRIMARY KEY (id)
)

CREATE TABLE history (
	history_id BIGINT NOT NULL,
	changed_at BIGINT NOT NULL,
	slot SMALLINT NOT NULL,
	partition BYTEA NOT NULL,
	sort BYTEA NOT NULL,
	full_key BYTEA,
	modified_at BIGINT,
	size_bytes INTEGER NOT NULL,
	kinds BYTEA,
	body BYTEA,
	PRIMARY KEY (history_id, changed_at, slot, partition, sort)
)

CREATE TABLE indexes (
	id BIGINT NOT NULL,
	table_id BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	definition TEXT NOT NULL,
	properties TEXT NOT NULL,
	filled SMALLINT NOT NULL,
	filled_up_to BYTEA,
	busy_until_ms BIGINT NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (table_id, name)
)

CREATE INDEX indexes_to_fill ON indexes (table_id) WHERE filled = 0

CREATE INDEX ix_indexes_table_id ON indexes (table_id)

CREATE TABLE jobs (
	id BIGINT NOT NULL,
	kind TEXT NOT NULL,
	namespace TEXT COLLATE "C" NOT NULL,
	table_name TEXT COLLATE "C" NOT NULL,
	definition TEXT NOT NULL,
	progress TEXT NOT NULL,
	state TEXT NOT NULL,
	created_at_ms BIGINT NOT NULL,
	ended_at_ms BIGINT,
	cancelled SMALLINT NOT NULL,
	claim BIGINT NOT NULL,
	claimed_until_ms BIGINT NOT NULL,
	PRIMARY KEY (id)
)

CREATE INDEX jobs_by_age ON jobs (namespace, kind, created_at_ms, id)

CREATE INDEX jobs_to_do ON jobs (id) WHERE ended_at_ms IS NULL

CREATE TABLE namespace_properties (
	namespace TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	document TEXT NOT NULL,
	PRIMARY KEY (namespace, name)
)

CREATE TABLE partition_locks (
	id TEXT NOT NULL,
	slot SMALLINT NOT NULL,
	table_id BIGINT NOT NULL,
	partition BYTEA NOT NULL,
	expires_at_ms BIGINT NOT NULL,
	size_bytes BIGINT NOT NULL,
	writes INTEGER NOT NULL,
	PRIMARY KEY (id, slot),
	UNIQUE (table_id, partition, slot)
)

CREATE TABLE progress (
	work TEXT NOT NULL,
	id BIGINT NOT NULL,
	rows_done BIGINT NOT NULL,
	PRIMARY KEY (work, id)
)

CREATE TABLE purges (
	kind TEXT NOT NULL,
	id BIGINT NOT NULL,
	PRIMARY KEY (kind, id)
)

CREATE TABLE quota_demands (
	owner TEXT COLLATE "C" NOT NULL,
	process TEXT NOT NULL,
	document TEXT NOT NULL,
	at_ms BIGINT NOT NULL,
	PRIMARY KEY (owner, process)
)

CREATE TABLE quotas (
	owner TEXT COLLATE "C" NOT NULL,
	document TEXT NOT NULL,
	changed_at_ms BIGINT NOT NULL,
	PRIMARY KEY (owner)
)

CREATE TABLE row_counts (
	owner_id BIGINT NOT NULL,
	slot SMALLINT NOT NULL,
	stripe SMALLINT NOT NULL,
	rows BIGINT NOT NULL,
	size_bytes BIGINT NOT NULL,
	PRIMARY KEY (owner_id, slot, stripe)
)

CREATE TABLE rows (
	table_id BIGINT NOT NULL,
	partition BYTEA NOT NULL,
	sort BYTEA NOT NULL,
	slot SMALLINT NOT NULL,
	modified_at BIGINT NOT NULL,
	expires_at_ms BIGINT,
	size_bytes INTEGER NOT NULL,
	kinds BYTEA,
	body BYTEA,
	full_key BYTEA,
	checksum BIGINT,
	PRIMARY KEY (table_id, partition, sort, slot)
)

CREATE INDEX rows_by_expiry ON rows (expires_at_ms) WHERE expires_at_ms IS NOT NULL

CREATE INDEX rows_by_slot ON rows (table_id, slot, partition, sort)

CREATE TABLE schema_compatibility (
	oldest TEXT NOT NULL,
	PRIMARY KEY (oldest)
)

CREATE TABLE search_documents (
	index_id BIGINT NOT NULL,
	partition BYTEA NOT NULL,
	sort BYTEA NOT NULL,
	slot SMALLINT NOT NULL,
	document BIGINT NOT NULL,
	full_key BYTEA,
	body BYTEA NOT NULL,
	PRIMARY KEY (index_id, partition, sort, slot)
)

CREATE INDEX search_documents_by_number ON search_documents (index_id, document)

CREATE TABLE search_indexes (
	id BIGINT NOT NULL,
	table_id BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	dialect TEXT NOT NULL,
	fields TEXT NOT NULL,
	properties TEXT NOT NULL,
	created_at_ms BIGINT NOT NULL,
	lifetime_ms BIGINT,
	PRIMARY KEY (id),
	UNIQUE (table_id, name)
)

CREATE TABLE search_terms (
	index_id BIGINT NOT NULL,
	field SMALLINT NOT NULL,
	term BYTEA NOT NULL,
	document BIGINT NOT NULL,
	slot SMALLINT NOT NULL,
	PRIMARY KEY (index_id, field, term, document, slot)
)

CREATE TABLE shards (
	stream_id BIGINT NOT NULL,
	number INTEGER NOT NULL,
	first_hash SMALLINT NOT NULL,
	last_hash SMALLINT NOT NULL,
	parents TEXT NOT NULL,
	opened_at_ms BIGINT NOT NULL,
	closed_at_ms BIGINT,
	last_sequence BIGINT,
	trimmed BIGINT NOT NULL,
	PRIMARY KEY (stream_id, number)
)

CREATE TABLE staged_writes (
	transaction_id TEXT NOT NULL,
	slot SMALLINT NOT NULL,
	ordinal INTEGER NOT NULL,
	partition BYTEA NOT NULL,
	sort BYTEA NOT NULL,
	full_key BYTEA,
	kind TEXT NOT NULL,
	modified_at BIGINT,
	size_bytes INTEGER,
	kinds BYTEA,
	body BYTEA,
	actions BYTEA,
	PRIMARY KEY (transaction_id, slot, ordinal)
)

CREATE TABLE streams (
	id BIGINT NOT NULL,
	table_id BIGINT NOT NULL,
	namespace TEXT COLLATE "C" NOT NULL,
	table_name TEXT COLLATE "C" NOT NULL,
	label TEXT COLLATE "C" NOT NULL,
	key_schema TEXT NOT NULL,
	rule TEXT NOT NULL,
	opened_at_ms BIGINT NOT NULL,
	ended_at_ms BIGINT,
	PRIMARY KEY (id)
)

CREATE INDEX streams_by_table ON streams (namespace, table_name, label)

CREATE TABLE tables (
	id BIGINT NOT NULL,
	namespace TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	azure_name TEXT COLLATE "C" NOT NULL,
	azure_name_lower TEXT COLLATE "C" NOT NULL,
	key_schema TEXT NOT NULL,
	rules TEXT NOT NULL,
	properties TEXT NOT NULL,
	state TEXT NOT NULL,
	busy_until_ms BIGINT NOT NULL,
	version BIGINT NOT NULL,
	created_at_ms BIGINT NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (namespace, name),
	UNIQUE (namespace, azure_name_lower)
)

CREATE INDEX tables_deleting ON tables (busy_until_ms) WHERE state = 'deleting'

CREATE INDEX tables_with_policies ON tables (id) WHERE replace(properties, '"resource_policies":', '') <> properties

CREATE TABLE tokens (
	scope TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	slot SMALLINT NOT NULL,
	digest BYTEA NOT NULL,
	answer TEXT NOT NULL,
	expires_at_ms BIGINT NOT NULL,
	PRIMARY KEY (scope, name, slot)
)

CREATE INDEX ix_tokens_expires_at_ms ON tokens (expires_at_ms)

CREATE TABLE tombstones (
	table_id BIGINT NOT NULL,
	partition BYTEA NOT NULL,
	sort BYTEA NOT NULL,
	slot SMALLINT NOT NULL,
	full_key BYTEA,
	deleted_at BIGINT NOT NULL,
	PRIMARY KEY (table_id, partition, sort, slot)
)

CREATE INDEX tombstones_by_time ON tombstones (table_id, deleted_at)

CREATE TABLE tunnels (
	id BIGINT NOT NULL,
	public_id TEXT COLLATE "C" NOT NULL,
	table_id BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	definition TEXT NOT NULL,
	state TEXT NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (table_id, name),
	UNIQUE (public_id)
)

CREATE TABLE vectors (
	index_id BIGINT NOT NULL,
	partition BYTEA NOT NULL,
	sort BYTEA NOT NULL,
	slot SMALLINT NOT NULL,
	version BIGINT NOT NULL,
	size_bytes INTEGER NOT NULL,
	partition_digest BYTEA,
	filter_digests BYTEA NOT NULL,
	full_key BYTEA,
	vector BYTEA NOT NULL,
	PRIMARY KEY (index_id, partition, sort, slot)
)

CREATE INDEX vectors_by_partition ON vectors (index_id, partition_digest, version) WHERE partition_digest IS NOT NULL

CREATE INDEX vectors_by_version ON vectors (index_id, version, size_bytes)
