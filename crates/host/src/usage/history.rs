//! Usage from the history of runs.

use jiff::Timestamp;
use teamster_api::history::{RunFilter, RunRecord};
use teamster_core::{CostSource, Usage};
use teamster_store::{Store, StoreError};
use teamster_usage::{PastRun, Provider, Witness};

use super::{Period, UsageError};
use crate::{Warning, close_store, store, store_location, threads};

/// Runs of the history.
#[derive(Default)]
pub(super) struct Runs {
    /// Runs of CLIs with known files.
    pub(super) known: Vec<PastRun>,
    /// The number of runs of other agents with usage.
    pub(super) other_runs: u64,
}

/// Reads the runs that started in this period. There are none if the default store does not exist, or cannot be read,
/// which is a warning.
pub(super) fn runs(
    url: Option<&str>,
    period: Period,
    providers: &[Provider],
    warnings: &mut Vec<Warning>,
) -> Result<Runs, UsageError> {
    let Some(location) = store_location(url) else {
        return Ok(Runs::default());
    };
    let mut filter = RunFilter::default();
    filter.since_ms = period.since.map(milliseconds);
    filter.until_ms = period.until.map(milliseconds);
    let runtime = threads::runtime(2).map_err(UsageError::Runtime)?;
    let runs = runtime.block_on(async {
        let store = Store::open_existing(&location).await?;
        let runs = store.runs(&filter).await;
        close_store(&store).await;
        runs
    });
    match runs {
        Ok(runs) => Ok(of(&runs, providers)),
        Err(StoreError::Missing { .. }) if url.is_none() => Ok(Runs::default()),
        // The default store, which was not named.
        Err(error) if store::named(url).is_none() => {
            let text = format!("ignoring the history of runs, which cannot be read: {error}");
            warnings.push(Warning::new(text));
            Ok(Runs::default())
        }
        Err(error) => Err(UsageError::Store(error)),
    }
}

pub(super) fn of(records: &[RunRecord], providers: &[Provider]) -> Runs {
    let mut runs = Runs::default();
    for record in records {
        let mut other_runs = false;
        for part in parts(record) {
            match part.provider.parse::<Provider>() {
                Ok(provider) if providers.contains(&provider) => {
                    runs.known.extend(past_run(record, &part, provider));
                }
                Ok(_) => {}
                // Other agents are left out when some CLIs are chosen.
                Err(_) => other_runs |= providers.len() == Provider::ALL.len(),
            }
        }
        runs.other_runs += u64::from(other_runs);
    }
    runs
}

/// The usage of one agent in one session of a run.
struct Part<'a> {
    provider: &'a str,
    session: Option<&'a str>,
    account: Option<&'a str>,
    model: Option<&'a str>,
    usage: Option<Usage>,
    cost_usd: Option<f64>,
    turns: Option<u32>,
    /// Time since the start of the run, in milliseconds: the attempts before it.
    after_ms: u64,
}

/// Returns the parts of a run with usage: its attempts, or the whole run if the attempts are unknown.
fn parts(record: &RunRecord) -> Vec<Part<'_>> {
    let mut after_ms: u64 = 0;
    let mut next_after = |duration_ms| {
        let own = after_ms;
        after_ms = after_ms.saturating_add(duration_ms);
        own
    };
    let attempts = record.attempt_log.iter().map(|attempt| Part {
        after_ms: next_after(attempt.duration_ms),
        provider: &attempt.provider,
        session: attempt.session_id.as_deref(),
        account: attempt.account.as_deref(),
        model: attempt.model.as_deref(),
        usage: attempt.usage,
        cost_usd: reported(attempt.cost_usd, attempt.cost_source),
        turns: None,
    });
    let mut parts: Vec<_> = attempts.collect();
    if parts.is_empty() {
        parts.push(Part {
            provider: &record.provider,
            session: record.session_id.as_deref(),
            account: None,
            model: record.model.as_deref(),
            usage: record.usage,
            cost_usd: reported(record.cost_usd, record.cost_source),
            turns: None,
            after_ms: 0,
        });
    }
    parts.retain(|part| {
        part.cost_usd.is_some() || part.usage.is_some_and(|usage| !usage.is_empty())
    });
    // The number of turns is known only for the run as a whole.
    if let [only] = &mut *parts {
        only.turns = record.num_turns;
    }
    parts
}

/// Returns a cost that the agent's CLI has reported. An estimate is made again from the tokens, by the prices of now.
fn reported(cost_usd: Option<f64>, source: Option<CostSource>) -> Option<f64> {
    cost_usd.filter(|_| source != Some(CostSource::Estimated))
}

fn past_run(record: &RunRecord, part: &Part<'_>, provider: Provider) -> Option<PastRun> {
    let at = record.started_at.saturating_add(part.after_ms);
    let at = i64::try_from(at).ok()?;
    let at = Timestamp::from_millisecond(at).ok()?;
    let mut run = PastRun::new(&*record.run_id, Witness::History, provider, at);
    run.session = part.session.map(str::to_owned);
    run.key.clone_from(&record.conversation);
    run.account = part.account.map(str::to_owned);
    run.model = part.model.map(str::to_owned);
    let directory = record.working_directory.as_ref();
    run.directory = directory.map(|directory| directory.to_string_lossy().into_owned());
    run.usage = part.usage;
    run.cost_usd = part.cost_usd;
    let ended = record.ended_at.and_then(|at| i64::try_from(at).ok());
    run.until = ended.and_then(|at| Timestamp::from_millisecond(at).ok());
    run.requests = part.turns.map(u64::from);
    Some(run)
}

fn milliseconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or_default()
}
