"""Changes of memories that are kept: edits, revisions, tags, state, summaries made stale."""
