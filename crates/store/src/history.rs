//! The history of runs.

mod row;

use sqlx::Row;
use sqlx::any::AnyRow;
use teamster_api::history::{RunCursor, RunFilter, RunRecord, RunState};
use teamster_api::{Outcome, has_words};
use teamster_core::time::millis;

use crate::column::{
    check_given, check_run_id, figure, is_encoded, optional_figure, path_to_column, small, text,
    to_column, word,
};
use crate::process::{Presence, Writer};
use crate::run::{LOST_AFTER, NewRun};
use crate::turns::turn_parts;
use crate::{Store, StoreError};

pub(crate) use row::select_runs;

/// Number of ids that an error lists.
const CANDIDATES: usize = 5;

impl Store {
    /// Records that a run has begun in this process.
    ///
    /// # Errors
    ///
    /// Fails if a run with this id exists, if the id is invalid, or if the database fails.
    pub async fn begin_run(&self, run: &NewRun) -> Result<(), StoreError> {
        check_run_id(&run.run_id)?;
        check_given("provider", &run.provider)?;
        let writer = Writer::this();
        let now = self.now();
        let query = sqlx::query(
            "INSERT INTO teamster_runs (run_id, prompt_hash, provider, model, session_id, \
             conversation, working_directory, status, started_at, attempts, host, process_space, \
             pid, process_start, heartbeat_at, title, prompt) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, 'running', $8, 0, $9, $10, $11, $12, $13, $14, $15) \
             ON CONFLICT (run_id) DO NOTHING",
        )
        .bind(&run.run_id)
        .bind(text(&run.prompt_hash))
        .bind(&run.provider)
        .bind(run.model.as_deref().map(text))
        .bind(run.session_id.as_deref().map(text))
        .bind(run.conversation.as_deref().map(text))
        .bind(run.working_directory.as_deref().map(path_to_column))
        .bind(to_column(run.started_at.unwrap_or(now)))
        .bind(text(&writer.host))
        .bind(writer.space)
        .bind(i64::from(writer.pid))
        .bind(writer.started.map(to_column))
        .bind(to_column(now))
        .bind(run.title.as_deref().map(text))
        .bind(run.prompt.as_deref().map(text));
        match self.execute("write down a run", query).await? {
            0 => Err(StoreError::RunExists {
                run_id: run.run_id.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Records another title of a run, whether it has ended or not. Returns whether the run exists.
    ///
    /// # Errors
    ///
    /// Fails if the database fails.
    pub async fn set_run_title(
        &self,
        run_id: &str,
        title: Option<&str>,
    ) -> Result<bool, StoreError> {
        let query = sqlx::query("UPDATE teamster_runs SET title = $2 WHERE run_id = $1")
            .bind(text(run_id))
            .bind(title.map(text));
        Ok(self.execute("write down a title", query).await? > 0)
    }

    /// Records a heartbeat of a run. Returns whether the run exists and has not ended.
    ///
    /// A run that was recorded as interrupted, for example because its machine slept, is running again.
    pub async fn heartbeat(&self, run_id: &str) -> Result<bool, StoreError> {
        let query = sqlx::query(
            "UPDATE teamster_runs SET heartbeat_at = $2, status = 'running', ended_at = NULL, \
             duration_ms = NULL WHERE run_id = $1 AND status IN ('running', 'interrupted')",
        )
        .bind(text(run_id))
        .bind(to_column(self.now()));
        Ok(self.execute("keep a run alive", query).await? > 0)
    }

    /// Records the session of a run. Returns whether the run exists and has not ended.
    pub async fn set_run_session(
        &self,
        run_id: &str,
        provider: &str,
        session_id: &str,
    ) -> Result<bool, StoreError> {
        let query = sqlx::query(
            "UPDATE teamster_runs SET provider = $2, session_id = $3, \
             model = CASE WHEN provider = $2 THEN model END, heartbeat_at = $4, \
             status = 'running', ended_at = NULL, duration_ms = NULL \
             WHERE run_id = $1 AND status IN ('running', 'interrupted')",
        )
        .bind(text(run_id))
        .bind(text(provider))
        .bind(text(session_id))
        .bind(to_column(self.now()));
        Ok(self.execute("write down a run's session", query).await? > 0)
    }

    /// Records the outcome of a run in one statement.
    ///
    /// # Errors
    ///
    /// Fails if the run was never begun or has ended, or if the database fails.
    pub async fn end_run(&self, outcome: &Outcome) -> Result<(), StoreError> {
        let result = &outcome.result;
        let usage = result.usage.unwrap_or_default();
        let error = outcome.error.as_ref();
        let now = to_column(self.now());
        // The drivers bind a NULL for a DOUBLE PRECISION as one for a REAL, and a statement keeps the types of its
        // first use. So an absent cost is bound as -1.
        let cost = result
            .total_cost_usd
            .filter(|cost| cost.is_finite() && *cost >= 0.0);
        let query = sqlx::query(
            "UPDATE teamster_runs SET status = $2, provider = $3, \
             model = COALESCE($4, CASE WHEN provider = $3 THEN model END), \
             session_id = COALESCE($5, CASE WHEN provider = $3 THEN session_id END), \
             ended_at = $6, heartbeat_at = $6, duration_ms = $7, input_tokens = $8, \
             output_tokens = $9, cache_read_tokens = $10, cache_write_tokens = $11, \
             reasoning_tokens = $12, cost_usd = NULLIF($13, -1.0), num_turns = $14, \
             error_kind = $15, error_message = $16, error_retryable = $17, attempts = $18, \
             attempt_log = $19, error = $20, cost_source = $21, workspace = $22 \
             WHERE run_id = $1 AND status IN ('running', 'interrupted')",
        )
        .bind(text(&outcome.run_id))
        .bind(RunState::from(result.status).as_str())
        .bind(text(&outcome.provider))
        .bind(outcome.model.as_deref().map(text))
        .bind(outcome.session_id.as_deref().map(text))
        .bind(now)
        .bind(to_column(outcome.duration_ms))
        .bind(usage.input_tokens.map(to_column))
        .bind(usage.output_tokens.map(to_column))
        .bind(usage.cache_read_tokens.map(to_column))
        .bind(usage.cache_write_tokens.map(to_column))
        .bind(usage.reasoning_tokens.map(to_column))
        .bind(cost.unwrap_or(-1.0))
        .bind(result.num_turns.map(i64::from))
        .bind(error.and_then(|error| word(&error.kind)))
        .bind(error.map(|error| text(&error.message)))
        .bind(error.map(|error| i64::from(error.retryable)))
        .bind(i64::try_from(outcome.attempts.len()).unwrap_or(i64::MAX))
        .bind(serde_json::to_string(&outcome.attempts).ok())
        .bind(error.and_then(|error| serde_json::to_string(error).ok()))
        .bind(
            cost.and(result.cost_source)
                .and_then(|source| word(&source)),
        )
        .bind((result.workspace.as_ref()).and_then(|it| serde_json::to_string(it).ok()));
        match self.execute("write down the end of a run", query).await? {
            0 => Err(StoreError::NotRunning {
                run_id: outcome.run_id.to_string(),
            }),
            _ => Ok(()),
        }
    }

    /// Returns whether a run with exactly this id exists.
    pub async fn run_exists(&self, run_id: &str) -> Result<bool, StoreError> {
        let query = sqlx::query("SELECT run_id FROM teamster_runs WHERE run_id = $1");
        let rows = self.fetch("look up a run", query.bind(text(run_id)));
        Ok(!rows.await?.is_empty())
    }

    /// Returns a run by its id or by a unique prefix of it. In a turn's id, the part before the number may be
    /// shortened: `0199.2` finds `0199d1c2-….2`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Ambiguous`] if several ids match. Also fails if the database fails.
    pub async fn run(&self, id_or_prefix: &str) -> Result<Option<RunRecord>, StoreError> {
        check_given("run id", id_or_prefix)?;
        let exact = select_runs("WHERE run_id = $1");
        let query = sqlx::query(sqlx::AssertSqlSafe(exact)).bind(id_or_prefix);
        let found = self.fetch_runs(query).await?;
        if let Some(run) = found.into_iter().next() {
            return self.with_prompt(run).await.map(Some);
        }
        let prefixed = select_runs(
            "WHERE substr(run_id, 1, CAST($2 AS INTEGER)) = $1 \
             ORDER BY started_at DESC, run_id DESC LIMIT $3",
        );
        let characters = to_column(id_or_prefix.chars().count() as u64);
        let query = sqlx::query(sqlx::AssertSqlSafe(prefixed))
            .bind(id_or_prefix)
            .bind(characters)
            .bind(to_column(CANDIDATES as u64 + 1));
        let mut found = self.fetch_runs(query).await?;
        if found.is_empty()
            && let Some((session, number)) = turn_parts(id_or_prefix)
        {
            found = self
                .shortened_turns(session, number, CANDIDATES + 1)
                .await?;
        }
        if found.len() > 1 {
            let more = found.len() > CANDIDATES;
            found.truncate(CANDIDATES);
            return Err(StoreError::Ambiguous {
                prefix: id_or_prefix.to_owned(),
                candidates: found.into_iter().map(|run| run.run_id).collect(),
                more,
            });
        }
        match found.pop() {
            Some(run) => self.with_prompt(run).await.map(Some),
            None => Ok(None),
        }
    }

    /// Adds the prompt, which lists of runs do without, to the record of a run.
    async fn with_prompt(&self, mut run: RunRecord) -> Result<RunRecord, StoreError> {
        let doing = "read the prompt of a run";
        let query = sqlx::query("SELECT prompt FROM teamster_runs WHERE run_id = $1");
        let rows = self.fetch(doing, query.bind(text(&run.run_id))).await?;
        if let Some(row) = rows.first() {
            let prompt = row.try_get("prompt");
            run.prompt = prompt.map_err(|error| self.failed(doing, &error))?;
        }
        Ok(run)
    }

    /// Returns runs, newest first, without their prompts.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        let limit = filter.limit.map_or(usize::MAX, |limit| limit as usize);
        let mut runs = Vec::new();
        let mut after = filter.after.clone();
        // The state of a run is known only after it was read, and the databases differ in the case of letters: so a page may
        // lose some of its runs.
        while runs.len() < limit {
            let missing = match filter.text {
                None => (limit - runs.len()).min(500),
                Some(_) => 500,
            };
            let page = self.page(filter, after.as_ref(), missing).await?;
            after = page.last().map(RunRecord::cursor);
            let is_last = page.len() < missing;
            let wanted = |run: &RunRecord| {
                let title = run.title.as_deref().unwrap_or_default();
                filter.status.is_none_or(|status| status == run.status)
                    && (filter.text.as_deref()).is_none_or(|text| has_words(title, text))
            };
            runs.extend(page.into_iter().filter(wanted));
            if is_last {
                break;
            }
        }
        runs.truncate(limit);
        Ok(runs)
    }

    async fn page(
        &self,
        filter: &RunFilter,
        after: Option<&RunCursor>,
        limit: usize,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let sql = select_runs(
            "WHERE provider = COALESCE($1, provider) AND ($2 = '' OR status IN ($2, $3)) \
             AND (CAST($4 AS TEXT) IS NULL OR conversation = $4) \
             AND (CAST($5 AS TEXT) IS NULL OR session_id = $5) \
             AND started_at >= $6 AND started_at < $7 \
             AND (started_at < $8 OR (started_at = $8 AND run_id < $9)) \
             AND (heartbeat_at >= $10 OR process_space = $11) \
             AND (CAST($13 AS TEXT) IS NULL OR working_directory = $13 \
             OR substr(working_directory, 1, length(CAST($14 AS TEXT))) = CAST($14 AS TEXT)) \
             ORDER BY started_at DESC, run_id DESC LIMIT $12",
        );
        // A stored run that is running may read as interrupted. Reading changes no other state.
        let stored = match &filter.status {
            None => ["", ""],
            Some(RunState::Interrupted) => ["running", "interrupted"],
            Some(other) => [other.as_str(); 2],
        };
        // Runs of other machines without a recent heartbeat, or of an earlier boot, cannot be running.
        let (heard_since, space) = match filter.status {
            Some(RunState::Running) => (self.lost_before(), Writer::this().space),
            _ => (0, None),
        };
        let directory = filter.working_directory.as_deref().map(path_to_column);
        let directory = directory.map(|it| it.trim_end_matches('/').to_owned());
        let below = directory.as_deref().map(below);
        let query = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(filter.provider.as_deref().map(text))
            .bind(stored[0])
            .bind(stored[1])
            .bind(filter.conversation.as_deref().map(text))
            .bind(filter.session_id.as_deref().map(text))
            .bind(to_column(filter.since_ms.unwrap_or(0)))
            .bind(to_column(filter.until_ms.unwrap_or(u64::MAX)))
            .bind(after.map_or(i64::MAX, |after| to_column(after.started_at)))
            .bind(after.map_or("", |after| &*after.run_id))
            .bind(to_column(heard_since))
            .bind(space.unwrap_or_default())
            .bind(to_column(limit as u64))
            .bind(directory)
            .bind(below);
        self.fetch_runs(query).await
    }

    /// Returns the time before which a last heartbeat means that a run is lost, if its process cannot be checked.
    fn lost_before(&self) -> u64 {
        self.now().saturating_sub(millis(LOST_AFTER))
    }

    /// Marks all interrupted runs as such, ended at their last heartbeat. Returns their number.
    ///
    /// This is optional, because such runs read as interrupted anyway.
    pub async fn mark_interrupted(&self) -> Result<u64, StoreError> {
        let sql = select_runs("WHERE status = 'running'");
        let runs = self
            .fetch_runs(sqlx::query(sqlx::AssertSqlSafe(sql)))
            .await?;
        let mut marked = 0;
        for run in runs {
            if run.status != RunState::Interrupted {
                continue;
            }
            // Only if there was no heartbeat since the read.
            let query = sqlx::query(
                "UPDATE teamster_runs SET status = 'interrupted', ended_at = heartbeat_at, \
                 duration_ms = heartbeat_at - started_at \
                 WHERE run_id = $1 AND status = 'running' AND heartbeat_at = $2",
            )
            .bind(&run.run_id)
            .bind(to_column(run.heartbeat_at));
            marked += self.execute("mark an interrupted run", query).await?;
        }
        Ok(marked)
    }

    /// Deletes the runs that ended or were interrupted before this time, in milliseconds since the Unix epoch. Returns
    /// their number. Runs with a live process are kept.
    pub async fn forget_runs(&self, before_ms: u64) -> Result<u64, StoreError> {
        self.mark_interrupted().await?;
        self.unmark_living().await?;
        let query =
            sqlx::query("DELETE FROM teamster_runs WHERE ended_at < $1 AND status <> 'running'")
                .bind(to_column(before_ms));
        self.execute("forget old runs", query).await
    }

    /// Deletes the run with this id unless it is running. Returns the number of deleted runs, 0 or 1.
    pub async fn forget_run(&self, id: &str) -> Result<u64, StoreError> {
        self.mark_interrupted().await?;
        self.unmark_living().await?;
        let query =
            sqlx::query("DELETE FROM teamster_runs WHERE run_id = $1 AND status <> 'running'")
                .bind(id);
        self.execute("forget a run", query).await
    }

    /// Marks interrupted runs as running if their process is alive on this machine. A process of another machine, which
    /// cannot check that, may have marked them.
    async fn unmark_living(&self) -> Result<(), StoreError> {
        let here = Writer::this();
        let Some(space) = here.space.clone() else {
            return Ok(());
        };
        let doing = "look for living runs";
        let query = sqlx::query(
            "SELECT DISTINCT pid, process_start FROM teamster_runs \
             WHERE status = 'interrupted' AND process_space = $1",
        );
        for row in self.fetch(doing, query.bind(&*space)).await? {
            let writer = |row: &AnyRow| {
                Ok(Writer {
                    host: String::new(),
                    space: Some(space.clone()),
                    pid: small(figure(row, "pid")?),
                    started: optional_figure(row, "process_start")?,
                })
            };
            let writer = writer(&row).map_err(|error| self.failed(doing, &error))?;
            if writer.presence(&here) != Presence::Running {
                continue;
            }
            let query = sqlx::query(
                "UPDATE teamster_runs SET status = 'running', ended_at = NULL, duration_ms = NULL \
                 WHERE status = 'interrupted' AND process_space = $1 AND pid = $2 \
                 AND process_start = $3",
            )
            .bind(&*space)
            .bind(i64::from(writer.pid))
            .bind(writer.started.map(to_column));
            self.execute(doing, query).await?;
        }
        Ok(())
    }

    pub(crate) async fn fetch_runs(
        &self,
        query: sqlx::query::Query<'_, sqlx::Any, sqlx::any::AnyArguments>,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let doing = "read the history";
        let rows = self.fetch(doing, query).await?;
        let here = Writer::this();
        let now = self.now();
        let runs = rows.iter().map(|row| row::read(row, &here, now));
        let runs = runs.collect::<Result<_, _>>();
        runs.map_err(|error| self.failed(doing, &error))
    }
}

/// Returns with what the columns of all directories below this one begin, which has no `/` at its end.
fn below(directory: &str) -> String {
    // One that is not UTF-8 is percent-encoded.
    let separator = if is_encoded(directory) { "%2F" } else { "/" };
    format!("{directory}{separator}")
}
