//! Waits for runs by their logs.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_core::Stream;
use serde_json::{Value, json};
use teamster_api::LogStream;
use tokio::time::{Instant, timeout_at};

use super::AgentRuns;

/// The default timeout of `wait`.
const WAIT: Duration = Duration::from_secs(45);

impl AgentRuns {
    /// Waits until one of the runs has ended or needs an answer.
    pub(crate) async fn wait(
        &self,
        run_ids: &[String],
        timeout_ms: Option<u64>,
    ) -> Result<Value, String> {
        if run_ids.is_empty() {
            return Err("runIds: name at least one run".to_owned());
        }
        for run_id in run_ids {
            self.find(run_id)?;
        }
        let until = Instant::now() + timeout_ms.map_or(WAIT, Duration::from_millis);
        let is_over = async {
            let (mut reports, mut logs) = self.reports_and_logs(run_ids).await?;
            while !is_any_over(&reports) {
                next_of_interest(&mut logs).await;
                reports = self.reports(run_ids).await?;
            }
            Ok::<_, String>(reports)
        };
        let reports = match timeout_at(until, is_over).await {
            Ok(reports) => reports?,
            Err(_) => self.reports(run_ids).await?,
        };
        Ok(json!({"runs": reports}))
    }

    /// Returns the reports, and the logs of the runs after what is in these.
    async fn reports_and_logs(
        &self,
        run_ids: &[String],
    ) -> Result<(Vec<Value>, Vec<LogStream>), String> {
        let mut reports = Vec::new();
        let mut logs = Vec::new();
        for run_id in run_ids {
            let view = self.view(run_id).await?;
            logs.push(self.find(run_id)?.follow(view.summary.seq));
            reports.push(self.report_of(run_id, view));
        }
        Ok((reports, logs))
    }

    async fn reports(&self, run_ids: &[String]) -> Result<Vec<Value>, String> {
        let mut reports = Vec::new();
        for run_id in run_ids {
            reports.push(self.report(run_id).await?);
        }
        Ok(reports)
    }
}

fn is_any_over(reports: &[Value]) -> bool {
    reports.iter().any(|it| it["state"] != "running")
}

/// Waits for an entry after which a run may have ended or wait for an answer. A log that has ended or cannot be followed
/// is removed.
async fn next_of_interest(logs: &mut Vec<LogStream>) {
    poll_fn(|cx| {
        for index in 0..logs.len() {
            while let Poll::Ready(line) = Pin::new(&mut logs[index]).poll_next(cx) {
                let Some(Ok(line)) = line else {
                    drop(logs.remove(index));
                    return Poll::Ready(());
                };
                if line.is_end() || line.type_name() == "permission" {
                    return Poll::Ready(());
                }
            }
        }
        Poll::Pending
    })
    .await;
}
