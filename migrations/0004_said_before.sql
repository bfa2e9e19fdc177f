-- What a session said before is looked for within that session: an index ordered by session first
-- is written where the session's other rows are, one of hashes alone all over the file.
-- The `+` keeps it to that: a plain `session_id = ?` would prefer it to a range of `seq`, and read
-- a whole session.
DROP INDEX working_memory_content_hash;
DROP INDEX archive_content_hash;
CREATE INDEX working_memory_said ON working_memory (+session_id, content_hash);
CREATE INDEX archive_said ON archive (+session_id, content_hash);
