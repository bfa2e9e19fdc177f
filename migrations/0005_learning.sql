-- What holds from now on: instructions and preferences as users said them, lessons of agents.
-- `memory_id` is the memory whose words they are; it moves between tables, so it is no reference.

CREATE TABLE learning (
    seq           INTEGER PRIMARY KEY,
    id            TEXT NOT NULL UNIQUE,
    kind          TEXT NOT NULL,
    text          TEXT NOT NULL,
    session_id    TEXT NOT NULL,
    source        TEXT,
    memory_id     TEXT,
    created_at    TEXT NOT NULL,
    superseded_by TEXT
) STRICT;
CREATE INDEX learning_holding ON learning (source, created_at) WHERE superseded_by IS NULL;
CREATE INDEX learning_memory ON learning (memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX learning_superseded_by ON learning (superseded_by) WHERE superseded_by IS NOT NULL;

-- Once the newer one is gone, the older one holds again.
CREATE TRIGGER learning_deleted AFTER DELETE ON learning BEGIN
    UPDATE learning SET superseded_by = NULL WHERE superseded_by = old.id;
END;
