-- Conversations with the agents people use, and what their hooks did.
-- `position` is how far the transcript `file` (device and inode) has been read; `shown` is a JSON
-- list of ids that were told in the conversation; `informed_at` is when its start was told.

CREATE TABLE agent_session (
    session_id   TEXT PRIMARY KEY,
    client       TEXT NOT NULL,
    conversation TEXT NOT NULL,
    project      TEXT NOT NULL DEFAULT '',
    directory    TEXT NOT NULL DEFAULT '',
    transcript   TEXT NOT NULL DEFAULT '',
    file         TEXT NOT NULL DEFAULT '',
    position     INTEGER NOT NULL DEFAULT 0,
    started_at   TEXT NOT NULL,
    seen_at      TEXT NOT NULL,
    informed_at  TEXT,
    shown        TEXT NOT NULL DEFAULT '[]'
) STRICT, WITHOUT ROWID;
CREATE INDEX agent_session_project ON agent_session (project, seen_at);
CREATE INDEX agent_session_seen ON agent_session (seen_at);

-- One row for each client and kind of event.
CREATE TABLE agent_activity (
    client      TEXT NOT NULL,
    event       TEXT NOT NULL,
    calls       INTEGER NOT NULL,
    stored      INTEGER NOT NULL,
    characters  INTEGER NOT NULL,
    failures    INTEGER NOT NULL,
    total_ms    REAL NOT NULL,
    slowest_ms  REAL NOT NULL,
    called_at   TEXT NOT NULL,
    stored_at   TEXT,
    informed_at TEXT,
    failed_at   TEXT,
    failure     TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (client, event)
) STRICT, WITHOUT ROWID;

-- The episodes of a session, the newest first.
CREATE INDEX episodic_memory_session ON episodic_memory (session_id, covers_from);

-- Ids of captured messages that were forgotten: their transcripts are still there to be read again.
CREATE TABLE agent_forgotten (
    id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
