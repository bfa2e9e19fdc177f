-- The other memory of an agreement that ended a statement, of the proposal or of the answer: '' for none. An earlier
-- daemon would keep the ending after that memory is forgotten: none may go on beside this.
ALTER TABLE ending ADD agreed_id text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX ending_agreed ON ending (owner, agreed_id);
