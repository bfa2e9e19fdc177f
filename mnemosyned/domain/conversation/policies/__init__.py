"""Policies of compaction: what a conversation keeps when it is made shorter."""
