-- What compactions took out of conversations: ids alone, as the words are memories like others.
-- `text_hash` finds a summary again that comes back without its metadata.

CREATE TABLE compaction (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    source     TEXT,
    policy     TEXT NOT NULL,
    text_hash  INTEGER NOT NULL,
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX compaction_text_hash ON compaction (text_hash);

-- In the order of the conversation; `part` is a memory's id, or an earlier compaction's.
-- A memory moves between tables and may be forgotten, so it is no reference.
CREATE TABLE compacted (
    compaction TEXT NOT NULL,
    position   INTEGER NOT NULL,
    part       TEXT NOT NULL,
    PRIMARY KEY (compaction, position)
) STRICT, WITHOUT ROWID;
