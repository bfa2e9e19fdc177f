-- compatible with 12
-- Totals of all owners for whoever watches the server, as one row that names no owner. Memories are due if
-- they were created before `before`; what is pinned, or held by an undo, waits for nothing.

CREATE FUNCTION owner_figures(before timestamptz, model_digest text)
RETURNS TABLE (
    owners bigint, working bigint, archived bigint, summaries bigint, owners_due bigint, memories_due bigint,
    due_s double precision, purges_due bigint, purge_s double precision, lacking_vectors bigint
) LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT o.*, d.*, p.*, e.* FROM
    (SELECT count(*), coalesce(sum(working_count), 0)::bigint, coalesce(sum(archive_count), 0)::bigint,
        coalesce(sum(episodic_count), 0)::bigint FROM owner) AS o,
    (SELECT count(DISTINCT f.owner), count(*),
        coalesce(extract(epoch FROM before - min(f.created_at)), 0)::float8 FROM fresh AS f
        JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq
        LEFT JOIN working_state AS w ON w.owner = f.owner AND w.memory_seq = f.seq
        WHERE f.created_at < before AND NOT m.pinned AND coalesce(w.held_until <= now(), true)) AS d,
    (SELECT count(*), coalesce(extract(epoch FROM now() - min(due.since)), 0)::float8 FROM (SELECT asked_at AS since FROM scrub_due
        UNION ALL SELECT final_at FROM forgotten WHERE final_at < now()) AS due) AS p,
    (SELECT coalesce(sum(a.last_memory - coalesce(v.done, 0)), 0)::bigint FROM owner AS a
        LEFT JOIN embedding_model AS v ON v.owner = a.owner AND v.digest = model_digest COLLATE "C"
        WHERE coalesce(v.done, 0) < a.last_memory) AS e; END;

REVOKE EXECUTE ON FUNCTION owner_figures(timestamptz, text) FROM PUBLIC;
