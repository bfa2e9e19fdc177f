-- Memories that were forgotten with a grace time. Nothing reads this table but what puts them back
-- (`data` is all of a memory, as JSON) and what deletes them once the time is over.

CREATE TABLE forgotten (
    id        TEXT PRIMARY KEY,
    call      TEXT NOT NULL,
    final_at  TEXT NOT NULL,
    data      TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX forgotten_call ON forgotten (call);
CREATE INDEX forgotten_final ON forgotten (final_at);
