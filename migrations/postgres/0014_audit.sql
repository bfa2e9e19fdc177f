-- compatible with 13
-- The audit log: who asked what about which memories, chained by hashes for each process that writes. The login
-- that serves may append lines and ask for the last ones, by these functions; it can neither read, change nor
-- delete others. The table has no column `owner`: it is of no owner, and outlives each.
CREATE TABLE audit (
    writer text COLLATE "C" NOT NULL,
    seq    bigint NOT NULL,
    -- The serving login names it: one that a reader cannot hold would end each check.
    at     timestamptz NOT NULL CHECK (at BETWEEN '1970-01-01 00:00Z' AND '9999-12-31 00:00Z'),
    line   text COLLATE "C" NOT NULL,
    PRIMARY KEY (writer, seq)
);
CREATE INDEX audit_time ON audit (at);
-- No names and ids in the statistics, as with all other text.
ALTER TABLE audit ALTER writer SET STATISTICS 0, ALTER line SET STATISTICS 0;

-- How many of the numbers have another line.
CREATE FUNCTION audit_append(writers text[], seqs bigint[], times timestamptz[], lines text[])
RETURNS bigint LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
    INSERT INTO audit (writer, seq, at, line)
    SELECT n.writer, n.seq, n.at, n.line FROM unnest(writers, seqs, times, lines) AS n (writer, seq, at, line)
    ON CONFLICT DO NOTHING;
    SELECT count(*) FROM unnest(writers, seqs, lines) AS n (writer, seq, line)
    JOIN audit AS a ON a.writer = n.writer COLLATE "C" AND a.seq = n.seq
    WHERE a.line <> n.line COLLATE "C"; END;

-- The last lines of the newest chains, one step by the key for each.
CREATE FUNCTION audit_heads(most bigint)
RETURNS TABLE (writer text, seq bigint, hash text) LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    WITH RECURSIVE chain (writer) AS (
        SELECT max(a.writer) FROM audit AS a
        UNION ALL SELECT (SELECT max(a.writer) FROM audit AS a WHERE a.writer < c.writer)
        FROM chain AS c WHERE c.writer IS NOT NULL
    ) SELECT h.writer, h.seq, left(right(h.line, 66), 64)
    FROM (SELECT c.writer FROM chain AS c WHERE c.writer IS NOT NULL LIMIT most) AS n
    CROSS JOIN LATERAL (SELECT a.writer, a.seq, a.line FROM audit AS a WHERE a.writer = n.writer
        ORDER BY a.seq DESC LIMIT 1) AS h; END;

-- Which of these lines are missing, by their place: those from before the first one, or before `since`, were
-- pruned. A line with another text is missing, too: whoever stole a daemon's login may have put it there.
CREATE FUNCTION audit_lacking(
    writers text[], seqs bigint[], times timestamptz[], lines text[], since timestamptz
) RETURNS SETOF bigint LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT n.place FROM unnest(writers, seqs, times, lines) WITH ORDINALITY AS n (writer, seq, at, line, place)
    WHERE n.at >= coalesce(since, (SELECT min(a.at) FROM audit AS a), '-infinity') AND NOT EXISTS (
        SELECT 1 FROM audit AS a
        WHERE a.writer = n.writer COLLATE "C" AND a.seq = n.seq AND a.line = n.line COLLATE "C"
    ); END;

CREATE FUNCTION owner_names(numbers bigint[])
RETURNS TABLE (number bigint, name text) LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT o.owner, o.name FROM owner AS o WHERE o.owner = ANY(numbers); END;

REVOKE EXECUTE ON FUNCTION audit_append(text[], bigint[], timestamptz[], text[]), audit_heads(bigint),
audit_lacking(text[], bigint[], timestamptz[], text[], timestamptz), owner_names(bigint[]) FROM PUBLIC;
