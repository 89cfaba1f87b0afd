-- The title of a run, where it is kept. An older program need not know it.
ALTER TABLE teamster_runs ADD COLUMN title TEXT;
