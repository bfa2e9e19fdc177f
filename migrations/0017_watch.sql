-- Folders that the daemon follows, besides those in the settings.
CREATE TABLE watched_folder (
    path     TEXT PRIMARY KEY,
    added_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Files in them as they were when they were last read. `file` is device and inode, `position` where
-- the format goes on, `memories` a JSON object: the parts of a note, and the memory each was stored as.
CREATE TABLE watched_file (
    path        TEXT PRIMARY KEY,
    file        TEXT NOT NULL,
    size        INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    format      TEXT NOT NULL DEFAULT '',
    position    TEXT NOT NULL DEFAULT '',
    memories    TEXT NOT NULL DEFAULT '{}',
    stored      INTEGER NOT NULL DEFAULT 0,
    read_at     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX watched_file_file ON watched_file (file);
