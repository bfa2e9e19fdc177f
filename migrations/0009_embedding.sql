-- Vectors of the original memories, for recall by meaning; `memory_seq` is their `seq`, which goes
-- with them to the archive. A vector counts for the model that made it and for no other.

CREATE TABLE embedding_model (
    number INTEGER PRIMARY KEY,
    name   TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE embedding (
    memory_seq INTEGER PRIMARY KEY,
    model      INTEGER NOT NULL REFERENCES embedding_model (number),
    vector     BLOB NOT NULL
) STRICT;
-- What has a vector is asked of every memory at each start: without the vectors that is little.
CREATE INDEX embedding_model_memory ON embedding (model, memory_seq);

-- What is forgotten is forgotten with its vector; what moves to the archive is not forgotten.
CREATE TRIGGER working_memory_deleted_embedding AFTER DELETE ON working_memory
WHEN NOT EXISTS (SELECT 1 FROM archive WHERE seq = old.seq) BEGIN
    DELETE FROM embedding WHERE memory_seq = old.seq;
END;
CREATE TRIGGER archive_deleted_embedding AFTER DELETE ON archive
WHEN NOT EXISTS (SELECT 1 FROM working_memory WHERE seq = old.seq) BEGIN
    DELETE FROM embedding WHERE memory_seq = old.seq;
END;
