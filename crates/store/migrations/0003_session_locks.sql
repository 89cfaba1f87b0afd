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
