-- Memory on PostgreSQL 15 and later. `owner` is the first column of every key: each statement is
-- about one owner, and a cluster keeps all that is an owner's on one node.
-- Numbers (`seq`) are given out under a lock on the owner's row: without gaps within an owner, and
-- in the order of commits. `rewordings` counts changes to words that were there: what a daemon keeps
-- of them from one question to the next is true for one such number. Text is compared by its bytes, as everywhere in the product.

CREATE TABLE owner (
    owner               bigint PRIMARY KEY,
    name                text COLLATE "C" NOT NULL UNIQUE,
    created_at          timestamptz NOT NULL DEFAULT now(),
    last_memory         bigint NOT NULL DEFAULT 0,
    last_log            bigint NOT NULL DEFAULT 0,
    last_record         bigint NOT NULL DEFAULT 0,
    working_count       bigint NOT NULL DEFAULT 0,
    working_characters  bigint NOT NULL DEFAULT 0,
    archive_count       bigint NOT NULL DEFAULT 0,
    archive_characters  bigint NOT NULL DEFAULT 0,
    episodic_count      bigint NOT NULL DEFAULT 0,
    episodic_characters bigint NOT NULL DEFAULT 0,
    rewordings          bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- The words, in whatever tier they are. Sleep leaves these rows alone: it moves a memory from
-- `fresh` to `placed`, so that no index of words is touched.
-- `words` are the index terms of content and role in order, as hashes with the owner in them: the
-- postings of an owner are its own, however many owners share the table. How many terms a text has
-- is kept beside them: what is found is weighed against the average.
CREATE TABLE memory (
    owner        bigint NOT NULL,
    seq          bigint NOT NULL,
    id           text COLLATE "C" NOT NULL,
    session_id   text COLLATE "C" NOT NULL,
    source       text COLLATE "C",
    role         text COLLATE "C" NOT NULL DEFAULT '',
    content      text COLLATE "C" NOT NULL,
    importance   double precision NOT NULL DEFAULT 0.5,
    pinned       boolean NOT NULL DEFAULT false,
    metadata     text COLLATE "C" NOT NULL DEFAULT '{}',
    created_at   timestamptz NOT NULL,
    content_hash bigint NOT NULL,
    words        integer[] NOT NULL,
    grams        integer[],
    gram_count   integer GENERATED ALWAYS AS (cardinality(grams)) STORED,
    UNIQUE (owner, id)
);
CREATE INDEX memory_gram_count ON memory (owner, gram_count) WHERE gram_count IS NOT NULL;
CREATE INDEX memory_said ON memory (owner, session_id, content_hash);
CREATE INDEX memory_pinned ON memory (owner, created_at) WHERE pinned;
CREATE INDEX memory_words ON memory USING gin (words) WITH (gin_pending_list_limit = 256);
CREATE INDEX memory_grams ON memory USING gin (grams) WITH (gin_pending_list_limit = 256)
    WHERE grams IS NOT NULL;
ALTER TABLE memory ADD PRIMARY KEY (owner, seq);

-- Working memory.
CREATE TABLE fresh (
    owner      bigint NOT NULL,
    seq        bigint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (owner, seq),
    FOREIGN KEY (owner, seq) REFERENCES memory (owner, seq) ON DELETE CASCADE
);
CREATE INDEX fresh_created_at ON fresh (owner, created_at, seq);

-- Said of few working memories: until when an undo holds them there, and since when they are known
-- to lie in the future.
CREATE TABLE working_state (
    owner        bigint NOT NULL,
    memory_seq   bigint NOT NULL,
    held_until   timestamptz,
    future_since timestamptz,
    PRIMARY KEY (owner, memory_seq),
    FOREIGN KEY (owner, memory_seq) REFERENCES fresh (owner, seq) ON DELETE CASCADE
);

-- Summaries of every level. `index_terms` are searched and never shown; `words` are the terms of
-- content and index terms, as in `memory`; `repeated` are those that occur more than once, and
-- `repeats` how often. They come first, as a question reads them in every row that has one of its
-- words.
CREATE TABLE episode (
    owner        bigint NOT NULL,
    seq          bigint NOT NULL,
    word_count   integer NOT NULL GENERATED ALWAYS AS (cardinality(array_remove(words, 0))) STORED,
    gram_count   integer GENERATED ALWAYS AS (cardinality(grams)) STORED,
    repeated     integer[] NOT NULL,
    repeats      integer[] NOT NULL,
    id           text COLLATE "C" NOT NULL,
    session_id   text COLLATE "C" NOT NULL,
    source       text COLLATE "C",
    level        smallint NOT NULL DEFAULT 0 CHECK (level BETWEEN 0 AND 3),
    content      text COLLATE "C" NOT NULL,
    index_terms  text COLLATE "C" NOT NULL DEFAULT '',
    item_count   bigint NOT NULL CHECK (item_count > 0),
    covers_from  timestamptz NOT NULL,
    covers_until timestamptz NOT NULL,
    period_from  timestamptz,
    summarizer   text COLLATE "C" NOT NULL,
    parent_id    text COLLATE "C",
    stale        boolean NOT NULL DEFAULT false,
    created_at   timestamptz NOT NULL,
    words        integer[] NOT NULL,
    grams        integer[],
    PRIMARY KEY (owner, seq),
    UNIQUE (owner, id),
    FOREIGN KEY (owner, parent_id) REFERENCES episode (owner, id)
);
CREATE INDEX episode_word_count ON episode (owner, word_count);
CREATE INDEX episode_gram_count ON episode (owner, gram_count) WHERE gram_count IS NOT NULL;
CREATE INDEX episode_parent ON episode (owner, parent_id);
CREATE INDEX episode_covers_from ON episode (owner, covers_from);
CREATE INDEX episode_covers_until ON episode (owner, covers_until, covers_from) WHERE level = 0;
CREATE INDEX episode_session ON episode (owner, session_id, covers_from);
CREATE UNIQUE INDEX episode_period ON episode (owner, level, period_from)
    WHERE period_from IS NOT NULL;
CREATE INDEX episode_unfolded ON episode (owner, level, coalesce(period_from, covers_from))
    WHERE parent_id IS NULL;
CREATE INDEX episode_stale ON episode (owner, level) WHERE stale;
CREATE INDEX episode_words ON episode USING gin (words) WITH (gin_pending_list_limit = 256);
CREATE INDEX episode_grams ON episode USING gin (grams) WITH (gin_pending_list_limit = 256)
    WHERE grams IS NOT NULL;

-- The archive: the episode that each original went into.
CREATE TABLE placed (
    owner       bigint NOT NULL,
    seq         bigint NOT NULL,
    episode_seq bigint NOT NULL,
    PRIMARY KEY (owner, seq),
    FOREIGN KEY (owner, seq) REFERENCES memory (owner, seq) ON DELETE CASCADE,
    FOREIGN KEY (owner, episode_seq) REFERENCES episode (owner, seq)
);
CREATE INDEX placed_episode ON placed (owner, episode_seq, seq);

-- Exact values, word for word, of the originals in the archive.
CREATE TABLE detail (
    owner      bigint NOT NULL,
    memory_seq bigint NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    value      text COLLATE "C" NOT NULL,
    sensitive  boolean NOT NULL,
    FOREIGN KEY (owner, memory_seq) REFERENCES placed (owner, seq) ON DELETE CASCADE
);
CREATE INDEX detail_memory ON detail (owner, memory_seq);

-- One row for each group a cycle tried.
CREATE TABLE consolidation_log (
    owner              bigint NOT NULL,
    id                 bigint NOT NULL,
    session_id         text COLLATE "C" NOT NULL,
    items_consolidated bigint NOT NULL,
    summary_preview    text COLLATE "C" NOT NULL,
    created_at         timestamptz NOT NULL,
    cycle_id           text COLLATE "C" NOT NULL,
    source             text COLLATE "C",
    episode_id         text COLLATE "C",
    "trigger"          text COLLATE "C" NOT NULL,
    summarizer         text COLLATE "C" NOT NULL,
    status             text COLLATE "C" NOT NULL CHECK (status IN ('promoted', 'verbatim', 'failed')),
    error              text COLLATE "C",
    duration_s         double precision NOT NULL,
    chars_before       bigint NOT NULL,
    chars_after        bigint NOT NULL,
    fallback_reason    text COLLATE "C",
    level              smallint NOT NULL DEFAULT 0,
    model_share        double precision,
    undone_at          timestamptz,
    PRIMARY KEY (owner, id)
);
CREATE INDEX consolidation_log_episode ON consolidation_log (owner, episode_id);

-- What holds from now on: instructions and preferences as users said them, lessons of agents.
CREATE TABLE learning (
    owner         bigint NOT NULL,
    seq           bigint NOT NULL,
    id            text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    text          text COLLATE "C" NOT NULL,
    session_id    text COLLATE "C" NOT NULL,
    source        text COLLATE "C",
    memory_id     text COLLATE "C",
    created_at    timestamptz NOT NULL,
    superseded_by text COLLATE "C",
    PRIMARY KEY (owner, seq),
    UNIQUE (owner, id)
);
CREATE INDEX learning_holding ON learning (owner, source, created_at) WHERE superseded_by IS NULL;
CREATE INDEX learning_memory ON learning (owner, memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX learning_superseded_by ON learning (owner, superseded_by)
    WHERE superseded_by IS NOT NULL;

-- What is said of few memories: validity, supersession, pruning. A memory that was superseded stays
-- so when its successor is forgotten: `superseded_by` is NULL then.
CREATE TABLE memory_state (
    owner         bigint NOT NULL,
    memory_seq    bigint NOT NULL,
    valid_until   timestamptz,
    superseded_at timestamptz,
    superseded_by bigint,
    pruned_at     timestamptz,
    PRIMARY KEY (owner, memory_seq),
    FOREIGN KEY (owner, memory_seq) REFERENCES memory (owner, seq) ON DELETE CASCADE
);
CREATE INDEX memory_state_superseded_by ON memory_state (owner, superseded_by)
    WHERE superseded_by IS NOT NULL;

-- Summaries emptied since something they were made of is gone; each is rewritten from the rest.
-- Whoever empties one again gives it a new mark, so that no rewriting from before counts.
CREATE TABLE emptied_episode (
    owner       bigint NOT NULL,
    mark        bigint NOT NULL,
    episode_seq bigint NOT NULL,
    PRIMARY KEY (owner, mark),
    UNIQUE (owner, episode_seq),
    FOREIGN KEY (owner, episode_seq) REFERENCES episode (owner, seq) ON DELETE CASCADE
);

-- Deletions whose words are still in table pages, in the write-ahead log and in statistics.
CREATE TABLE scrub_due (
    owner    bigint NOT NULL,
    asked    bigint NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner, asked)
);

-- What compactions took out of conversations: ids alone, as the words are memories like others.
CREATE TABLE compaction (
    owner      bigint NOT NULL,
    id         text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    source     text COLLATE "C",
    policy     text COLLATE "C" NOT NULL,
    text_hash  bigint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE INDEX compaction_text_hash ON compaction (owner, text_hash);
CREATE TABLE compacted (
    owner      bigint NOT NULL,
    compaction text COLLATE "C" NOT NULL,
    position   bigint NOT NULL,
    part       text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, compaction, position)
);

-- Vectors of the originals. A vector counts for the model that made it and for no other. All memories
-- up to `done` have had their turn with a model; the daemon that is at work on the others has claimed
-- them until a time. Where the extension pgvector is to be had, daemons add a column to `embedding`
-- which the server compares by itself.
CREATE TABLE embedding_model (
    owner         bigint NOT NULL,
    number        bigint NOT NULL,
    name          text COLLATE "C" NOT NULL,
    digest        text COLLATE "C" NOT NULL,
    done          bigint NOT NULL DEFAULT 0,
    claimant      bigint,
    claimed_until timestamptz,
    PRIMARY KEY (owner, number),
    UNIQUE (owner, digest)
);
CREATE TABLE embedding (
    owner      bigint NOT NULL,
    memory_seq bigint NOT NULL,
    model      bigint NOT NULL,
    vector     bytea NOT NULL,
    version    bigint NOT NULL, -- given out under a lock: who has seen all up to one misses none
    PRIMARY KEY (owner, memory_seq),
    FOREIGN KEY (owner, memory_seq) REFERENCES memory (owner, seq) ON DELETE CASCADE,
    FOREIGN KEY (owner, model) REFERENCES embedding_model (owner, number)
);
CREATE INDEX embedding_model_memory ON embedding (owner, model, memory_seq);
CREATE INDEX embedding_version ON embedding (owner, model, version);

-- The clock as it was last believed.
CREATE TABLE clock_seen (
    owner        bigint PRIMARY KEY,
    moment       timestamptz NOT NULL,
    boot         text COLLATE "C" NOT NULL,
    uptime_s     double precision NOT NULL,
    slack_s      double precision NOT NULL,
    slack_from_s double precision NOT NULL
);

-- Tags, and the earlier words of memories that were edited.
CREATE TABLE tag (
    owner      bigint NOT NULL,
    memory_seq bigint NOT NULL,
    name       text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, memory_seq, name),
    FOREIGN KEY (owner, memory_seq) REFERENCES memory (owner, seq) ON DELETE CASCADE
);
CREATE INDEX tag_name ON tag (owner, name, memory_seq);
CREATE TABLE revision (
    owner        bigint NOT NULL,
    seq          bigint NOT NULL,
    memory_seq   bigint NOT NULL,
    changed_at   timestamptz NOT NULL,
    content      text COLLATE "C",
    content_hash bigint NOT NULL,
    fields       text COLLATE "C" NOT NULL DEFAULT '{}',
    PRIMARY KEY (owner, seq),
    FOREIGN KEY (owner, memory_seq) REFERENCES memory (owner, seq) ON DELETE CASCADE
);
CREATE INDEX revision_memory ON revision (owner, memory_seq, seq);

-- Memories that were forgotten with a grace time; `data` is all of a memory, as JSON.
CREATE TABLE forgotten (
    owner    bigint NOT NULL,
    id       text COLLATE "C" NOT NULL,
    call     text COLLATE "C" NOT NULL,
    final_at timestamptz NOT NULL,
    data     text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE INDEX forgotten_call ON forgotten (owner, call);
CREATE INDEX forgotten_final ON forgotten (owner, final_at);

-- Conversations with the agents people use, and what their hooks did.
CREATE TABLE agent_session (
    owner        bigint NOT NULL,
    session_id   text COLLATE "C" NOT NULL,
    client       text COLLATE "C" NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    project      text COLLATE "C" NOT NULL DEFAULT '',
    directory    text COLLATE "C" NOT NULL DEFAULT '',
    transcript   text COLLATE "C" NOT NULL DEFAULT '',
    file         text COLLATE "C" NOT NULL DEFAULT '',
    position     bigint NOT NULL DEFAULT 0,
    started_at   timestamptz NOT NULL,
    seen_at      timestamptz NOT NULL,
    informed_at  timestamptz,
    shown        text COLLATE "C" NOT NULL DEFAULT '[]',
    PRIMARY KEY (owner, session_id)
);
CREATE INDEX agent_session_project ON agent_session (owner, project, seen_at);
CREATE INDEX agent_session_seen ON agent_session (owner, seen_at);
CREATE TABLE agent_activity (
    owner       bigint NOT NULL,
    client      text COLLATE "C" NOT NULL,
    event       text COLLATE "C" NOT NULL,
    calls       bigint NOT NULL,
    stored      bigint NOT NULL,
    characters  bigint NOT NULL,
    failures    bigint NOT NULL,
    total_ms    double precision NOT NULL,
    slowest_ms  double precision NOT NULL,
    called_at   timestamptz NOT NULL,
    stored_at   timestamptz,
    informed_at timestamptz,
    failed_at   timestamptz,
    failure     text COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (owner, client, event)
);
CREATE TABLE agent_forgotten (
    owner bigint NOT NULL,
    id    text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, id)
);

-- Folders that a daemon follows, and their files as they were when they were last read.
CREATE TABLE watched_folder (
    owner    bigint NOT NULL,
    path     text COLLATE "C" NOT NULL,
    added_at timestamptz NOT NULL,
    PRIMARY KEY (owner, path)
);
CREATE TABLE watched_file (
    owner       bigint NOT NULL,
    path        text COLLATE "C" NOT NULL,
    file        text COLLATE "C" NOT NULL,
    size        bigint NOT NULL,
    modified_ns bigint NOT NULL,
    format      text COLLATE "C" NOT NULL DEFAULT '',
    position    text COLLATE "C" NOT NULL DEFAULT '',
    memories    text COLLATE "C" NOT NULL DEFAULT '{}',
    stored      bigint NOT NULL DEFAULT 0,
    read_at     timestamptz NOT NULL,
    PRIMARY KEY (owner, path)
);
CREATE INDEX watched_file_file ON watched_file (owner, file);

-- No sample of anybody's words in the statistics: ANALYZE would keep them after they are forgotten.
DO $$
DECLARE
    kept record;
BEGIN
    FOR kept IN
        SELECT c.table_name, c.column_name FROM information_schema.columns AS c
        JOIN information_schema.tables AS t USING (table_schema, table_name)
        WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE'
        AND (c.data_type = 'text' AND c.table_name != 'owner' OR c.column_name = 'vector')
    LOOP
        EXECUTE format('ALTER TABLE %I ALTER %I SET STATISTICS 0', kept.table_name, kept.column_name);
    END LOOP;
END $$;
