//! The start of a run, and when a run counts as lost.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use teamster_api::given_title;
use teamster_core::ExecuteParams;

/// Interval of a run's heartbeats.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// Age of the last heartbeat after which a run counts as interrupted, if its process cannot be checked: on another
/// machine, or not on Linux. Where its process can be checked, the run counts as running while the process exists. The
/// clocks of machines that share a database must not differ by more than the difference to [`HEARTBEAT`].
pub const LOST_AFTER: Duration = Duration::from_mins(1);

/// Returns a hash that identifies equal prompts: SHA-256 of the text, in hexadecimal. The prompt itself is stored only
/// where that is requested, whole ([`keep_prompts`](crate::Recorder::keep_prompts)) or as a title made of its first line
/// ([`titles_of_prompts`](crate::Recorder::titles_of_prompts)).
///
/// ```
/// let hash = teamster_store::prompt_hash("What does this crate do?");
/// assert_eq!(hash.len(), 64);
/// assert_eq!(hash, teamster_store::prompt_hash("What does this crate do?"));
/// ```
pub fn prompt_hash(prompt: &str) -> String {
    use fmt::Write as _;
    let hash = Sha256::digest(prompt.as_bytes());
    hash.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The record of a run's start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewRun {
    /// Unique id of the run.
    pub run_id: String,
    /// Title of the run, where it has one.
    pub title: Option<String>,
    /// The prompt, where the history is the place that keeps it.
    pub prompt: Option<String>,
    /// Hash of the prompt; see [`prompt_hash`].
    pub prompt_hash: String,
    /// The provider that is tried first.
    pub provider: String,
    /// The requested model.
    pub model: Option<String>,
    /// The session that is resumed.
    pub session_id: Option<String>,
    /// The conversation that it belongs to, as text.
    pub conversation: Option<String>,
    /// Working directory of the agent. Stored as an absolute path.
    pub working_directory: Option<PathBuf>,
    /// Start time, in milliseconds since the Unix epoch. Default: now.
    pub started_at: Option<u64>,
}

impl NewRun {
    /// Creates the record of a run with this prompt, of which only the hash is kept.
    pub fn new(run_id: impl Into<String>, provider: impl Into<String>, prompt: &str) -> Self {
        Self {
            run_id: run_id.into(),
            prompt_hash: prompt_hash(prompt),
            provider: provider.into(),
            ..Self::default()
        }
    }

    /// Creates the record of a run with these parameters, and with the [title](given_title) among them. If no directory is
    /// given, it is that of this process.
    pub fn from_params(
        run_id: impl Into<String>,
        provider: impl Into<String>,
        params: &ExecuteParams,
    ) -> Self {
        let mut run = Self::new(run_id, provider, &params.prompt);
        run.title = given_title(params.title.as_deref());
        run.model.clone_from(&params.model);
        run.session_id.clone_from(&params.session_id);
        let directory = params.working_directory.clone();
        run.working_directory = directory.or_else(|| std::env::current_dir().ok());
        run
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equal_prompts_and_only_they_have_equal_hashes(a in ".{0,40}", b in ".{0,40}") {
            prop_assert_eq!(prompt_hash(&a), prompt_hash(&a.clone()));
            prop_assert_eq!(prompt_hash(&a) == prompt_hash(&b), a == b);
        }
    }

    #[test]
    fn the_title_of_parameters_is_one_line_with_a_limit() {
        let mut params = ExecuteParams::new("p");
        for (title, kept) in [
            (" The\nlogin ", Some("The login".to_owned())),
            (" \n", None),
            (&*"x".repeat(5000), Some(format!("{}…", "x".repeat(199)))),
        ] {
            params.title = Some(title.to_owned());
            assert_eq!(NewRun::from_params("r", "claude", &params).title, kept);
        }
    }

    #[test]
    fn the_hash_is_sha_256() {
        // The example of FIPS 180-2.
        assert_eq!(
            prompt_hash("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
