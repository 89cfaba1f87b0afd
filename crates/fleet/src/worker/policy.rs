//! What the owner of a worker lets runs do: a file in TOML.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use teamster_api::{Command, ProblemCode, ServiceError, Spec, Workspace, either};
use teamster_core::{AgentError, PermissionMode};

use super::location::{is_allowed, local_path};
use crate::DEFAULT_POOL;

/// What runs may do on a worker. The file has the same names; what it leaves out has the default.
///
/// ```
/// use teamster_fleet::WorkerPolicy;
///
/// let policy = WorkerPolicy::parse(
///     r#"
///     pools = ["default", "gpu"]
///     slots = 4
///     max_time = "2h"
///     repositories = ["https://github.com/acme/*"]
///     "#,
/// )
/// # .unwrap();
/// # assert_eq!(policy.slots, 4);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WorkerPolicy {
    /// Pools from which it takes runs. Default: [`DEFAULT_POOL`].
    pub pools: Vec<String>,
    /// Number of runs at once. Default: 1.
    pub slots: usize,
    /// The longest time of a run, to which each is limited. Default: no limit.
    #[serde(with = "humantime_serde")]
    pub max_time: Option<Duration>,
    /// The permission modes of runs. Default: all but `bypass`.
    pub permissions: Vec<PermissionMode>,
    /// The agents that runs may have, fallbacks included. Default: all that are ready.
    pub agents: Option<Vec<String>>,
    /// Patterns of the URLs of repositories: `*` is any text, `?` one character, `[…]` one of these, and `{a,b}` either text.
    /// Default: all that are not of this machine; one of
    /// this machine must be in [`directories`](Self::directories).
    #[serde(deserialize_with = "patterns")]
    pub repositories: Option<Vec<String>>,
    /// Directories of this machine that runs may name, with all below them. Default: none.
    pub directories: Vec<PathBuf>,
    /// The file of secrets, which its owner alone may read. Default: none.
    pub secrets: Option<PathBuf>,
    /// Always `None`: limits of memory are refused by name, because no agent can be held to one.
    #[serde(deserialize_with = "no_memory")]
    #[doc(hidden)]
    pub memory: Option<()>,
}

impl Default for WorkerPolicy {
    fn default() -> Self {
        Self {
            pools: vec![DEFAULT_POOL.to_owned()],
            slots: 1,
            max_time: None,
            permissions: vec![
                PermissionMode::Default,
                PermissionMode::ReadOnly,
                PermissionMode::AcceptEdits,
                PermissionMode::Plan,
            ],
            agents: None,
            repositories: None,
            directories: Vec::new(),
            secrets: None,
            memory: None,
        }
    }
}

impl WorkerPolicy {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Fails with the line, if the file has an unknown key or a value that is none.
    pub fn read(file: &Path) -> Result<Self, ServiceError> {
        let about = |problem: &dyn std::fmt::Display| {
            let message = format!("the policy {}: {problem}", file.display());
            ServiceError::new(ProblemCode::InvalidParams, message)
        };
        let text = fs::read_to_string(file).map_err(|error| about(&error))?;
        let mut policy = Self::parse(&text).map_err(|error| about(&error.message))?;
        // Paths are meant from the file on.
        let folder = file.parent().unwrap_or(Path::new("."));
        for path in policy.directories.iter_mut().chain(&mut policy.secrets) {
            *path = folder.join(&*path);
        }
        Ok(policy)
    }

    /// Reads the text of a file. Paths that are not absolute are left as they are.
    ///
    /// # Errors
    ///
    /// Fails as [`read`](Self::read) does.
    pub fn parse(text: &str) -> Result<Self, ServiceError> {
        let policy: Result<Self, _> = toml::from_str(text);
        let policy = policy.map_err(|error| {
            let message = error.to_string().trim_end().to_owned();
            ServiceError::new(ProblemCode::InvalidParams, message)
        })?;
        if policy.slots == 0 {
            let message = "slots: expected at least 1; end the worker to take no runs";
            return Err(ServiceError::new(ProblemCode::InvalidParams, message));
        }
        Ok(policy)
    }

    /// Refuses a run that may not be carried out here. `allows` decides about directories of this machine.
    pub(super) fn check(
        &self,
        spec: &Spec,
        allows: impl Fn(&Path) -> bool,
    ) -> Result<(), ServiceError> {
        let (permission, fallback, location, tools) = either!(spec, spec => {
            (spec.permission, &spec.fallback, spec.location(), &spec.allowed_tools)
        });
        let refuse = |parameter: &str, problem: String| {
            Err(ServiceError::from(AgentError::refused(parameter, problem)))
        };
        self.check_permission(permission)?;
        // A mode that changes nothing is none with a tool that may change something.
        if !tools.is_empty()
            && !self
                .permissions
                .iter()
                .any(|mode| !matches!(mode, PermissionMode::ReadOnly | PermissionMode::Plan))
        {
            return refuse(
                "allowed_tools",
                "the worker allows runs that only read: omit it".to_owned(),
            );
        }
        if let Some(agents) = &self.agents {
            let named = fallback.iter().map(String::as_str);
            for agent in [spec.provider()].into_iter().chain(named) {
                let agent = agent.split(':').next().unwrap_or(agent);
                if !agents.iter().any(|known| known == agent) {
                    return refuse(
                        "provider",
                        format!("the worker does not allow the agent {agent}"),
                    );
                }
            }
        }
        if !is_allowed(location.as_ref(), allows) {
            return refuse(
                "workspace",
                "the worker does not allow this directory".to_owned(),
            );
        }
        if let Some(Workspace::Repository { url, .. }) = &location
            && local_path(url).is_none()
            && !self.allows_repository(url)
        {
            return refuse(
                "workspace",
                "the worker does not allow this repository".to_owned(),
            );
        }
        Ok(())
    }

    /// Refuses a permission mode that runs may not have here.
    pub(super) fn check_permission(&self, mode: PermissionMode) -> Result<(), ServiceError> {
        if mode == PermissionMode::Plan && !self.permissions.contains(&PermissionMode::Default) {
            let problem = "the worker does not allow `default`, in which a plan is carried out once it is allowed: \
                           choose another mode";
            return Err(AgentError::refused("permission", problem).into());
        }
        if self.permissions.contains(&mode) {
            return Ok(());
        }
        let name = name_of(mode);
        let problem = format!("the worker does not allow `{name}`: choose another mode");
        Err(AgentError::refused("permission", problem).into())
    }

    /// Refuses a command to a live run that would change it past the policy.
    pub(super) fn check_command(&self, command: &Command) -> Result<(), ServiceError> {
        match command {
            Command::SetPermission { mode } => self.check_permission(*mode),
            _ => Ok(()),
        }
    }

    fn allows_repository(&self, url: &str) -> bool {
        let Some(patterns) = &self.repositories else {
            return true;
        };
        // What a server may read as a step up would leave the place that a pattern means.
        let steps_up = url.contains("..") || url.contains('%') || url.contains('\\');
        !steps_up && glob_set(patterns).is_ok_and(|set| set.is_match(url))
    }
}

/// Returns the name of a mode, as specs have it.
fn name_of(mode: PermissionMode) -> String {
    let json = serde_json::to_value(mode).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}

fn glob_set(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern)?);
    }
    set.build()
}

fn patterns<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<String>>, D::Error> {
    let patterns = Vec::deserialize(input)?;
    glob_set(&patterns).map_err(D::Error::custom)?;
    Ok(Some(patterns))
}

fn no_memory<'de, D: Deserializer<'de>>(_: D) -> Result<Option<()>, D::Error> {
    Err(D::Error::custom(
        "a worker cannot limit the memory of agents: omit `memory`, and run the worker in a container or with systemd's \
         `MemoryMax`",
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(policy: &str, change: &serde_json::Value) -> Option<String> {
        let policy = WorkerPolicy::parse(policy).unwrap();
        let mut spec = json!({ "provider": "claude", "prompt": "x" });
        spec.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let spec: teamster_api::RunSpec = serde_json::from_value(spec).unwrap();
        let checked = policy.check(&spec.into(), |path| path.starts_with("/ok"));
        checked.err().map(|error| error.message)
    }

    #[test]
    fn a_policy_is_read_by_its_names_and_what_is_wrong_by_its_line() {
        let policy = WorkerPolicy::parse("slots = 2\nmax_time = '90m'").unwrap();
        assert_eq!(policy.max_time, Some(Duration::from_mins(90)));
        assert_eq!(policy.pools, [DEFAULT_POOL]);
        for (text, line, words) in [
            ("slots = 2\nslot = 3", "line 2", "unknown field `slot`"),
            ("\n\nslots = 'x'", "line 3", "expected usize"),
            ("permissions = ['any']", "line 1", "any"),
            ("\nrepositories = ['[']", "line 2", "["),
            ("\nmemory = '4G'", "line 2", "cannot limit the memory"),
            ("slots = 0", "slots", "at least 1"),
        ] {
            let error = WorkerPolicy::parse(text).unwrap_err().message;
            assert!(error.contains(line) && error.contains(words), "{error}");
        }
    }

    #[test]
    fn paths_are_those_of_the_files_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("worker.toml");
        fs::write(&file, "directories = ['a', '/b']\nsecrets = 's.toml'").unwrap();
        let policy = WorkerPolicy::read(&file).unwrap();
        assert_eq!(policy.directories, [folder.path().join("a"), "/b".into()]);
        assert_eq!(policy.secrets, Some(folder.path().join("s.toml")));
        let missing = WorkerPolicy::read(Path::new("/no/worker.toml")).unwrap_err();
        assert!(missing.message.contains("/no/worker.toml"), "{missing}");
    }

    #[test]
    fn forbidden_field_of_a_policy_is_refused_by_its_name() {
        assert_eq!(refused("", &json!({})), None);
        let bypass = json!({ "permission": "bypass" });
        let message = refused("", &bypass).unwrap();
        assert!(message.contains("`bypass`"), "{message}");
        assert_eq!(refused("permissions = ['bypass']", &bypass), None);
        let plan = json!({ "permission": "plan" });
        assert_eq!(refused("", &plan), None);
        let message = refused("permissions = ['read-only', 'plan']", &plan).unwrap();
        assert!(message.contains("`default`"), "{message}");
        let agents = "agents = ['claude']";
        assert_eq!(refused(agents, &json!({})), None);
        let fallback = json!({ "fallback": ["codex:gpt-5"] });
        assert!(refused(agents, &fallback).unwrap().contains("codex"));
        let location = |path: &str| json!({ "workspace": { "kind": "directory", "path": path } });
        assert_eq!(refused("", &location("/ok/a")), None);
        assert!(
            refused("", &location("/etc"))
                .unwrap()
                .contains("directory")
        );
    }

    #[test]
    fn session_is_not_set_to_a_mode_that_the_policy_forbids() {
        let policy = WorkerPolicy::parse("permissions = ['default']").unwrap();
        let set = |mode| policy.check_command(&Command::SetPermission { mode });
        assert!(set(PermissionMode::Default).is_ok());
        let error = set(PermissionMode::Bypass).unwrap_err();
        assert!(error.message.contains("`bypass`"), "{error}");
        assert!(
            policy
                .check_command(&Command::Cancel { kill: true })
                .is_ok()
        );
    }

    #[test]
    fn where_runs_only_read_no_tool_is_allowed_besides() {
        let change = json!({ "permission": "read-only", "allowedTools": ["Bash"] });
        let policy = "permissions = ['read-only']";
        assert!(refused(policy, &change).unwrap().contains("only read"));
        let plans = "permissions = ['read-only', 'plan']";
        assert!(refused(plans, &change).unwrap().contains("only read"));
        assert_eq!(refused("", &change), None);
        assert_eq!(refused(policy, &json!({ "permission": "read-only" })), None);
    }

    #[test]
    fn repositories_are_those_of_the_patterns() {
        let policy = "repositories = ['https://example.com/acme/*']";
        let location = |url: &str| json!({ "workspace": { "kind": "repository", "url": url, "commit": "main" } });
        for (url, allowed) in [
            ("https://example.com/acme/a.git", true),
            ("https://example.com/acme/../x/a.git", false),
            ("https://example.com/acme/%2e%2e/x", false),
            ("https://example.com/other/a.git", false),
            ("https://user@example.com/acme/a.git", false),
            ("git@example.com:acme/a.git", false),
            // Of this machine: its directories decide.
            ("/ok/a", true),
            ("/other/a", false),
        ] {
            assert_eq!(refused(policy, &location(url)).is_none(), allowed, "{url}");
        }
        let any = location("git@example.com:acme/a.git");
        assert_eq!(refused("", &any), None);
    }
}
