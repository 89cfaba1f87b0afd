//! Shell completion of arguments.
//!
//! The completion script calls this program with [`VARIABLE`] set, so that run, session and agent ids are completed
//! too. On an error there are no candidates, and nothing is printed at the user's prompt.

use std::collections::HashSet;
use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap_complete::CompletionCandidate;
use clap_complete::env::CompleteEnv;
use teamster::agent_loop::supervisor::Config;
use teamster::store::Store;
use teamster_api::history::{RunFilter, RunRecord};
use tokio::time::timeout;

use crate::runtime::wait_only_for;
use crate::words;

/// Set by completion scripts to the name of their shell.
pub(crate) const VARIABLE: &str = "TEAMSTER_COMPLETE";

/// The number of newest runs that candidates come from.
const RUNS: u32 = 50;

/// The time limit for candidates from the store.
const LIMIT: Duration = Duration::from_secs(1);

/// Prints completions of this command line and exits if a shell requested them.
pub(crate) fn answer(command_line: fn() -> clap::Command) {
    if env::var_os(VARIABLE).is_some() {
        CompleteEnv::with_factory(command_line)
            .var(VARIABLE)
            .complete();
    }
}

/// Candidates: ids of runs, newest first.
pub(crate) fn runs() -> Vec<CompletionCandidate> {
    let runs = history().into_iter();
    runs.map(|run| CompletionCandidate::new(&*run.run_id).help(Some(about(&run).into())))
        .collect()
}

/// Candidates: ids of sessions, most recently used first.
pub(crate) fn sessions() -> Vec<CompletionCandidate> {
    distinct(|run| run.session_id.as_deref(), about)
}

/// Candidates: models of earlier runs.
pub(crate) fn models() -> Vec<CompletionCandidate> {
    distinct(|run| run.model.as_deref(), |run| run.provider.clone())
}

/// Returns the models of an agent's newest runs, newest first.
pub(crate) async fn models_of(agent: &str) -> Vec<String> {
    let runs = timeout(LIMIT, newest()).await.ok().flatten();
    let mut models: Vec<String> = Vec::new();
    for run in runs.unwrap_or_default() {
        if let Some(model) = run.model.filter(|_| run.provider == agent)
            && !models.contains(&model)
        {
            models.push(model);
        }
    }
    models
}

/// Returns the models of an agent's newest runs for a prompt, which has a thread of its own.
pub(crate) fn models_at_prompt(agent: &str) -> Vec<String> {
    wait_only_for(async { Ok(models_of(agent).await) }).unwrap_or_default()
}

/// Candidates: what runs of the history have, each once, with the help text of the newest.
fn distinct(
    of: fn(&RunRecord) -> Option<&str>,
    help: fn(&RunRecord) -> String,
) -> Vec<CompletionCandidate> {
    let mut seen = HashSet::new();
    let history = history();
    let found = history.iter().filter_map(|run| Some((of(run)?, run)));
    found
        .filter(|(value, _)| seen.insert(*value))
        .map(|(value, run)| CompletionCandidate::new(value).help(Some(help(run).into())))
        .collect()
}

/// Candidates: ids of the agents in the supervisor's configuration.
pub(crate) fn agents() -> Vec<CompletionCandidate> {
    let file = configuration(env::args_os().collect::<Vec<_>>().iter().map(|it| &**it));
    let Ok(config) = Config::read(&file) else {
        return Vec::new();
    };
    let agents = config.agents.iter();
    agents
        .map(|agent| CompletionCandidate::new(&*agent.id))
        .collect()
}

/// Candidates: providers, for `PROVIDER:MODEL`.
pub(crate) fn fallbacks() -> Vec<CompletionCandidate> {
    let providers = crate::global::providers().all().into_iter();
    providers
        .map(|provider| {
            let info = provider.info();
            CompletionCandidate::new(info.id).help(Some(info.name.into()))
        })
        .collect()
}

/// Returns the path of the supervisor's configuration that the arguments or the environment name.
fn configuration<'a>(mut args: impl Iterator<Item = &'a OsStr>) -> PathBuf {
    let mut file = crate::global::configuration();
    while let Some(arg) = args.next() {
        let named = if arg == "--config" {
            args.next()
        } else {
            let inline = arg.to_str().and_then(|it| it.strip_prefix("--config="));
            inline.map(OsStr::new)
        };
        file = named.map_or(file, PathBuf::from);
    }
    file
}

fn about(run: &RunRecord) -> String {
    let provider = words::one_line(&run.provider);
    let status = words::run_status(run.status);
    format!("{provider}, {status}")
}

/// Reads the newest runs; `None` without a history.
async fn newest() -> Option<Vec<RunRecord>> {
    let store = Store::open_existing(&teamster_host::store_location(None)?)
        .await
        .ok()?;
    store.runs(&RunFilter::default().limit(RUNS)).await.ok()
}

/// Reads the newest runs; empty without a history.
fn history() -> Vec<RunRecord> {
    let found = wait_only_for(async { Ok(timeout(LIMIT, newest()).await?) });
    found.ok().flatten().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use teamster::agent_loop::supervisor::FILE_NAME;

    use super::*;

    #[test]
    fn the_configuration_is_the_named_one() {
        let of = |args: &[&'static str]| configuration(args.iter().map(OsStr::new));
        assert_eq!(of(&["agents", "stop"]), Path::new(FILE_NAME));
        assert_eq!(of(&["agents", "--config", "a.json"]), Path::new("a.json"));
        assert_eq!(of(&["agents", "--config=b.json"]), Path::new("b.json"));
        assert_eq!(of(&["agents", "--config"]), Path::new(FILE_NAME));
    }
}
