-- An ending may be of one clause of the older sentence: its start and end there, both 0 for the whole sentence. An
-- earlier daemon would tell the rest of the sentence as ended, too: none may go on beside this.
ALTER TABLE ending ADD older_start integer NOT NULL DEFAULT 0;
ALTER TABLE ending ADD older_end integer NOT NULL DEFAULT 0;
ALTER TABLE ending DROP CONSTRAINT ending_pkey;
ALTER TABLE ending ADD CONSTRAINT ending_pkey
    PRIMARY KEY (owner, older_id, newer_id, older_place, older_start, older_end);
