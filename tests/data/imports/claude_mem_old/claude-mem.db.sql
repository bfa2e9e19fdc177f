-- The tables of claude-mem 5 (schema version 11): sessions by their former names, no platform, no model.
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, claude_session_id TEXT UNIQUE NOT NULL, sdk_session_id TEXT UNIQUE, project TEXT NOT NULL, user_prompt TEXT, started_at TEXT NOT NULL, started_at_epoch INTEGER NOT NULL, status TEXT NOT NULL DEFAULT 'active', worker_port INTEGER, prompt_counter INTEGER DEFAULT 0);
INSERT INTO sdk_sessions (claude_session_id, sdk_session_id, project, started_at, started_at_epoch) VALUES ('c1', 's1', 'shop', '2025-11-16T09:00:00.000Z', 1763283600000);
CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, sdk_session_id TEXT NOT NULL, project TEXT NOT NULL, text TEXT NOT NULL, type TEXT NOT NULL, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
INSERT INTO observations VALUES (1, 's1', 'shop', 'Prices are in cents', 'decision', '2025-11-16T09:00:00.000Z', 1763283600);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, sdk_session_id TEXT UNIQUE NOT NULL, project TEXT NOT NULL, request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY AUTOINCREMENT, claude_session_id TEXT NOT NULL, prompt_number INTEGER NOT NULL, prompt_text TEXT NOT NULL, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
INSERT INTO user_prompts VALUES (1, 'c1', 1, 'Use cents', '2025-11-16T09:00:00.000Z', 1763283600000);
