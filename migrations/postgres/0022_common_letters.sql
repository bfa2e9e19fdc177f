-- Words in other forms of their letters, as `ＡＰＩ`, `ﬁle` or `ｻｰﾊﾞｰ`, are among the words and the pairs of a row in
-- their common forms, too. Rows of before get them when the database is opened. An earlier daemon would go on
-- writing rows without: none may go on beside this.
INSERT INTO reindexing SELECT 'memory', '{0,0}' WHERE EXISTS (SELECT 1 FROM memory)
ON CONFLICT DO NOTHING;
INSERT INTO reindexing SELECT 'episode', '{0,0}' WHERE EXISTS (SELECT 1 FROM episode)
ON CONFLICT DO NOTHING;
