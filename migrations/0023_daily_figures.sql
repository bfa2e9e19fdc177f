-- Figures of each day, by this machine's calendar: how many recalls took how long, as JSON by steps of time, and
-- the size of the database when they were last saved.
CREATE TABLE daily_figures (
    day           TEXT PRIMARY KEY,
    recall_times  TEXT NOT NULL,
    bytes_on_disk INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
