-- The tables of Chroma 1.5 that MemPalace 3.3.6 fills, with what its miner, sweeper, diary and registry write.
CREATE TABLE collections (id TEXT PRIMARY KEY, name TEXT NOT NULL, dimension INTEGER, database_id TEXT NOT NULL, config_json_str TEXT, schema_str TEXT);
INSERT INTO collections VALUES ('col1', 'mempalace_drawers', 384, 'db', '{}', NULL), ('col2', 'mempalace_closets', 384, 'db', '{}', NULL);
CREATE TABLE segments (id TEXT PRIMARY KEY, type TEXT NOT NULL, scope TEXT NOT NULL, collection TEXT NOT NULL);
INSERT INTO segments VALUES ('seg1', 'urn:chroma:segment/metadata/sqlite', 'METADATA', 'col1'), ('seg2', 'urn:chroma:segment/metadata/sqlite', 'METADATA', 'col2');
CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id TEXT NOT NULL, embedding_id TEXT NOT NULL, seq_id BLOB NOT NULL, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE (segment_id, embedding_id));
INSERT INTO embeddings (id, segment_id, embedding_id, seq_id) VALUES (1, 'seg1', 'drawer_shop_cart_1', 1), (2, 'seg1', 'sweep_s1_u1', 2), (3, 'seg1', 'diary_wing_claude_1', 3), (4, 'seg1', '_reg_1', 4), (5, 'seg2', 'closet_1', 5), (6, 'seg1', 'drawer_empty', 6);
CREATE TABLE embedding_metadata (id INTEGER REFERENCES embeddings(id), key TEXT NOT NULL, string_value TEXT, int_value INTEGER, float_value REAL, bool_value INTEGER, PRIMARY KEY (id, key));
INSERT INTO embedding_metadata (id, key, string_value, int_value, float_value) VALUES
(1, 'chroma:document', 'Cookies live for a week', NULL, NULL), (1, 'wing', 'shop', NULL, NULL), (1, 'room', 'cart', NULL, NULL), (1, 'hall', 'hall_facts', NULL, NULL), (1, 'source_file', '/w/shop/NOTES.md', NULL, NULL), (1, 'chunk_index', NULL, 0, NULL), (1, 'added_by', 'mempalace', NULL, NULL), (1, 'filed_at', '2026-03-20T09:00:00', NULL, NULL), (1, 'source_mtime', NULL, NULL, 1773651600.5),
(2, 'chroma:document', 'USER: Why is the cart empty: all of it?', NULL, NULL), (2, 'session_id', 's1', NULL, NULL), (2, 'timestamp', '2026-03-16T09:00:00.000Z', NULL, NULL), (2, 'message_uuid', 'u1', NULL, NULL), (2, 'role', 'user', NULL, NULL), (2, 'filed_at', '2026-03-20T09:00:00', NULL, NULL), (2, 'ingest_mode', 'sweep', NULL, NULL),
(3, 'chroma:document', 'Learned about cookies', NULL, NULL), (3, 'wing', 'wing_claude', NULL, NULL), (3, 'room', 'diary', NULL, NULL), (3, 'topic', 'web', NULL, NULL), (3, 'agent', 'claude', NULL, NULL), (3, 'filed_at', '2026-03-16T10:00:00+01:00', NULL, NULL),
(4, 'chroma:document', '[registry] /w/shop/empty.md', NULL, NULL), (4, 'wing', 'shop', NULL, NULL), (4, 'room', '_registry', NULL, NULL),
(5, 'chroma:document', 'cookies|week|→1', NULL, NULL), (5, 'wing', 'shop', NULL, NULL),
(6, 'wing', 'shop', NULL, NULL);
