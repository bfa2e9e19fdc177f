-- The other memory of an agreement that ended a statement, of the proposal or of the answer: '' for none.
ALTER TABLE ending ADD agreed_id TEXT NOT NULL DEFAULT '';
CREATE INDEX ending_agreed ON ending (agreed_id);
