-- An ending may be of one clause of the older sentence: its start and end there, both 0 for the whole sentence. A
-- newer memory may end two clauses of one sentence: the key has both, for which SQLite needs a new table.
CREATE TABLE ending_of_clause (
    older_id    TEXT NOT NULL,
    newer_id    TEXT NOT NULL,
    reason      TEXT NOT NULL,
    older_place INTEGER NOT NULL,
    older_start INTEGER NOT NULL,
    older_end   INTEGER NOT NULL,
    newer_place INTEGER NOT NULL,
    found_at    TEXT NOT NULL,
    undone      INTEGER NOT NULL,
    PRIMARY KEY (older_id, newer_id, older_place, older_start, older_end)
) STRICT, WITHOUT ROWID;
INSERT INTO ending_of_clause
    SELECT older_id, newer_id, reason, older_place, 0, 0, newer_place, found_at, undone FROM ending;
DROP TABLE ending;
ALTER TABLE ending_of_clause RENAME TO ending;
CREATE INDEX ending_newer ON ending (newer_id);
CREATE INDEX ending_found ON ending (found_at);
