-- Whether the cost was reported by the agents' CLIs or estimated from their tokens. Earlier versions kept reported costs
-- only.
ALTER TABLE teamster_runs ADD COLUMN cost_source TEXT;
