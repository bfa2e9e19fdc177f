-- Endings: the statement of an older memory that a newer one ended, by their ids and the numbers of the two
-- sentences. No words: they are those of the memories.

CREATE TABLE ending (
    older_id    TEXT NOT NULL,
    newer_id    TEXT NOT NULL,
    reason      TEXT NOT NULL,
    older_place INTEGER NOT NULL,
    newer_place INTEGER NOT NULL,
    found_at    TEXT NOT NULL,
    undone      INTEGER NOT NULL,
    PRIMARY KEY (older_id, newer_id, older_place)
) STRICT, WITHOUT ROWID;
CREATE INDEX ending_newer ON ending (newer_id);
CREATE INDEX ending_found ON ending (found_at);

-- Up to this row number, memories were read for endings.
CREATE TABLE ending_progress (position INTEGER NOT NULL) STRICT;
