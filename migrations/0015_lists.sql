-- Lists in the order of time. The archive is read episode by episode, by the times that these
-- cover: a few bytes for each memory, where an index over the originals would take forty.

CREATE INDEX episodic_memory_covers_until
    ON episodic_memory (covers_until, covers_from) WHERE level = 0;
-- Few memories are pinned, and the others are not in these.
CREATE INDEX working_memory_pinned ON working_memory (created_at) WHERE pinned;
CREATE INDEX archive_pinned ON archive (created_at) WHERE pinned;
