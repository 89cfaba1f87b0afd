-- The whole error of a run as JSON. The columns beside it are for queries, and for runs that an earlier
-- version wrote down.
ALTER TABLE teamster_runs ADD COLUMN error TEXT;
