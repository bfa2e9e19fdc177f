-- Why a fallback wrote a summary; NULL where the summariser in force did.

ALTER TABLE consolidation_log ADD COLUMN fallback_reason TEXT;
