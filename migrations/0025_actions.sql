-- What `undo` can take back, and the memories that each action changed, by their `seq`. The memories of a
-- forget are in `forgotten`, by the id of the call. `tag` is a tag that the action gave or took, else empty.

CREATE TABLE undo_action (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    kind       TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;
CREATE TABLE undo_step (
    action     INTEGER NOT NULL,
    memory_seq INTEGER NOT NULL,
    tag        TEXT NOT NULL,
    PRIMARY KEY (action, memory_seq, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX undo_step_memory ON undo_step (memory_seq);
