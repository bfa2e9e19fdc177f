-- A word in other forms of its letters, as `ＡＰＩ` or `ﬁle`, is not found by its common form in the index of
-- words: the second index has it, as it has words that touch a script without spaces, and it has the pairs of
-- such letters (`ｻｰﾊﾞｰ`) in their common forms. Both second indexes are written again when the file is opened.

INSERT OR REPLACE INTO reindexing
SELECT 'memory_gram_fts', 0 WHERE EXISTS (SELECT 1 FROM memory_text);
INSERT OR REPLACE INTO reindexing
SELECT 'episode_gram_fts', 0 WHERE EXISTS (SELECT 1 FROM episodic_memory);
