//! Limits that accounts have reached, shared by all processes that use the store.

use sqlx::Row;
use teamster_orchestrator::Held;

use crate::column::{figure, text, to_column};
use crate::{Store, StoreError};

impl Store {
    /// Adds a hold on an account, unless one with the same model ends later.
    ///
    /// `account` identifies the account, and is the same in all processes. It must not be a key.
    pub async fn hold(&self, account: &str, held: &Held) -> Result<(), StoreError> {
        let reason = serde_json::to_string(&held.reason).unwrap_or_default();
        let query = sqlx::query(
            "INSERT INTO teamster_holds (account, model, provider, until_ms, reason) \
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (account, model) DO UPDATE SET \
             provider = excluded.provider, until_ms = excluded.until_ms, reason = excluded.reason \
             WHERE teamster_holds.until_ms < excluded.until_ms",
        )
        .bind(text(account))
        .bind(text(held.model.as_deref().unwrap_or_default()))
        .bind(text(&held.provider))
        .bind(to_column(held.until_ms))
        .bind(text(&reason));
        self.execute("hold an account back", query).await.map(drop)
    }

    /// Returns the holds that have not ended, of one account or of all, those that end first in front.
    pub async fn holds(&self, account: Option<&str>) -> Result<Vec<Held>, StoreError> {
        const DOING: &str = "look up the limits of accounts";
        let query = sqlx::query(
            "SELECT model, provider, until_ms, reason FROM teamster_holds \
             WHERE until_ms > $1 AND ($2 = '' OR account = $2) ORDER BY until_ms, provider, model",
        )
        .bind(to_column(self.now()))
        .bind(text(account.unwrap_or_default()));
        let rows = self.fetch(DOING, query).await?;
        let mut holds = Vec::with_capacity(rows.len());
        for row in &rows {
            let read = || -> Result<Option<Held>, sqlx::Error> {
                let model: String = row.try_get("model")?;
                let reason: String = row.try_get("reason")?;
                // One of a newer version that this one cannot read holds nothing back.
                let Ok(reason) = serde_json::from_str(&reason) else {
                    return Ok(None);
                };
                let provider: String = row.try_get("provider")?;
                let mut held = Held::new(provider, figure(row, "until_ms")?, reason);
                held.model = Some(model).filter(|model| !model.is_empty());
                Ok(Some(held))
            };
            holds.extend(read().map_err(|error| self.failed(DOING, &error))?);
        }
        Ok(holds)
    }

    /// Ends the holds on a provider's accounts (`claude`, `claude@work`), or on all. Returns their number.
    pub async fn release_holds(&self, provider: Option<&str>) -> Result<u64, StoreError> {
        let query = sqlx::query(
            "DELETE FROM teamster_holds WHERE until_ms > $1 AND ($2 = '' OR provider = $2 \
             OR substr(provider, 1, length($2) + 1) = $2 || '@')",
        )
        .bind(to_column(self.now()))
        .bind(text(provider.unwrap_or_default()));
        self.execute("release accounts", query).await
    }
}
