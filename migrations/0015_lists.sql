-- Lists in the order of time. The archive is read episode by episode, by the times that these
-- cover: a few bytes for each memory, where an index over the originals would take forty. Sessions and
-- sources are counted from it too.

CREATE INDEX episodic_memory_covers_until
    ON episodic_memory (level, covers_until, covers_from, session_id, source, item_count)
    WHERE level = 0;
-- Few memories are pinned, and the others are not in these.
CREATE INDEX working_memory_pinned ON working_memory (created_at) WHERE pinned;
CREATE INDEX archive_pinned ON archive (created_at) WHERE pinned;
