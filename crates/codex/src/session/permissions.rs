//! Permissions of the agent: sandbox and approval policy, in the terms of `codex app-server`.

use std::path::Path;

use serde_json::{Value, json};
use teamster_core::PermissionMode;

use crate::launch::{Answers, Start};
use crate::wire::Object;

/// The user's settings that determine what the agent may do.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    sandbox_mode: Option<String>,
    default_permissions: Option<String>,
    approval_policy: Option<Value>,
    /// True if the user has decided whether to trust this project.
    known_project: bool,
    writable_roots: Vec<String>,
    network: bool,
    without_variable: bool,
    without_tmp: bool,
}

impl Settings {
    /// Reads the response to `config/read`.
    pub(super) fn of(answer: &Object<'_>, start: &Start) -> Self {
        let Some(config) = answer.object("config") else {
            return Self::default();
        };
        let text = |name| config.text(name).map(std::borrow::Cow::into_owned);
        let workspace = config.object("sandbox_workspace_write");
        let is_set = |name| {
            let workspace = workspace.as_ref();
            workspace.and_then(|workspace| workspace.get(name)) == Some(true)
        };
        Self {
            sandbox_mode: text("sandbox_mode"),
            default_permissions: text("default_permissions"),
            approval_policy: config.value("approval_policy"),
            known_project: config.object("projects").is_some_and(|projects| {
                let known = |path: &Path| {
                    let path = path.to_string_lossy();
                    projects.entries().any(|(name, raw)| {
                        let project = Object::parse(raw);
                        let level = project.and_then(|project| project.text("trust_level"));
                        name == path && level.is_some()
                    })
                };
                let paths = [&start.directory, &start.repository];
                paths.into_iter().flatten().any(|path| known(path))
            }),
            writable_roots: (workspace.as_ref())
                .and_then(|workspace| workspace.get("writable_roots"))
                .unwrap_or_default(),
            network: is_set("network_access"),
            without_variable: is_set("exclude_tmpdir_env_var"),
            without_tmp: is_set("exclude_slash_tmp"),
        }
    }

    /// Returns the sandbox of a session that does not set one. In doubt, it is the narrowest.
    fn sandbox(&self) -> &str {
        if let Some(mode) = &self.sandbox_mode {
            return mode;
        }
        match self.default_permissions.as_deref() {
            Some(":workspace") => WORKSPACE_WRITE,
            Some(":danger-full-access") => FULL_ACCESS,
            None if self.known_project => WORKSPACE_WRITE,
            _ => READ_ONLY,
        }
    }

    /// Returns the directories besides its own in which the agent may write.
    pub(super) fn roots(&self, start: &Start) -> Vec<String> {
        let own = &self.writable_roots;
        let added = start.add_dirs.iter().filter(|dir| !own.contains(dir));
        added.chain(own).cloned().collect()
    }
}

/// The CLI's collaboration mode for plans.
pub(super) const PLAN: &str = "plan";

const READ_ONLY: &str = "read-only";
const WORKSPACE_WRITE: &str = "workspace-write";
const FULL_ACCESS: &str = "danger-full-access";

/// Returns the name of a mode's sandbox. The default is the user's.
pub(super) fn sandbox_name(mode: PermissionMode, settings: &Settings) -> &str {
    match mode {
        PermissionMode::ReadOnly | PermissionMode::Plan => READ_ONLY,
        PermissionMode::AcceptEdits => WORKSPACE_WRITE,
        PermissionMode::Bypass => FULL_ACCESS,
        _ => settings.sandbox(),
    }
}

/// Returns a mode's sandbox as an object, as a turn takes it.
pub(super) fn sandbox_policy(mode: PermissionMode, settings: &Settings, start: &Start) -> Value {
    match sandbox_name(mode, settings) {
        FULL_ACCESS => json!({"type": "dangerFullAccess"}),
        WORKSPACE_WRITE => json!({
            "type": "workspaceWrite",
            "writableRoots": settings.roots(start),
            "networkAccess": settings.network,
            "excludeTmpdirEnvVar": settings.without_variable,
            "excludeSlashTmp": settings.without_tmp,
        }),
        _ => json!({"type": "readOnly", "networkAccess": false}),
    }
}

/// Returns the approval policy, which determines when the CLI asks. `None` to use the user's settings.
pub(super) fn approval_policy(mode: PermissionMode, answers: Answers) -> Option<&'static str> {
    const NEVER: &str = "never";
    match (answers, mode) {
        (Answers::None, _)
        | (_, PermissionMode::Bypass)
        // Even if all requests are allowed, nothing may be changed in these modes.
        | (Answers::Always, PermissionMode::ReadOnly | PermissionMode::Plan) => Some(NEVER),
        (_, PermissionMode::Default) => None,
        _ => Some(ON_REQUEST),
    }
}

/// Returns the approval policy, with the user's settings resolved.
pub(super) fn approval_policy_or_own(
    mode: PermissionMode,
    answers: Answers,
    settings: &Settings,
) -> Value {
    let own = || settings.approval_policy.clone();
    match approval_policy(mode, answers) {
        Some(policy) => policy.into(),
        None => own().unwrap_or_else(|| ON_REQUEST.into()),
    }
}

/// The CLI's own default.
const ON_REQUEST: &str = "on-request";
