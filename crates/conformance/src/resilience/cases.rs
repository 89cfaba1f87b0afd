//! Dispatch of the cases.

use teamster_mock_model::Cli;

use super::case::Case;
use super::checks::Findings;
use super::{abort, failover, limit, repeated, side_effects};
use crate::bench::Bench;

/// Plays a case with a CLI.
pub(crate) async fn play(bench: &Bench, cli: Cli, case: Case) -> anyhow::Result<Findings> {
    match case {
        Case::NoDoubleSideEffects => side_effects::failed_after_a_tool(bench, cli).await,
        Case::KilledInATool => side_effects::killed_in_a_tool(bench, cli).await,
        Case::CutAfterACall => side_effects::cut_after_a_call(bench, cli).await,
        Case::SentAgain => repeated::before_any_tool(bench, cli).await,
        Case::Failover => failover::to_another(bench, cli).await,
        Case::FailoverToEmbedded => failover::to_embedded(bench, cli).await,
        Case::ReadOnlyRetry => repeated::after_reading(bench, cli).await,
        Case::Abort => abort::play(bench, cli).await,
        Case::Limit => limit::play(bench, cli).await,
        Case::SubAgentLimit => limit::with_sub_agent(bench, cli).await,
    }
}
