-- The ledger of injected context: what was given to which agent, and why each line. `outcome` is
-- unknown, useful, not_useful or said_again. `memory_id` is that of a memory or a learning.

CREATE TABLE injection (
    id             TEXT PRIMARY KEY,
    created_at     TEXT NOT NULL,
    client         TEXT NOT NULL,
    session_id     TEXT NOT NULL,
    project        TEXT NOT NULL,
    injection_kind TEXT NOT NULL,
    prompt         TEXT NOT NULL,
    characters     INTEGER NOT NULL,
    tokens         INTEGER NOT NULL,
    outcome        TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX injection_session ON injection (session_id);
CREATE TABLE injected_line (
    injection_id TEXT NOT NULL REFERENCES injection (id) ON DELETE CASCADE,
    place        INTEGER NOT NULL,
    memory_id    TEXT NOT NULL,
    text         TEXT NOT NULL,
    reason       TEXT NOT NULL,
    PRIMARY KEY (injection_id, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX injected_line_memory ON injected_line (memory_id);

-- What a person decided about lines of briefings; `text` is shown instead of the source's words.
CREATE TABLE briefing_line (
    id         TEXT PRIMARY KEY,
    pinned     INTEGER NOT NULL,
    dropped    INTEGER NOT NULL,
    text       TEXT NOT NULL,
    changed_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
