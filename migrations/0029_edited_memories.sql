-- Edited memories, until endings and rules were read in them again. A killed daemon reads them at its next start.
CREATE TABLE edited_memory (
    mark       INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_seq INTEGER NOT NULL
) STRICT;
