-- The tables of Engram after 1.7, as migrate() in internal/store/store.go makes them.
CREATE TABLE sessions (id TEXT PRIMARY KEY, project TEXT NOT NULL, directory TEXT NOT NULL, started_at TEXT NOT NULL DEFAULT (datetime('now')), ended_at TEXT, summary TEXT);
INSERT INTO sessions VALUES ('s1', 'shop', '/w/shop', '2026-03-16 09:00:00', '2026-03-16 09:30:00', 'Fixed the cart'), ('s2', 'shop', '', '2026-03-16 10:00:00', NULL, NULL);
CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, sync_id TEXT, session_id TEXT NOT NULL, type TEXT NOT NULL, title TEXT NOT NULL, content TEXT NOT NULL, tool_name TEXT, project TEXT, scope TEXT NOT NULL DEFAULT 'project', topic_key TEXT, normalized_hash TEXT, revision_count INTEGER NOT NULL DEFAULT 1, duplicate_count INTEGER NOT NULL DEFAULT 1, last_seen_at TEXT, created_at TEXT NOT NULL DEFAULT (datetime('now')), updated_at TEXT NOT NULL DEFAULT (datetime('now')), deleted_at TEXT, FOREIGN KEY (session_id) REFERENCES sessions(id));
INSERT INTO observations (sync_id, session_id, type, title, content, project, topic_key, created_at, updated_at, deleted_at) VALUES
('obs-1', 's1', 'decision', 'Cookies', 'They live for a week', 'shop', 'architecture/cookies', '2026-03-16 09:01:00', '2026-03-16 09:20:00', NULL),
('obs-2', 's1', 'manual', 'Gone', 'Deleted later', 'shop', NULL, '2026-03-16 09:02:00', '2026-03-16 09:02:00', '2026-03-16 09:03:00');
CREATE VIRTUAL TABLE observations_fts USING fts5(title, content, tool_name, type, project, topic_key, content='observations', content_rowid='id');
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY AUTOINCREMENT, sync_id TEXT, session_id TEXT NOT NULL, content TEXT NOT NULL, project TEXT, created_at TEXT NOT NULL DEFAULT (datetime('now')), FOREIGN KEY (session_id) REFERENCES sessions(id));
INSERT INTO user_prompts (sync_id, session_id, content, project, created_at) VALUES ('prompt-1', 's1', 'Why is the cart empty?', 'shop', '2026-03-16 09:00:30');
CREATE TABLE sync_chunks (chunk_id TEXT PRIMARY KEY, imported_at TEXT NOT NULL DEFAULT (datetime('now')));
