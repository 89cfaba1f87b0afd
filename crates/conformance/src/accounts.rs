//! Usage by the CLIs' own files.

use std::path::Path;

use teamster::Usage;
use teamster_mock_model::{Part, Request};
use teamster_usage::{Dimension, Figures, Locations, Scan};

use crate::conversation::Answer;
use crate::played::{Played, SessionUsage};
use crate::scenario::Scenario;

/// Returns the usage of the session of the last run or turn. `None` if the others are not all of it, if one broke off,
/// which may have used more than it knows, or if the CLI's files do not have the session.
pub(crate) fn of_session(
    home: &Path,
    requests: &[Request],
    scenario: &Scenario,
    played: &[Played],
) -> Option<SessionUsage> {
    // A search is a request of the CLI's own to the model: the figures of Claude Code and Gemini CLI have it, and their
    // files do not.
    let mut parts = scenario.script.turns.iter().flat_map(|turn| &turn.parts);
    if parts.any(|part| matches!(part, Part::WebSearch(_))) {
        return None;
    }
    let session = played.last()?.result.session_id.as_deref()?;
    let of_it = |one: &&Played| one.result.session_id.as_deref() == Some(session);
    let mut all = played.iter().filter(of_it).peekable();
    if all.peek()?.session_before.is_some() {
        return None;
    }
    let (runs, least) = all.try_fold((Usage::default(), 0), |(sum, answers), one| {
        let usage = one.result.usage.filter(|_| one.result.is_success())?;
        let of_run = one.requests.iter().filter_map(Answer::of);
        let count = of_run.filter(|answer| answer.counts).count();
        Some((sum.plus(usage), answers + count))
    })?;
    // A request for a title may come after the end of its run.
    let most = requests.iter().filter_map(Answer::of).count();
    let files = of_files(home, session)?;
    Some(SessionUsage {
        files: files.usage,
        runs,
        requests: files.requests,
        answers: least as u64..=most as u64,
    })
}

/// Returns what a session has used by the CLI's files in this home. `None` if they do not have it.
fn of_files(home: &Path, session: &str) -> Option<Figures> {
    let accounts = Scan::new(Locations::of_home(home)).run();
    let sessions = accounts.by(Dimension::Session);
    let mut of_it = sessions
        .iter()
        .filter(|group| group.name.as_deref() == Some(session));
    of_it.next().map(|group| group.figures)
}
