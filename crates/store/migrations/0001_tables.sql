-- The same text for SQLite and PostgreSQL: TEXT, BIGINT and DOUBLE PRECISION mean the same in both.
-- Times are milliseconds since the Unix epoch. A migration that was released is never changed.

-- '' stands for none, because NULLs are not equal to each other in a key.
CREATE TABLE teamster_sessions (
    channel_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    session_id TEXT NOT NULL,
    model TEXT,
    working_directory TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (channel_id, user_id, thread_id, provider)
);

CREATE INDEX teamster_sessions_expiry ON teamster_sessions (expires_at);

CREATE TABLE teamster_runs (
    run_id TEXT NOT NULL PRIMARY KEY,
    prompt_hash TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT,
    session_id TEXT,
    conversation TEXT,
    working_directory TEXT,
    status TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    duration_ms BIGINT,
    input_tokens BIGINT,
    output_tokens BIGINT,
    cache_read_tokens BIGINT,
    cache_write_tokens BIGINT,
    reasoning_tokens BIGINT,
    cost_usd DOUBLE PRECISION,
    -- Whether the cost was reported by the agents' CLIs or estimated from their tokens.
    cost_source TEXT,
    num_turns BIGINT,
    error_kind TEXT,
    error_message TEXT,
    error_retryable BIGINT,
    -- The whole error as JSON. The columns before it are for queries, and for an error that this version cannot read.
    error TEXT,
    attempts BIGINT NOT NULL,
    attempt_log TEXT,
    title TEXT,
    -- The prompt of a run that no folder of its own keeps.
    prompt TEXT,
    -- What the run has left in its workspace, as JSON.
    workspace TEXT,
    -- Who writes this row, to tell when nobody does any more.
    host TEXT NOT NULL,
    process_space TEXT,
    pid BIGINT NOT NULL,
    process_start BIGINT,
    heartbeat_at BIGINT NOT NULL
);

CREATE INDEX teamster_runs_newest ON teamster_runs (started_at, run_id);

CREATE INDEX teamster_runs_running ON teamster_runs (heartbeat_at) WHERE status = 'running';

-- The right to begin the session of a key. A row is there only until the session is known.
CREATE TABLE teamster_session_locks (
    channel_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    -- Differs for each lock, so that a taken-over lock is not released by its former holder.
    holder TEXT NOT NULL,
    host TEXT NOT NULL,
    process_space TEXT,
    pid BIGINT NOT NULL,
    process_start BIGINT,
    heartbeat_at BIGINT NOT NULL,
    PRIMARY KEY (channel_id, user_id, thread_id, provider)
);

-- Limits that accounts have reached.
CREATE TABLE teamster_holds (
    account TEXT NOT NULL,
    model TEXT NOT NULL,
    provider TEXT NOT NULL,
    until_ms BIGINT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (account, model)
);
