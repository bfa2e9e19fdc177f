-- What a summary shows and what it is only found by are two things: `index_terms` are words of its
-- originals that its text leaves out, one a line. They are searched and never shown.

DROP TRIGGER episodic_memory_inserted;
DROP TRIGGER episodic_memory_deleted;
DROP TRIGGER episodic_memory_rewritten;
DROP TABLE episode_fts;
ALTER TABLE episodic_memory ADD COLUMN index_terms TEXT NOT NULL DEFAULT '';

-- Summaries used to end with a line of keywords, and those that were carried up word for word have
-- one for each summary below them. A memory that was too little to be summarized may begin so too:
-- its words are its own.
WITH RECURSIVE split (seq, rest, content, index_terms) AS (
    SELECT seq, content || char(10), '', '' FROM episodic_memory
    WHERE instr(char(10) || content, char(10) || 'Keywords: ')
        AND NOT (level = 0 AND summarizer = 'verbatim')
    UNION ALL
    SELECT seq, substr(rest, instr(rest, char(10)) + 1),
        content || iif(rest GLOB 'Keywords: *', '', substr(rest, 1, instr(rest, char(10)))),
        index_terms || iif(rest GLOB 'Keywords: *', replace(
            substr(rest, 11, instr(rest, char(10)) - 10), ', ', char(10)), '')
    FROM split WHERE rest != ''
)
UPDATE episodic_memory
SET content = rtrim(split.content, char(10)), index_terms = rtrim(split.index_terms, char(10))
FROM split WHERE split.seq = episodic_memory.seq AND split.rest = '';

-- And they began with a heading: the days, and after a dot who spoke. The days are known beside the
-- text; their words and the speakers are still searched.
WITH heading (seq, line) AS (
    SELECT seq, substr(content, 1, instr(content || char(10), char(10)) - 1)
    FROM episodic_memory WHERE summarizer != 'verbatim'
),
dated (seq, line, days) AS (
    SELECT seq, line, substr(line, 1, instr(line || ' · ', ' · ') - 1) FROM heading
)
UPDATE episodic_memory
SET content = substr(content, length(dated.line) + 2),
    index_terms = iif(index_terms = '', dated.line, dated.line || char(10) || index_terms)
FROM dated WHERE dated.seq = episodic_memory.seq
    AND length(content) > length(dated.line) + 1
    AND length(dated.days) <= 40
    AND (dated.days GLOB '[MTWFS][a-z][a-z] [1-9]* [A-Z]*[a-z] [0-9][0-9][0-9][0-9]'
        OR dated.days GLOB '[1-9]*–*[0-9] [A-Z]*[a-z] [0-9][0-9][0-9][0-9]');

-- Keywords of episodes became sentences of their days: the next cycle composes days, weeks and
-- months again.
UPDATE episodic_memory SET stale = 1 WHERE level > 0 AND period_from IS NOT NULL;

UPDATE tier_totals
SET characters = (SELECT ifnull(sum(length(content)), 0) FROM episodic_memory)
WHERE tier = 'episodic';

CREATE VIRTUAL TABLE episode_fts USING fts5 (
    content, index_terms,
    content = 'episodic_memory', content_rowid = 'seq',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO episode_fts (episode_fts) VALUES ('rebuild');

CREATE TRIGGER episodic_memory_inserted AFTER INSERT ON episodic_memory BEGIN
    UPDATE tier_totals SET count = count + 1, characters = characters + length(new.content)
    WHERE tier = 'episodic';
    INSERT INTO episode_fts (rowid, content, index_terms)
    VALUES (new.seq, new.content, new.index_terms);
END;
CREATE TRIGGER episodic_memory_deleted AFTER DELETE ON episodic_memory BEGIN
    UPDATE tier_totals SET count = count - 1, characters = characters - length(old.content)
    WHERE tier = 'episodic';
    INSERT INTO episode_fts (episode_fts, rowid, content, index_terms)
    VALUES ('delete', old.seq, old.content, old.index_terms);
END;
CREATE TRIGGER episodic_memory_rewritten AFTER UPDATE OF content, index_terms ON episodic_memory
BEGIN
    UPDATE tier_totals
    SET characters = characters + length(new.content) - length(old.content)
    WHERE tier = 'episodic';
    INSERT INTO episode_fts (episode_fts, rowid, content, index_terms)
    VALUES ('delete', old.seq, old.content, old.index_terms);
    INSERT INTO episode_fts (rowid, content, index_terms)
    VALUES (new.seq, new.content, new.index_terms);
END;
