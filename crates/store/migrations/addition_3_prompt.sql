-- The prompt of a run that no folder of its own keeps. An older program need not know it.
ALTER TABLE teamster_runs ADD COLUMN prompt TEXT;
