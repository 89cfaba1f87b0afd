//! A selection of runs.

use std::path::PathBuf;

use serde::de::value::StrDeserializer;
use serde::de::{Error as _, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use teamster_core::AgentError;

use crate::history::RunCursor;
use crate::{RunInfo, RunKind, RunSummary, ViewState, has_words};

/// A selection of runs.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct RunQuery {
    /// Only runs of this kind.
    #[serde(default, deserialize_with = "kind")]
    pub kind: Option<RunKind>,
    /// Only the session with this id, and those that continue its conversation (`continues`).
    pub thread: Option<String>,
    /// Only runs whose first agent is this one, such as `claude`.
    pub agent: Option<String>,
    /// Only runs in this directory or below it, an absolute path.
    pub directory: Option<PathBuf>,
    /// Only runs whose title has all of these words, in any order and case.
    pub text: Option<String>,
    /// Look for `text` in prompts too, where they are kept, which takes longer.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub prompts: bool,
    /// Only runs in this state.
    pub state: Option<ViewState>,
    /// Only runs of this machine of a fleet.
    pub machine: Option<String>,
    /// Only runs that have not ended, each with its live status (`live`).
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub live: bool,
    /// Each run that has not ended has its live status (`live`).
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub live_status: bool,
    /// Only runs that were accepted at this time or later, in milliseconds since the Unix epoch.
    pub since: Option<u64>,
    /// The maximum number of runs in the page. 0 counts as 1, and more than 1000 as 1000. Default: 50.
    pub limit: Option<usize>,
    /// The `next` of the previous page.
    #[schemars(regex(pattern = r"^[0-9]{1,19}\."))]
    pub cursor: Option<String>,
}

/// Reads a kind by its name. A name that only a later version has is an error, where a view has `other`.
fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RunKind>, D::Error> {
    let name = String::deserialize(deserializer)?;
    let named: StrDeserializer<'_, D::Error> = name.as_str().into_deserializer();
    match RunKind::deserialize(named)? {
        RunKind::Other if name != "other" => Err(D::Error::unknown_variant(
            &name,
            &["run", "session", "tick", "other"],
        )),
        kind => Ok(Some(kind)),
    }
}

impl RunQuery {
    /// Returns the number of runs in a page.
    pub fn page_size(&self) -> usize {
        self.limit.unwrap_or(50).clamp(1, 1000)
    }

    /// Returns the position of the last run of the previous page.
    ///
    /// # Errors
    ///
    /// Fails with the parameter `cursor` if it is none.
    pub fn before(&self) -> Result<Option<RunCursor>, AgentError> {
        let read = self.cursor.as_deref().map(str::parse::<RunCursor>);
        read.transpose()
            .map_err(|error| AgentError::refused("cursor", error))
    }

    /// Returns whether the run is of the kind, the thread, the agent, the directory and the time that are wanted, which do not
    /// change.
    pub fn selects(&self, run: &RunInfo) -> bool {
        let thread = run.continues.as_ref().unwrap_or(&run.run_id);
        let is_below = |wanted: &PathBuf| {
            let directory = run.directory.as_ref();
            directory.is_some_and(|directory| directory.starts_with(wanted))
        };
        self.kind.is_none_or(|kind| kind == run.kind)
            && self.since.is_none_or(|since| run.accepted_at_ms >= since)
            && self.thread.as_ref().is_none_or(|wanted| wanted == thread)
            && self
                .agent
                .as_ref()
                .is_none_or(|wanted| *wanted == run.provider)
            && self.directory.as_ref().is_none_or(is_below)
    }

    /// Returns whether the run, which is [selected](Self::selects), is also in the state and on the machine that are wanted.
    pub fn shows(&self, run: &RunSummary) -> bool {
        !(self.live && run.state == ViewState::Ended)
            && self.state.is_none_or(|state| state == run.state)
            && (self.machine.is_none() || self.machine == run.machine)
    }

    /// Returns whether a run with this title has the text that is wanted: in the title, or in its prompt if prompts are
    /// wanted, which is read only then.
    pub fn has_text(&self, title: Option<&str>, prompt: impl FnOnce() -> Option<String>) -> bool {
        let Some(text) = &self.text else {
            return true;
        };
        has_words(title.unwrap_or_default(), text)
            || (self.prompts && prompt().is_some_and(|prompt| has_words(&prompt, text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_selected_by_agent_and_by_directory_tree() {
        let mut run = RunInfo::new("r", "claude");
        run.directory = Some("/srv/site/api".into());
        for (agent, directory, selects) in [
            (Some("claude"), None, true),
            (Some("codex"), None, false),
            (None, Some("/srv/site/api"), true),
            (None, Some("/srv/site/"), true),
            (None, Some("/srv/si"), false),
            (None, Some("/srv/site/api/x"), false),
            (Some("codex"), Some("/work"), false),
        ] {
            let query = RunQuery {
                agent: agent.map(str::to_owned),
                directory: directory.map(PathBuf::from),
                ..RunQuery::default()
            };
            assert_eq!(query.selects(&run), selects, "{agent:?} {directory:?}");
        }
        let query = RunQuery {
            directory: Some("/".into()),
            ..RunQuery::default()
        };
        assert!(!query.selects(&RunInfo::new("r", "claude")));
    }

    #[test]
    fn a_text_is_looked_for_in_prompts_only_on_demand() {
        let title = Some("Fix the login");
        let mut query = RunQuery {
            text: Some("LOGIN".to_owned()),
            ..RunQuery::default()
        };
        assert!(query.has_text(title, || panic!("the title has it")));
        query.text = Some("monday".to_owned());
        assert!(!query.has_text(title, || panic!("prompts are not wanted")));
        query.prompts = true;
        assert!(query.has_text(title, || Some("It fails since Monday".to_owned())));
        assert!(!query.has_text(title, || None));
        assert!(!query.has_text(None, || None));
    }
}
