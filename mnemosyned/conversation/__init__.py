"""The context window: messages, context, compaction and learnings."""
