"""What is near in meaning: vectors of memories, indexed and compared."""
