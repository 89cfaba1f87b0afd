//! Turns of detached sessions, which are runs whose ids are that of the session and a number.

use crate::column::{text, to_column};
use crate::history::select_runs;
use crate::{Store, StoreError};
use teamster_api::history::RunRecord;

impl Store {
    /// Returns the turns of a detached session, newest first.
    ///
    /// # Errors
    ///
    /// Fails if the database fails.
    pub async fn turns(&self, session: &str) -> Result<Vec<RunRecord>, StoreError> {
        let sql = select_runs(
            "WHERE substr(run_id, 1, CAST($2 AS INTEGER)) = $1 \
             ORDER BY started_at DESC, run_id DESC",
        );
        let prefix = text(&format!("{session}."));
        let characters = to_column(prefix.chars().count() as u64);
        let query = sqlx::query(sqlx::AssertSqlSafe(sql));
        let mut found = self
            .fetch_runs(query.bind(&prefix).bind(characters))
            .await?;
        found.retain(|run| turn_parts(&run.run_id).is_some_and(|(of, _)| of == session));
        Ok(found)
    }

    /// Returns turns with this number whose session's id begins with `session`, newest first.
    pub(crate) async fn shortened_turns(
        &self,
        session: &str,
        number: &str,
        limit: usize,
    ) -> Result<Vec<RunRecord>, StoreError> {
        // Not by `LIKE`, which ignores case in SQLite. The two parts must not overlap: `a.1.1` is not `a.1`.
        let sql = select_runs(
            "WHERE substr(run_id, 1, CAST($2 AS INTEGER)) = $1 \
             AND substr(run_id, length(run_id) - CAST($4 AS INTEGER) + 1) = $3 \
             AND length(run_id) >= CAST($2 AS INTEGER) + CAST($4 AS INTEGER) \
             ORDER BY started_at DESC, run_id DESC LIMIT $5",
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(session)
            .bind(to_column(session.chars().count() as u64))
            .bind(number)
            .bind(to_column(number.len() as u64))
            .bind(to_column(limit as u64));
        self.fetch_runs(query).await
    }
}

/// Splits a turn's id into that of its session, which may be shortened, and `.` with the number. Returns `None` for other
/// ids.
pub(crate) fn turn_parts(id: &str) -> Option<(&str, &str)> {
    let (session, number) = id.split_at(id.rfind('.')?);
    let digits = &number[1..];
    let is_turn = !session.is_empty()
        && !digits.is_empty()
        && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_turn.then_some((session, number))
}
