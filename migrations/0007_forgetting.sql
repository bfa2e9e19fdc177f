-- Validity, supersession, pruning, undone cycles, and summaries that wait to be rewritten.

-- What is said of few memories, so that it costs the others nothing; `memory_seq` is their `seq`.
-- A memory that was superseded stays so when its successor is forgotten: `superseded_by` is NULL.
CREATE TABLE memory_state (
    memory_seq    INTEGER PRIMARY KEY,
    valid_until   TEXT,
    superseded_at TEXT,
    superseded_by INTEGER,
    pruned_at     TEXT
) STRICT;
CREATE INDEX memory_state_superseded_by ON memory_state (superseded_by)
    WHERE superseded_by IS NOT NULL;

-- Summaries emptied since something they were made of is gone; each is rewritten from the rest.
-- Whoever empties one again gives it a new mark, so that no rewriting from before counts.
CREATE TABLE emptied_episode (
    mark        INTEGER PRIMARY KEY AUTOINCREMENT,
    episode_seq INTEGER NOT NULL UNIQUE
) STRICT;

-- Has a row from a deletion until its words are pressed out of index segments and the log file.
CREATE TABLE scrub_due (
    asked INTEGER PRIMARY KEY
) STRICT;

ALTER TABLE consolidation_log ADD COLUMN undone_at TEXT;

-- A pruned original keeps its row and its details; its words are gone, here and in the index.
DROP VIEW memory_text;
CREATE VIEW memory_text AS
    SELECT seq, content, role FROM working_memory
    UNION ALL
    SELECT seq, content, role FROM archive WHERE content != '';
CREATE TRIGGER archive_pruned AFTER UPDATE OF content ON archive BEGIN
    UPDATE tier_totals
    SET characters = characters + length(new.content) - length(old.content)
    WHERE tier = 'archive';
END;
