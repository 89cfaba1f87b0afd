//! Checks of a spec that need nothing but the spec.

use teamster_core::AgentError;
use teamster_core::text::{excerpt, one_line};

use crate::placement::check_secrets;
use crate::{Placement, RunSpec, SessionSpec, Trusted, Workspace, Worktree, session_key_parts};

/// Returns the fields that a run and a session have in common.
macro_rules! common {
    ($spec:expr) => {
        Common {
            provider: &$spec.provider,
            texts: [
                ("title", &$spec.title),
                ("model", &$spec.model),
                ("effort", &$spec.effort),
                ("fallback_model", &$spec.fallback_model),
                ("session_id", &$spec.session_id),
            ],
            lists: [
                ("allowed_tools", &$spec.allowed_tools),
                ("denied_tools", &$spec.denied_tools),
                ("fallback", &$spec.fallback),
                ("accounts", &$spec.accounts),
            ],
            resumes: $spec.session_id.is_some(),
            session_key: $spec.session_key.as_deref(),
            forks: $spec.fork,
            directory: $spec.working_directory.is_some(),
            worktree: $spec.worktree.as_ref(),
            workspace: $spec.workspace.as_ref(),
            system_prompts: (&$spec.system_prompt, &$spec.append_system_prompt),
            max_budget_usd: $spec.max_budget_usd,
            placement: &$spec.placement,
            secrets: &$spec.secrets,
            trusted: &$spec.trusted,
        }
    };
}

impl RunSpec {
    /// Checks what can be checked without the machine that carries it out.
    ///
    /// # Errors
    ///
    /// Fails with the name of a field that is wrong, or that excludes another one.
    pub fn check(&self) -> Result<(), AgentError> {
        let refuse = |name: &str, problem: &str| Err(AgentError::refused(name, problem));
        if self.prompt.trim().is_empty() {
            return refuse("prompt", "expected a text");
        }
        common!(self).check()?;
        if self.max_turns == Some(0) {
            return refuse("max_turns", "expected at least 1; omit it for no limit");
        }
        if (self.output_schema.as_ref()).is_some_and(|schema| !schema.is_object()) {
            return refuse("output_schema", "expected a JSON object");
        }
        if self.new_session && self.session_key.is_none() {
            return refuse("new_session", "requires `session_key`");
        }
        self.check_rerun()?;
        if (self.workspace.as_ref()).is_some_and(Workspace::is_of_sessions) {
            return refuse("workspace", "only a session is continued by another one");
        }
        check_push(self.trusted.push.as_deref(), self.location().as_ref())?;
        if self.trusted.record_to.is_some() && self.allows_several_attempts() {
            return refuse(
                "record_to",
                "a recording has one attempt: omit `retries`, `fallback` and `max_wait_ms`",
            );
        }
        Ok(())
    }
}

impl SessionSpec {
    /// Checks what can be checked without the machine that carries it out.
    ///
    /// # Errors
    ///
    /// Fails with the name of a field that is wrong, or that excludes another one.
    pub fn check(&self) -> Result<(), AgentError> {
        common!(self).check()?;
        let refuse = |name: &str, problem: &str| Err(AgentError::refused(name, problem));
        if is_blank(self.continues.as_ref()) {
            return refuse("continues", NOT_BLANK);
        }
        if self.workspace == Some(Workspace::Continued {}) && self.continues.is_none() {
            return refuse("workspace", "`continued` requires `continues`");
        }
        if self.max_tokens == Some(0) {
            return refuse("max_tokens", "expected at least 1; omit it for no limit");
        }
        if !self.trusted.images.is_empty() {
            return refuse("images", "a session has no prompt that they could go with");
        }
        check_push(self.trusted.push.as_deref(), self.location().as_ref())?;
        if self.trusted.record_to.is_some() && !self.fallback.is_empty() {
            return refuse("record_to", "a recording has one agent: omit `fallback`");
        }
        Ok(())
    }
}

/// Checks the remote that commits are pushed to at the end.
fn check_push(push: Option<&str>, location: Option<&Workspace>) -> Result<(), AgentError> {
    let Some(push) = push else {
        return Ok(());
    };
    let remote = push.split(':').next().unwrap_or_default();
    if remote.trim().is_empty() {
        let problem = "expected the name of a remote, such as `origin`";
        return Err(AgentError::refused("push", problem));
    }
    let problem = match location {
        Some(Workspace::Worktree { .. } | Workspace::Repository { .. }) => return Ok(()),
        Some(Workspace::Upload { .. } | Workspace::Continued {}) => {
            "the machine has no remotes of a repository that was submitted: its branch comes back, so push it from here"
        }
        _ => "only what is committed in a worktree of its own is pushed: set `worktree`",
    };
    Err(AgentError::refused("push", problem))
}

/// The problem of a text without a word.
const NOT_BLANK: &str = "expected a text that is not blank; omit it for the default";

fn is_blank(text: Option<&String>) -> bool {
    text.is_some_and(|text| text.trim().is_empty())
}

/// The problem of a new directory for a session that exists.
const ELSEWHERE: &str =
    "excludes `session_id`: a session can only be resumed in the directory where it began";

/// The fields that a run and a session have in common.
struct Common<'a> {
    provider: &'a str,
    /// Texts that must not be blank, by their names.
    texts: [(&'static str, &'a Option<String>); 5],
    lists: [(&'static str, &'a Vec<String>); 4],
    resumes: bool,
    /// The key of its conversation.
    session_key: Option<&'a str>,
    forks: bool,
    directory: bool,
    worktree: Option<&'a Worktree>,
    workspace: Option<&'a Workspace>,
    /// The replacing and the appended one.
    system_prompts: (&'a Option<String>, &'a Option<String>),
    max_budget_usd: Option<f64>,
    placement: &'a Placement,
    secrets: &'a [String],
    trusted: &'a Trusted,
}

impl Common<'_> {
    fn check(&self) -> Result<(), AgentError> {
        let refuse = |name: &str, problem: &str| Err(AgentError::refused(name, problem));
        if self.provider.trim().is_empty() {
            return refuse("provider", "expected the name of an agent");
        }
        for (name, text) in self.texts {
            if is_blank(text.as_ref()) {
                return refuse(name, NOT_BLANK);
            }
        }
        for (name, texts) in self.lists {
            if texts.iter().any(|text| is_blank(Some(text))) {
                return refuse(name, "expected texts that are not blank");
            }
        }
        if let Some(workspace) = self.workspace {
            if self.directory {
                return refuse("workspace", "excludes `working_directory`");
            }
            if Worktree::is_requested(self.worktree) {
                return refuse("workspace", "excludes `worktree`");
            }
            if self.resumes && workspace.is_made() && *workspace != (Workspace::Continued {}) {
                return refuse("workspace", ELSEWHERE);
            }
            workspace.check()?;
        }
        if let Some(Worktree::Branch(branch)) = self.worktree
            && branch.is_empty()
        {
            return refuse("worktree", "expected the name of a branch, or `true`");
        }
        if self.forks && !self.resumes {
            return refuse("fork", "requires `session_id`");
        }
        if self.resumes && Worktree::is_requested(self.worktree) {
            return refuse("worktree", ELSEWHERE);
        }
        if let Some(key) = self.session_key {
            if let Err(problem) = session_key_parts(key) {
                let key = excerpt(&one_line(key), 100);
                return refuse("session_key", &format!("\"{key}\": {problem}"));
            }
            if self.resumes || self.trusted.new_session_id.is_some() {
                return refuse(
                    "session_key",
                    "the conversation has its own session: omit `session_id` and `new_session_id`",
                );
            }
            if self.workspace.is_some_and(Workspace::is_of_one_run) {
                return refuse(
                    "workspace",
                    "each run gets a new one, and the session of a conversation can only be resumed in the \
                     directory where it began: name one with `working_directory`, or use `worktree`",
                );
            }
        }
        if let (Some(_), Some(_)) = self.system_prompts {
            return refuse("system_prompt", "excludes `append_system_prompt`");
        }
        if (self.max_budget_usd).is_some_and(|usd| !usd.is_finite() || usd <= 0.0) {
            return refuse("max_budget_usd", "expected an amount above 0");
        }
        self.placement.check()?;
        check_secrets(self.secrets)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    fn refused(change: impl Fn(&mut RunSpec)) -> Option<String> {
        let mut spec = RunSpec::new("claude", "hi");
        change(&mut spec);
        spec.check().err()?.parameter().map(str::to_owned)
    }

    #[test]
    fn a_wrong_field_is_named() {
        assert_eq!(refused(|_| {}), None);
        let named = |change: fn(&mut RunSpec), name: &str| {
            assert_eq!(refused(change).as_deref(), Some(name));
        };
        named(|it| it.provider = " ".into(), "provider");
        named(|it| it.prompt = "\n".into(), "prompt");
        named(|it| it.model = Some(String::new()), "model");
        named(|it| it.denied_tools = vec![" ".into()], "denied_tools");
        named(|it| it.max_turns = Some(0), "max_turns");
        named(|it| it.session_key = Some("a:b:c:d".into()), "session_key");
        named(|it| it.max_budget_usd = Some(0.0), "max_budget_usd");
        named(|it| it.max_budget_usd = Some(f64::NAN), "max_budget_usd");
        named(|it| it.output_schema = Some(json!([])), "output_schema");
        named(|it| it.fork = true, "fork");
        named(|it| it.new_session = true, "new_session");
    }

    #[test]
    fn a_session_is_pushed_from_a_worktree_only() {
        let mut session = SessionSpec::new("claude");
        session.trusted.push = Some("origin".into());
        let refused = session.check().unwrap_err();
        assert_eq!(refused.parameter(), Some("push"));
        session.worktree = Some(Worktree::Switch(true));
        assert_eq!(session.check().map_err(|error| error.message), Ok(()));
        session.worktree = None;
        let commit = "0123456789012345678901234567890123456789".to_owned();
        session.workspace = Some(Workspace::Repository {
            url: "https://example.com/a.git".into(),
            commit: commit.clone(),
            subdirectory: None,
        });
        assert_eq!(session.check().map_err(|error| error.message), Ok(()));
        // The copy of another machine's repository has no remotes.
        session.workspace = Some(Workspace::Upload {
            repository: commit.clone(),
            commit,
            head: None,
            included: None,
            name: None,
            subdirectory: None,
            submitted_from: None,
            stays: false,
        });
        let refused = session.check().unwrap_err();
        assert_eq!(refused.parameter(), Some("push"));
        assert!(refused.message.contains("comes back"), "{refused}");
    }

    #[test]
    fn only_a_session_continues_in_the_workspace_of_another_one() {
        let mut session = SessionSpec::new("claude");
        session.workspace = Some(Workspace::Continued {});
        session.session_id = Some("s".into());
        let refused = session.check().unwrap_err();
        assert_eq!(refused.parameter(), Some("workspace"));
        session.continues = Some("first".into());
        assert_eq!(session.check().map_err(|error| error.message), Ok(()));
        let mut run = RunSpec::new("claude", "hi");
        run.workspace = Some(Workspace::Continued {});
        let refused = run.check().unwrap_err();
        assert_eq!(refused.parameter(), Some("workspace"));
    }

    #[test]
    fn a_session_without_tokens_is_refused() {
        let mut session = SessionSpec::new("claude");
        assert_eq!(session.check().map_err(|error| error.message), Ok(()));
        session.max_tokens = Some(0);
        let refused = session.check().unwrap_err();
        assert_eq!(refused.parameter(), Some("max_tokens"));
    }

    #[test]
    fn a_session_of_a_conversation_names_no_other_session() {
        let mut session = SessionSpec::new("claude");
        session.session_key = Some("slack:U42".into());
        assert_eq!(session.check().map_err(|error| error.message), Ok(()));
        session.session_id = Some("s".into());
        let refused = session.check().unwrap_err();
        assert_eq!(refused.parameter(), Some("session_key"));
        session.session_key = None;
        session.continues = Some(" ".into());
        let refused = session.check().unwrap_err();
        assert_eq!(refused.parameter(), Some("continues"));
    }

    #[test]
    fn fields_that_exclude_each_other_are_refused() {
        let keyed = |change: fn(&mut RunSpec)| {
            refused(move |it| {
                it.session_key = Some("slack:U42".into());
                change(it);
            })
        };
        assert_eq!(keyed(|it| it.new_session = true), None);
        let switch = |it: &mut RunSpec| it.worktree = Some(Worktree::Switch(true));
        assert_eq!(keyed(switch), None);
        let resumed_elsewhere = |it: &mut RunSpec| {
            it.session_id = Some("s".into());
            it.workspace = Some(Workspace::Empty {});
        };
        assert_eq!(refused(resumed_elsewhere).as_deref(), Some("workspace"));
        assert_eq!(
            keyed(|it| it.workspace = Some(Workspace::Empty {})).as_deref(),
            Some("workspace")
        );
        let two_locations = |it: &mut RunSpec| {
            it.workspace = Some(Workspace::Empty {});
            it.working_directory = Some("/a".into());
        };
        assert_eq!(refused(two_locations).as_deref(), Some("workspace"));
        let two_worktrees = |it: &mut RunSpec| {
            it.workspace = Some(Workspace::Empty {});
            it.worktree = Some(Worktree::Switch(true));
        };
        assert_eq!(refused(two_worktrees).as_deref(), Some("workspace"));
        let resumed = |it: &mut RunSpec| it.session_id = Some("s".into());
        assert_eq!(keyed(resumed).as_deref(), Some("session_key"));
        let both = |it: &mut RunSpec| {
            it.system_prompt = Some("a".into());
            it.append_system_prompt = Some("b".into());
        };
        assert_eq!(refused(both).as_deref(), Some("system_prompt"));
        let recorded = |it: &mut RunSpec| {
            it.trusted.record_to = Some(PathBuf::from("r"));
            it.retries = 1;
        };
        assert_eq!(refused(recorded).as_deref(), Some("record_to"));
    }
}
