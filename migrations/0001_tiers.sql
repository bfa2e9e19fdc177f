-- The tiers, the index over them and the consolidation log.
-- Times are UTC, ISO 8601 with microseconds, so that text order is time order.
-- `seq` is a memory's identity in the index; it keeps it when it moves to the archive.

CREATE TABLE working_memory (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    session_id   TEXT NOT NULL,
    source       TEXT,
    role         TEXT NOT NULL DEFAULT '',
    content      TEXT NOT NULL,
    importance   REAL NOT NULL DEFAULT 0.5,
    pinned       INTEGER NOT NULL DEFAULT 0,
    metadata     TEXT NOT NULL DEFAULT '{}',
    created_at   TEXT NOT NULL,
    content_hash INTEGER NOT NULL
) STRICT;
CREATE INDEX working_memory_created_at ON working_memory (created_at);
CREATE INDEX working_memory_content_hash ON working_memory (content_hash);

-- `summary_of`, the view below, names an episode's originals.
CREATE TABLE episodic_memory (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    session_id   TEXT NOT NULL,
    source       TEXT,
    level        INTEGER NOT NULL DEFAULT 0 CHECK (level BETWEEN 0 AND 3),
    content      TEXT NOT NULL,
    item_count   INTEGER NOT NULL CHECK (item_count > 0),
    covers_from  TEXT NOT NULL,
    covers_until TEXT NOT NULL,
    summarizer   TEXT NOT NULL,
    parent_id    TEXT REFERENCES episodic_memory (id),
    created_at   TEXT NOT NULL
) STRICT;
CREATE INDEX episodic_memory_parent ON episodic_memory (parent_id);
CREATE INDEX episodic_memory_covers_from ON episodic_memory (covers_from);

-- The evicted originals, verbatim; `episode_seq` is the provenance of the episode.
CREATE TABLE archive (
    seq          INTEGER PRIMARY KEY,
    id           TEXT NOT NULL UNIQUE,
    session_id   TEXT NOT NULL,
    source       TEXT,
    role         TEXT NOT NULL DEFAULT '',
    content      TEXT NOT NULL,
    importance   REAL NOT NULL DEFAULT 0.5,
    pinned       INTEGER NOT NULL DEFAULT 0,
    metadata     TEXT NOT NULL DEFAULT '{}',
    created_at   TEXT NOT NULL,
    content_hash INTEGER NOT NULL,
    episode_seq  INTEGER NOT NULL REFERENCES episodic_memory (seq)
) STRICT;
CREATE INDEX archive_episode ON archive (episode_seq);
CREATE INDEX archive_content_hash ON archive (content_hash);

CREATE VIEW summary_of AS
    SELECT e.id AS episode_id, a.id AS memory_id, a.created_at
    FROM episodic_memory AS e JOIN archive AS a ON a.episode_seq = e.seq;

-- One row for each group a cycle tried; the first five columns are the documented ones.
CREATE TABLE consolidation_log (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id         TEXT NOT NULL,
    items_consolidated INTEGER NOT NULL,
    summary_preview    TEXT NOT NULL,
    created_at         TEXT NOT NULL,
    cycle_id           TEXT NOT NULL,
    source             TEXT,
    episode_id         TEXT,
    "trigger"          TEXT NOT NULL,
    summarizer         TEXT NOT NULL,
    status             TEXT NOT NULL CHECK (status IN ('promoted', 'verbatim', 'failed')),
    error              TEXT,
    duration_s         REAL NOT NULL,
    chars_before       INTEGER NOT NULL,
    chars_after        INTEGER NOT NULL
) STRICT;
CREATE INDEX consolidation_log_episode ON consolidation_log (episode_id);

-- One index over both homes of an original, so that eviction does not touch it.
CREATE VIEW memory_text AS
    SELECT seq, content, role FROM working_memory
    UNION ALL
    SELECT seq, content, role FROM archive;
CREATE VIRTUAL TABLE memory_fts USING fts5 (
    content, role,
    content = 'memory_text', content_rowid = 'seq',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE episode_fts USING fts5 (
    content,
    content = 'episodic_memory', content_rowid = 'seq',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
-- The second path: character pairs of scripts without spaces, and the parts of identifiers.
-- Only texts that have some are in it. Contentless: the text itself stands in the tiers.
CREATE VIRTUAL TABLE memory_gram_fts USING fts5 (grams, content = '', tokenize = 'unicode61');
CREATE VIRTUAL TABLE episode_gram_fts USING fts5 (grams, content = '', tokenize = 'unicode61');

-- Totals per tier, kept by triggers: status and the cap never count a million rows.
CREATE TABLE tier_totals (
    tier       TEXT PRIMARY KEY,
    count      INTEGER NOT NULL,
    characters INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO tier_totals VALUES ('working', 0, 0), ('episodic', 0, 0), ('archive', 0, 0);

CREATE TRIGGER working_memory_inserted AFTER INSERT ON working_memory BEGIN
    UPDATE tier_totals SET count = count + 1, characters = characters + length(new.content)
    WHERE tier = 'working';
END;
CREATE TRIGGER working_memory_deleted AFTER DELETE ON working_memory BEGIN
    UPDATE tier_totals SET count = count - 1, characters = characters - length(old.content)
    WHERE tier = 'working';
END;
CREATE TRIGGER archive_inserted AFTER INSERT ON archive BEGIN
    UPDATE tier_totals SET count = count + 1, characters = characters + length(new.content)
    WHERE tier = 'archive';
END;
CREATE TRIGGER archive_deleted AFTER DELETE ON archive BEGIN
    UPDATE tier_totals SET count = count - 1, characters = characters - length(old.content)
    WHERE tier = 'archive';
END;
CREATE TRIGGER episodic_memory_inserted AFTER INSERT ON episodic_memory BEGIN
    UPDATE tier_totals SET count = count + 1, characters = characters + length(new.content)
    WHERE tier = 'episodic';
    INSERT INTO episode_fts (rowid, content) VALUES (new.seq, new.content);
END;
CREATE TRIGGER episodic_memory_deleted AFTER DELETE ON episodic_memory BEGIN
    UPDATE tier_totals SET count = count - 1, characters = characters - length(old.content)
    WHERE tier = 'episodic';
    INSERT INTO episode_fts (episode_fts, rowid, content) VALUES ('delete', old.seq, old.content);
END;
CREATE TRIGGER episodic_memory_rewritten AFTER UPDATE OF content ON episodic_memory BEGIN
    UPDATE tier_totals
    SET characters = characters + length(new.content) - length(old.content)
    WHERE tier = 'episodic';
    INSERT INTO episode_fts (episode_fts, rowid, content) VALUES ('delete', old.seq, old.content);
    INSERT INTO episode_fts (rowid, content) VALUES (new.seq, new.content);
END;
