//! Titles of runs, and their specs.

use teamster_api::{KeptSpec, KeptTexts, ProblemCode, ServiceError, check_title};
use tokio::time::sleep;

use super::FleetRuns;
use crate::records::PAUSE;

/// Number of attempts to change a record that others change, too.
const ATTEMPTS: usize = 20;

impl FleetRuns {
    /// Keeps the title in the record, which outlives the machine.
    pub(super) async fn give_title(
        &self,
        run: &str,
        title: Option<String>,
    ) -> Result<(), ServiceError> {
        let title = title.as_deref().map(check_title).transpose()?;
        let key = self.key(run);
        for _ in 0..ATTEMPTS {
            let (seen, mut record) = self.fleet.find(&key).await?;
            if record.title == title {
                return Ok(());
            }
            record.title.clone_from(&title);
            let stored = self.fleet.store(&key, &record, seen.revision).await;
            if stored.is_some() {
                return Ok(());
            }
            if let Some(refusal) = self.fleet.refusal(&key.record()) {
                return Err(refusal);
            }
            sleep(PAUSE).await;
        }
        let message = format!("the record of run {run} is changed by others: try again");
        let mut error = ServiceError::new(ProblemCode::Internal, message);
        error.retryable = true;
        Err(error)
    }

    /// Returns the spec of a run, without values that may be secret.
    pub(super) async fn spec_of(&self, run: &str) -> Result<KeptSpec, ServiceError> {
        let key = self.key(run);
        let (_, record) = self.fleet.find(&key).await?;
        let spec = self.fleet.spec_of(&key, &record).await?;
        Ok(KeptSpec::new(spec, KeptTexts::All))
    }
}
