-- Limits that accounts have reached. An older program need not know them: it asks the service itself.
CREATE TABLE IF NOT EXISTS teamster_holds (
    account TEXT NOT NULL,
    model TEXT NOT NULL,
    provider TEXT NOT NULL,
    until_ms BIGINT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (account, model)
);
