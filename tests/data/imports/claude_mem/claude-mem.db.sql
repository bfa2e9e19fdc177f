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
-- The tables of its server (storage/sqlite/schema.ts, version 33), in the same file.
CREATE TABLE projects (id TEXT PRIMARY KEY, name TEXT NOT NULL, slug TEXT UNIQUE, root_path TEXT UNIQUE, metadata TEXT NOT NULL DEFAULT '{}', created_at_epoch INTEGER NOT NULL, updated_at_epoch INTEGER NOT NULL);
INSERT INTO projects (id, name, created_at_epoch, updated_at_epoch) VALUES ('p1', 'shop', 1773651600000, 1773651600000);
CREATE TABLE server_sessions (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, content_session_id TEXT, memory_session_id TEXT, platform_source TEXT NOT NULL DEFAULT 'claude', title TEXT, status TEXT NOT NULL DEFAULT 'active', metadata TEXT NOT NULL DEFAULT '{}', started_at_epoch INTEGER NOT NULL, completed_at_epoch INTEGER, updated_at_epoch INTEGER NOT NULL);
INSERT INTO server_sessions (id, project_id, content_session_id, platform_source, started_at_epoch, updated_at_epoch) VALUES
('v1', 'p1', 'c4', 'codex', 1773658800000, 1773658800000);
CREATE TABLE memory_items (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, server_session_id TEXT, legacy_observation_id INTEGER, kind TEXT NOT NULL, type TEXT NOT NULL, title TEXT, subtitle TEXT, text TEXT, narrative TEXT, facts TEXT NOT NULL DEFAULT '[]', concepts TEXT NOT NULL DEFAULT '[]', files_read TEXT NOT NULL DEFAULT '[]', files_modified TEXT NOT NULL DEFAULT '[]', metadata TEXT NOT NULL DEFAULT '{}', created_at_epoch INTEGER NOT NULL, updated_at_epoch INTEGER NOT NULL);
INSERT INTO memory_items (id, project_id, server_session_id, kind, type, title, narrative, facts, created_at_epoch, updated_at_epoch) VALUES
('8a1e', 'p1', 'v1', 'observation', 'decision', 'Prices', 'Prices are in cents.', '["Since March"]', 1773658860000, 1773658860000),
('8a1f', 'p1', 'v1', 'prompt', 'prompt', NULL, 'Why in cents?', '[]', 1773658800000, 1773658800000),
('8a20', 'p1', NULL, 'manual', 'manual', NULL, 'The shop is closed on Sundays.', '[]', 1773658920000, 1773658920000);
