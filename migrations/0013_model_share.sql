-- The share of a summary's characters that a model wrote; NULL where none did. Rules wrote the others.
ALTER TABLE consolidation_log ADD COLUMN model_share REAL;
