-- A word that touches letters of a script without spaces, as `nginx` in 「サーバーはnginxです」, is no word
-- of its own to the index of words: the second index has it. Entries of before get theirs when the
-- file is opened, the oldest first: those after `seq` are due. An index that is done has no row here.

CREATE TABLE reindexing (
    name TEXT PRIMARY KEY,
    seq  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO reindexing
SELECT 'memory_gram_fts', 0 WHERE EXISTS (SELECT 1 FROM memory_gram_fts_docsize);
INSERT INTO reindexing
SELECT 'episode_gram_fts', 0 WHERE EXISTS (SELECT 1 FROM episode_gram_fts_docsize);
