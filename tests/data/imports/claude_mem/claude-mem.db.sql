-- The tables of claude-mem 13.15 (schema version 49), as its SessionStore.ts migrates them.
PRAGMA journal_mode = WAL;
CREATE TABLE schema_versions (id INTEGER PRIMARY KEY, version INTEGER UNIQUE NOT NULL, applied_at TEXT NOT NULL);
INSERT INTO schema_versions (version, applied_at) VALUES (49, '2026-08-19T00:00:00.000Z');
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL, memory_session_id TEXT UNIQUE, project TEXT NOT NULL, platform_source TEXT NOT NULL DEFAULT 'claude', user_prompt TEXT, started_at TEXT NOT NULL, started_at_epoch INTEGER NOT NULL, completed_at TEXT, completed_at_epoch INTEGER, status TEXT NOT NULL DEFAULT 'active', worker_port INTEGER, prompt_counter INTEGER DEFAULT 0, custom_title TEXT);
INSERT INTO sdk_sessions (content_session_id, memory_session_id, project, platform_source, started_at, started_at_epoch) VALUES
('c1', 'm1', 'shop', 'claude', '2026-03-16T09:00:00.000Z', 1773651600000),
('c2', 'm2', 'shop', 'codex', '2026-03-16T10:00:00.000Z', 1773655200000),
('c3', 'm3', 'observer-sessions', 'claude', '2026-03-16T10:00:00.000Z', 1773655200000);
CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, text TEXT, type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT, files_modified TEXT, prompt_number INTEGER, discovery_tokens INTEGER DEFAULT 0, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL, content_hash TEXT, generated_by_model TEXT, relevance_count INTEGER DEFAULT 0, merged_into_project TEXT, agent_type TEXT, agent_id TEXT, metadata TEXT, synced_at INTEGER, origin_device_id TEXT, origin_local_id TEXT, sync_rev TEXT NOT NULL DEFAULT '1');
INSERT INTO observations (memory_session_id, project, type, title, subtitle, facts, narrative, concepts, files_read, files_modified, created_at, created_at_epoch) VALUES
('m1', 'shop', 'bugfix', 'The cart empties itself', 'A cookie expires', '["It lives for an hour", "Safari alone"]', 'The session cookie was too short.', '["problem-solution", "gotcha"]', '["src/cart.ts"]', '["src/cookie.ts"]', '2026-03-16T09:01:00.000Z', 1773651660000),
('m9', 'shop', 'decision', 'Deploy on Tuesdays', NULL, '[]', NULL, NULL, NULL, NULL, 'not a time', 0),
('m3', 'observer-sessions', 'discovery', 'Its own session', NULL, '[]', NULL, '[]', '[]', '[]', '2026-03-16T10:00:00.000Z', 1773655200000),
('m1', 'shop', 'change', '', NULL, 'not JSON', NULL, NULL, NULL, NULL, '2026-03-16T09:01:00.000Z', 1773651660000),
('m1', 'shop', 'change', ' ', NULL, NULL, NULL, NULL, NULL, NULL, '2026-03-16T09:01:00.000Z', 1773651660000);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL, request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT, prompt_number INTEGER, discovery_tokens INTEGER DEFAULT 0, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL, merged_into_project TEXT, synced_at INTEGER);
INSERT INTO session_summaries (memory_session_id, project, request, learned, completed, created_at, created_at_epoch) VALUES
('m1', 'shop', 'Why is the cart empty?', 'Cookies expire', 'A longer cookie', '2026-03-16T09:02:00.000Z', 1773651720000);
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY AUTOINCREMENT, session_db_id INTEGER, content_session_id TEXT NOT NULL, prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL, synced_at INTEGER, FOREIGN KEY(session_db_id) REFERENCES sdk_sessions(id) ON DELETE CASCADE);
INSERT INTO user_prompts (session_db_id, content_session_id, prompt_number, prompt_text, created_at, created_at_epoch) VALUES
(1, 'c1', 1, 'Why is the cart empty?', '2026-03-16T09:00:00.000Z', 1773651600000),
(2, 'c2', 1, 'Fix the tax rounding', '2026-03-16T10:00:00.000Z', 1773655200000);
CREATE VIRTUAL TABLE user_prompts_fts USING fts5(prompt_text, content='user_prompts', content_rowid='id');
