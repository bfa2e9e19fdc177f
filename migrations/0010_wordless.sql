-- A message without words that a compaction took out was kept with content '', which is what a
-- pruned memory has: the view below the index hid it, and forgetting it left its speaker indexed.
-- Such a memory has the sign for nothing as its content, which is no word to the index either,
-- and its message's own content beside the rest of the message. Only compactions' ids begin `m-`.

UPDATE working_memory SET
    content = '∅', content_hash = 8343199687326534692,
    metadata = iif(json_type(metadata, '$.message') IS NULL,
                   json_set(metadata, '$.rest_of_message.content', ''), metadata)
WHERE id >= 'm-' AND id < 'm.' AND content = '';
UPDATE archive SET
    content = '∅', content_hash = 8343199687326534692,
    metadata = iif(json_type(metadata, '$.message') IS NULL,
                   json_set(metadata, '$.rest_of_message.content', ''), metadata)
WHERE id >= 'm-' AND id < 'm.' AND content = ''
    AND seq NOT IN (SELECT memory_seq FROM memory_state WHERE pruned_at IS NOT NULL);
UPDATE tier_totals
SET characters = (SELECT ifnull(sum(length(content)), 0) FROM working_memory)
WHERE tier = 'working';

-- Such memories that were forgotten have left their speakers in the index. The index is written
-- anew if there are any; the next cycle purges them, and names of sessions with nothing left, from
-- the file.
INSERT OR IGNORE INTO scrub_due
SELECT 1 WHERE EXISTS (SELECT 1 FROM compaction) AND EXISTS (
    SELECT 1 FROM memory_fts_docsize AS d
    WHERE NOT EXISTS (SELECT 1 FROM memory_text WHERE seq = d.id)
);
INSERT INTO memory_fts (memory_fts)
SELECT 'rebuild' WHERE EXISTS (SELECT 1 FROM compaction) AND EXISTS (
    SELECT 1 FROM memory_fts_docsize AS d
    WHERE NOT EXISTS (SELECT 1 FROM memory_text WHERE seq = d.id)
);
INSERT OR IGNORE INTO scrub_due
SELECT 1 FROM compaction WHERE session_id NOT IN (
    SELECT session_id FROM working_memory UNION ALL SELECT session_id FROM episodic_memory
) LIMIT 1;
