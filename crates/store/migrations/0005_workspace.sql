-- What a run has left in its workspace, as JSON.
ALTER TABLE teamster_runs ADD COLUMN workspace TEXT;
