-- Exact values, word for word, of the originals in the archive; `memory_seq` is their `seq`.
-- Kinds have numbers here, as there are several values to a memory; they come with first use.

CREATE TABLE detail_kind (
    number INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE detail (
    memory_seq INTEGER NOT NULL,
    kind       INTEGER NOT NULL,
    value      TEXT NOT NULL,
    sensitive  INTEGER NOT NULL,
    PRIMARY KEY (memory_seq, kind, value)
) STRICT, WITHOUT ROWID;

-- What is forgotten is forgotten with its values.
CREATE TRIGGER archive_deleted_detail AFTER DELETE ON archive BEGIN
    DELETE FROM detail WHERE memory_seq = old.seq;
END;

-- For people and other programs: each value with the memory it came from and its episode.
CREATE VIEW detail_of AS
    SELECT e.id AS episode_id, a.id AS memory_id, k.name AS kind, d.value, d.sensitive
    FROM detail AS d
    JOIN detail_kind AS k ON k.number = d.kind
    JOIN archive AS a ON a.seq = d.memory_seq
    JOIN episodic_memory AS e ON e.seq = a.episode_seq;
