-- Tags, and the earlier words of memories that were edited.
-- `memory_seq` is a memory's `seq`, which goes with it to the archive and back.

CREATE TABLE tag (
    memory_seq INTEGER NOT NULL,
    name       TEXT NOT NULL,
    PRIMARY KEY (memory_seq, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX tag_name ON tag (name, memory_seq);

-- What a memory was before a change. `content` is NULL where the change left the words alone, or
-- where the earlier words were to be dropped; `content_hash` is theirs in any case, so that a
-- transcript or file that is read again is known. `fields` has the other fields that changed.
CREATE TABLE revision (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_seq   INTEGER NOT NULL,
    changed_at   TEXT NOT NULL,
    content      TEXT,
    content_hash INTEGER NOT NULL,
    fields       TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE INDEX revision_memory ON revision (memory_seq, seq);

CREATE TRIGGER working_memory_edited AFTER UPDATE OF content ON working_memory BEGIN
    UPDATE tier_totals
    SET characters = characters + length(new.content) - length(old.content)
    WHERE tier = 'working';
END;
