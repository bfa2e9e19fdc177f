-- Said of few working memories: until when an undo holds them there, and since when they are known
-- to lie in the future, as the clock was set back after them. `memory_seq` is their `seq`.
CREATE TABLE working_state (
    memory_seq   INTEGER PRIMARY KEY,
    held_until   TEXT,
    future_since TEXT
) STRICT;
CREATE INDEX working_state_held ON working_state (held_until) WHERE held_until IS NOT NULL;
CREATE INDEX working_state_future ON working_state (future_since) WHERE future_since IS NOT NULL;
CREATE TRIGGER working_memory_deleted_state AFTER DELETE ON working_memory BEGIN
    DELETE FROM working_state WHERE memory_seq = old.seq;
END;

-- The clock as it was last believed: in which start of the machine, how long after it, and how much
-- further ahead it may be found (`slack_s`, granted `slack_from_s` after that start).
CREATE TABLE clock_seen (
    one          INTEGER PRIMARY KEY CHECK (one = 1),
    moment       TEXT NOT NULL,
    boot         TEXT NOT NULL,
    uptime_s     REAL NOT NULL,
    slack_s      REAL NOT NULL,
    slack_from_s REAL NOT NULL
) STRICT;
