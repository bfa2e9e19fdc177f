-- How many terms a text has, and which of them repeat, weighed what was found. An earlier daemon would go on
-- writing these columns: none may go on beside this. The views stay as they are otherwise, also on a cluster.
DO $$
DECLARE
    counts text := ',\s+(\w+\.)?(gram_count|word_count|repeated|repeats)\M';
    memories text := regexp_replace(pg_get_viewdef('memory_index'::regclass), counts, '', 'g');
    episodes text := regexp_replace(pg_get_viewdef('episode_index'::regclass), counts, '', 'g');
BEGIN
    DROP VIEW memory_index;
    DROP VIEW episode_index;
    ALTER TABLE memory DROP COLUMN gram_count;
    ALTER TABLE episode DROP COLUMN gram_count;
    ALTER TABLE episode DROP COLUMN word_count;
    ALTER TABLE episode DROP COLUMN repeated;
    ALTER TABLE episode DROP COLUMN repeats;
    EXECUTE 'CREATE VIEW memory_index AS ' || memories;
    EXECUTE 'CREATE VIEW episode_index AS ' || episodes;
END $$;
