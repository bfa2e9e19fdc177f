-- A word that touches letters of a script without spaces, as `nginx` in 「サーバーはnginxです」, is among
-- the words of a row too. Rows of before get theirs when the database is opened, in the order of owner
-- and seq: those after `place` are due. A table that is done has no row here.

CREATE TABLE reindexing (
    name  text COLLATE "C" PRIMARY KEY,
    place integer[] NOT NULL
);
INSERT INTO reindexing
SELECT 'memory', '{0,0}' WHERE EXISTS (SELECT 1 FROM memory WHERE grams IS NOT NULL);
INSERT INTO reindexing
SELECT 'episode', '{0,0}' WHERE EXISTS (SELECT 1 FROM episode WHERE grams IS NOT NULL);
