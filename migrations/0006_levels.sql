-- Days, weeks and months above the episodes. `period_from` is the first instant of the period, NULL
-- for an episode; `stale` marks a summary of which something below was added or rewritten.

ALTER TABLE episodic_memory ADD COLUMN period_from TEXT;
ALTER TABLE episodic_memory ADD COLUMN stale INTEGER NOT NULL DEFAULT 0;

-- Each day, week and month has one summary at most.
CREATE UNIQUE INDEX episodic_memory_period ON episodic_memory (level, period_from)
    WHERE period_from IS NOT NULL;
-- What is left to fold; small, as what was folded leaves it.
CREATE INDEX episodic_memory_unfolded ON episodic_memory (level, ifnull(period_from, covers_from))
    WHERE parent_id IS NULL;
CREATE INDEX episodic_memory_stale ON episodic_memory (level) WHERE stale;

-- 0: originals became an episode; above: summaries became a day, week or month.
ALTER TABLE consolidation_log ADD COLUMN level INTEGER NOT NULL DEFAULT 0;
