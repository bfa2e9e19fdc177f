-- compatible with 10
-- The newest learnings, page by page and for each context, without sorting all of them.
CREATE INDEX learning_time ON learning (owner, created_at, seq);
