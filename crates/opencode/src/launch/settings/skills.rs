//! Skills of a run, beside the user's.

use serde_json::{Value, json};
use teamster_core::{AgentError, ExecuteParams};

use super::super::invalid;
use super::{Settings, object_at};

impl Settings {
    /// Adds the directories in which the CLI searches for `SKILL.md`. The user's and the caller's own stay.
    pub(super) fn skills(&mut self, params: &ExecuteParams) -> Result<(), AgentError> {
        for skill in &params.skills {
            self.must_be_readable("skills")?;
            let Some(path) = skill.to_str().filter(|_| skill.is_absolute()) else {
                return invalid("skills", "OpenCode takes absolute paths in UTF-8");
            };
            // The CLI replaces `{env:NAME}` and `{file:PATH}` in its configuration.
            if path.contains(['{', '}']) {
                return invalid("skills", "a path with { or } would be replaced here");
            }
            let skills = object_at(&mut self.config, "skills");
            let paths = skills.entry("paths").or_insert_with(|| json!([]));
            if !paths.is_array() {
                *paths = json!([]);
            }
            if let Value::Array(paths) = paths {
                paths.push(path.into());
            }
        }
        Ok(())
    }
}
