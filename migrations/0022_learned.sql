-- Memories from which rules were learned by vectors: all up to the lowest position, which are row numbers, and
-- those at the others, which brought their learnings with them.
CREATE TABLE learned (position INTEGER PRIMARY KEY) STRICT;
INSERT INTO learned SELECT position FROM ending_progress;
