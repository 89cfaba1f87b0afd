//! Parameter validation shared by all providers.

mod mcp;

use serde_json::Value;

use crate::parameters::PARAMETERS;
use crate::{
    AgentError, Capabilities, CliInfo, ErrorCode, ExecuteParams, PermissionMode, SystemPrompt,
    SystemPromptSupport,
};

/// Largest prompt that is an argument of a CLI that also reads its prompt from stdin, in bytes.
pub const LARGEST_PROMPT_ARGUMENT: usize = 10_000;

/// Largest argument, in bytes. Linux limits an argument to 128 KiB (`MAX_ARG_STRLEN`), including the closing NUL.
const LARGEST_ARGUMENT: usize = 128 * 1024 - 1;

impl ExecuteParams {
    /// Checks that this provider supports the parameters ([`Capabilities`]) and that they are valid for any provider.
    /// Checks that are particular to one CLI are in its provider.
    ///
    /// # Errors
    ///
    /// Fails with an [`InvalidParams`](ErrorCode::InvalidParams) error that begins with the parameter's name.
    pub fn check(&self, info: &CliInfo, can: &Capabilities) -> Result<(), AgentError> {
        let invalid = |parameter: &str, problem: &str| Err(AgentError::refused(parameter, problem));
        for parameter in PARAMETERS {
            if (parameter.is_set)(self) && !(parameter.is_supported)(can) {
                return Err(AgentError::refused(
                    parameter.name,
                    format!("{} has no way to honour it; leave it out", info.name),
                ));
            }
        }
        self.check_sub_agents()?;
        self.check_system_prompt(info, can)?;
        self.check_delivery(info, can)?;
        mcp::check(self, info, &can.mcp)?;
        if self.permission == PermissionMode::Plan && can.session_plan {
            let problem = format!(
                "{} has its plan mode in sessions only, and in runs that ask for permission",
                info.name
            );
            return Err(AgentError::refused("permission", problem));
        }
        if !can.permission_modes.contains(&self.permission) {
            return Err(AgentError::refused(
                "permission",
                format!(
                    "{} has no mode {}; it has {}",
                    info.name,
                    self.permission.as_str(),
                    names(can.permission_modes)
                ),
            ));
        }
        if self.permissions.is_some() {
            let problem = format!(
                "a plain run of {} does not ask; use `OneTurn`, or `SessionOptions::permissions` for a session",
                info.name
            );
            return Err(AgentError::refused("permissions", problem));
        }
        if self.prompt.trim().is_empty() && self.images.is_empty() {
            return invalid("prompt", "it is empty");
        }
        if let Some(blank) = PARAMETERS.iter().find(|it| (it.is_blank)(self)) {
            return invalid(blank.name, "it is blank; leave it out for the default");
        }
        if self.fork && self.session_id.is_none() {
            return invalid("fork", "set session_id to the session to fork");
        }
        if self.new_session_id.is_some() && self.session_id.is_some() && !self.fork {
            return invalid(
                "new_session_id",
                "a resumed session keeps its id unless `fork` is set",
            );
        }
        if self.max_turns == Some(0) {
            return invalid("max_turns", "it must be at least 1");
        }
        if self
            .max_budget_usd
            .is_some_and(|usd| !usd.is_finite() || usd <= 0.0)
        {
            return invalid("max_budget_usd", "it must be more than 0");
        }
        if let Some(schema) = &self.output_schema
            && !matches!(schema, Value::Object(_))
        {
            return invalid("output_schema", "it must be a JSON object");
        }
        if let Some(hooks) = &self.hooks
            && !matches!(hooks, Value::Object(_))
        {
            return invalid("hooks", "it must be a JSON object");
        }
        Ok(())
    }

    /// Refuses sub-agents that a CLI would reject, ignore or mix.
    fn check_sub_agents(&self) -> Result<(), AgentError> {
        let agents = &self.sub_agents;
        for (index, agent) in agents.iter().enumerate() {
            let texts = [&agent.name, &agent.description, &agent.prompt];
            let problem = if texts.iter().any(|text| text.trim().is_empty()) {
                "it needs a name, a description and a prompt"
            } else if agents.iter().take(index).any(|it| it.name == agent.name) {
                "the name is used twice"
            } else {
                continue;
            };
            return Err(AgentError::refused_item(
                "sub_agents",
                &*agent.name,
                problem,
            ));
        }
        Ok(())
    }

    fn check_system_prompt(&self, info: &CliInfo, can: &Capabilities) -> Result<(), AgentError> {
        use SystemPromptSupport as Can;
        let what = match (&self.system_prompt, can.system_prompt) {
            (None, _)
            | (Some(SystemPrompt::Append(_)), Can::Append | Can::AppendAndReplace)
            | (Some(SystemPrompt::Replace(_)), Can::Replace | Can::AppendAndReplace) => {
                return Ok(());
            }
            (Some(SystemPrompt::Append(_)), Can::Replace) => {
                "can only replace its own, not append to it"
            }
            (Some(SystemPrompt::Replace(_)), Can::Append) => {
                "can only append to its own, not replace it"
            }
            (Some(_), Can::None) => "has no way to honour it; put it into the prompt",
        };
        Err(AgentError::refused(
            "system_prompt",
            format!("{} {what}", info.name),
        ))
    }

    /// Refuses a prompt that needs stdin if the CLI reads no prompt there.
    fn check_delivery(&self, info: &CliInfo, can: &Capabilities) -> Result<(), AgentError> {
        if can.prompt_on_stdin {
            return Ok(());
        }
        let name = info.name;
        if self.prompt.contains('\0') {
            let problem = format!(
                "it has a NUL byte, which an argument cannot contain, and {name} does not read its prompt from stdin; remove it"
            );
            return Err(AgentError::refused("prompt", problem));
        }
        if self.prompt.len() > LARGEST_ARGUMENT {
            let problem = format!(
                "it has {} bytes, an argument takes at most {LARGEST_ARGUMENT}, and {name} does not read its prompt \
                 from stdin; put the rest in a file and let the agent read it",
                self.prompt.len()
            );
            return Err(AgentError::refused("prompt", problem).code(ErrorCode::PromptTooLarge));
        }
        Ok(())
    }

    /// Returns whether this prompt goes to stdin: because it is larger than [`LARGEST_PROMPT_ARGUMENT`], or it has a NUL
    /// byte, which no argument can have. Always `false` for a CLI that reads no prompt there
    /// ([`Capabilities::prompt_on_stdin`]). `prompt` is the text that the CLI gets, which may be longer than the
    /// caller's.
    ///
    /// # Errors
    ///
    /// Fails if the prompt goes to stdin and has more than `limit` bytes, or if the CLI reads no stdin and the prompt is
    /// too large for an argument. The engine refuses other arguments that are too large.
    pub fn prompt_on_stdin(
        &self,
        prompt: &str,
        info: &CliInfo,
        can: &Capabilities,
        limit: usize,
    ) -> Result<bool, AgentError> {
        let on_stdin = can.prompt_on_stdin
            && (prompt.contains('\0') || prompt.len() > LARGEST_PROMPT_ARGUMENT);
        let limit = match (on_stdin, can.prompt_on_stdin) {
            (true, _) => limit,
            (false, false) => LARGEST_ARGUMENT,
            // A prompt that is too large for an argument goes to stdin.
            (false, true) => usize::MAX,
        };
        if prompt.len() > limit {
            let problem = format!(
                "it has {} bytes and {} takes {limit} at most; put the rest in a file and let the \
                 agent read it",
                prompt.len(),
                info.name
            );
            return Err(AgentError::refused("prompt", problem).code(ErrorCode::PromptTooLarge));
        }
        Ok(on_stdin)
    }
}

fn names(modes: &[PermissionMode]) -> String {
    let names: Vec<_> = modes.iter().map(|mode| mode.as_str()).collect();
    names.join(", ")
}

/// Returns whether `id` has the format of a UUID.
///
/// ```
/// assert!(teamster_core::provider::is_uuid("0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f"));
/// assert!(!teamster_core::provider::is_uuid("latest"));
/// ```
pub fn is_uuid(id: &str) -> bool {
    id.len() == 36
        && id.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    pub(super) static INFO: CliInfo = CliInfo::new("x", "X", "x");

    pub(super) fn refused(can: &Capabilities, change: impl FnOnce(&mut ExecuteParams)) -> String {
        let mut params = ExecuteParams::new("hi");
        change(&mut params);
        let error = params.check(&INFO, can).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        error.message
    }

    #[test]
    fn unsupported_parameters_are_refused_by_name() {
        let none = Capabilities::none();
        assert!(ExecuteParams::new("hi").check(&INFO, &none).is_ok());
        let refused = |change: fn(&mut ExecuteParams)| refused(&none, change);
        assert_eq!(
            refused(|p| p.fork = true),
            "fork: X has no way to honour it; leave it out"
        );
        assert_eq!(
            refused(|p| p.permissions = Some(crate::PermissionPolicy::Allow)),
            "permissions: a plain run of X does not ask; use `OneTurn`, or `SessionOptions::permissions` for a session"
        );
        for (change, name) in [
            (
                (|p| p.session_id = Some("s".into())) as fn(&mut ExecuteParams),
                "session_id",
            ),
            (|p| p.new_session_id = Some("s".into()), "new_session_id"),
            (|p| p.slash_commands = true, "slash_commands"),
            (|p| p.add_dirs = vec!["d".into()], "add_dirs"),
            (|p| p.skills = vec!["s".into()], "skills"),
            (
                |p| p.sub_agents = vec![crate::SubAgent::new("a", "b", "c")],
                "sub_agents",
            ),
            (|p| p.hooks = Some(json!({})), "hooks"),
            (|p| p.title = Some("t".into()), "title"),
            (|p| p.model = Some("m".into()), "model"),
            (|p| p.effort = Some("e".into()), "effort"),
            (|p| p.allowed_tools = vec!["t".into()], "allowed_tools"),
            (|p| p.denied_tools = vec!["t".into()], "denied_tools"),
            (|p| p.max_turns = Some(1), "max_turns"),
            (|p| p.max_budget_usd = Some(1.0), "max_budget_usd"),
            (|p| p.output_schema = Some(json!({})), "output_schema"),
            (|p| p.cli_retries = Some(0), "cli_retries"),
            (|p| p.permission = PermissionMode::Bypass, "permission"),
            (
                |p| p.system_prompt = Some(SystemPrompt::Append("s".into())),
                "system_prompt",
            ),
        ] {
            let message = refused(change);
            assert!(message.starts_with(&format!("{name}: X ")), "{message}");
        }
    }

    #[test]
    fn contradictory_parameters_are_refused_even_if_supported() {
        let mut all = Capabilities::none();
        all.resume = true;
        all.fork = true;
        all.new_session_id = true;
        all.title = true;
        all.max_turns = true;
        all.max_budget_usd = true;
        all.output_schema = true;
        all.hooks = true;
        let refused = |change: fn(&mut ExecuteParams)| refused(&all, change);
        assert_eq!(refused(|p| p.prompt = " \n".into()), "prompt: it is empty");
        assert!(refused(|p| p.session_id = Some(String::new())).starts_with("session_id: "));
        assert!(
            refused(|p| p.new_session_id = Some(String::new())).starts_with("new_session_id: ")
        );
        assert!(refused(|p| p.fork = true).starts_with("fork: set session_id"));
        assert!(
            refused(|p| {
                p.session_id = Some("a".into());
                p.new_session_id = Some("b".into());
            })
            .starts_with("new_session_id: a resumed session")
        );
        assert!(refused(|p| p.title = Some(" ".into())).starts_with("title: "));
        assert!(refused(|p| p.max_turns = Some(0)).starts_with("max_turns: "));
        assert!(refused(|p| p.max_budget_usd = Some(f64::NAN)).starts_with("max_budget_usd: "));
        assert!(refused(|p| p.max_budget_usd = Some(0.0)).starts_with("max_budget_usd: "));
        assert!(refused(|p| p.output_schema = Some(json!([]))).starts_with("output_schema: "));
        assert!(refused(|p| p.hooks = Some(json!([]))).starts_with("hooks: "));
        // A fork is a new session, which may have an id.
        let mut fork = ExecuteParams::new("hi");
        fork.session_id = Some("a".into());
        fork.new_session_id = Some("b".into());
        fork.fork = true;
        assert!(fork.check(&INFO, &all).is_ok());
    }

    #[test]
    fn an_id_in_another_form_is_no_uuid() {
        let id = "0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f";
        assert!(is_uuid(id));
        assert!(!is_uuid(&format!("{id}0")));
        for at in [8, 13, 18, 23] {
            let mut other = id.to_owned();
            other.replace_range(at..=at, "0");
            assert!(!is_uuid(&other), "{other}");
        }
        assert!(!is_uuid(&id.replace('f', "g")));
    }

    #[test]
    fn a_prompt_for_stdin_is_refused_without_stdin() {
        let none = Capabilities::none();
        let refused = |change: fn(&mut ExecuteParams)| {
            let mut params = ExecuteParams::new("hi");
            change(&mut params);
            let mut can = none.clone();
            can.prompt_on_stdin = true;
            assert!(params.check(&INFO, &can).is_ok());
            let error = params.check(&INFO, &none).unwrap_err();
            (error.code, error.parameter().unwrap().to_owned())
        };
        assert_eq!(
            refused(|p| p.prompt = "a\0b".into()),
            (ErrorCode::InvalidParams, "prompt".to_owned())
        );
        assert_eq!(
            refused(|p| p.prompt = "x".repeat(LARGEST_ARGUMENT + 1)),
            (ErrorCode::PromptTooLarge, "prompt".to_owned())
        );
        // Beyond the default limit of an argument, but a valid one.
        let long = ExecuteParams::new("x".repeat(LARGEST_ARGUMENT));
        assert!(long.check(&INFO, &none).is_ok());
    }

    #[test]
    fn sub_agents_that_cannot_be_used_are_refused() {
        let mut can = Capabilities::none();
        can.sub_agents = true;
        let agent = crate::SubAgent::new("a", "b", "c");
        assert_eq!(
            refused(&can, |p| p.sub_agents = vec![agent.clone(), agent]),
            "sub_agents: a: the name is used twice"
        );
        for [name, description, prompt] in [["", "b", "c"], ["a", " ", "c"], ["a", "b", "\n"]] {
            let agent = crate::SubAgent::new(name, description, prompt);
            let message = refused(&can, |p| p.sub_agents = vec![agent]);
            let problem = "it needs a name, a description and a prompt";
            assert!(message.ends_with(problem), "{message}");
        }
    }

    #[test]
    fn wrong_kind_of_system_prompt_is_refused_with_the_right_one() {
        let mut can = Capabilities::none();
        can.system_prompt = SystemPromptSupport::Replace;
        let append =
            |p: &mut ExecuteParams| p.system_prompt = Some(SystemPrompt::Append("s".into()));
        assert_eq!(
            refused(&can, append),
            "system_prompt: X can only replace its own, not append to it"
        );
        can.system_prompt = SystemPromptSupport::Append;
        let replace =
            |p: &mut ExecuteParams| p.system_prompt = Some(SystemPrompt::Replace("s".into()));
        assert_eq!(
            refused(&can, replace),
            "system_prompt: X can only append to its own, not replace it"
        );
    }

    #[test]
    fn a_prompt_that_no_argument_can_hold_goes_to_stdin() {
        let params = ExecuteParams::new("");
        let mut can = Capabilities::none();
        can.prompt_on_stdin = true;
        let on_stdin = |prompt: &str, limit| params.prompt_on_stdin(prompt, &INFO, &can, limit);
        assert!(!on_stdin("short", 10).unwrap());
        assert!(on_stdin("a\0b", 10).unwrap());
        let most = LARGEST_PROMPT_ARGUMENT;
        assert!(!on_stdin(&"x".repeat(most), 10).unwrap());
        assert!(on_stdin(&"x".repeat(most + 1), most + 1).unwrap());
        let error = on_stdin(&"x".repeat(most + 1), most).unwrap_err();
        assert_eq!(error.code, ErrorCode::PromptTooLarge);
    }

    #[test]
    fn no_prompt_goes_to_a_stdin_that_is_not_read() {
        let params = ExecuteParams::new("");
        let can = Capabilities::none();
        let on_stdin = |prompt: &str| params.prompt_on_stdin(prompt, &INFO, &can, 1 << 20);
        assert!(!on_stdin("short").unwrap());
        assert!(!on_stdin(&"x".repeat(20_000)).unwrap());
        // `check` sees the caller's prompt only.
        let error = on_stdin(&"x".repeat(150_000)).unwrap_err();
        assert_eq!(error.code, ErrorCode::PromptTooLarge);
    }

    #[test]
    fn a_plan_mode_of_sessions_is_no_mode_of_a_run() {
        let mut can = Capabilities::none();
        let plan = |p: &mut ExecuteParams| p.permission = PermissionMode::Plan;
        assert_eq!(
            refused(&can, plan),
            "permission: X has no mode plan; it has default"
        );
        can.session_plan = true;
        let message = refused(&can, plan);
        assert!(message.contains("plan mode in sessions only"), "{message}");
        can.session_plan = false;
        can.permission_modes = &[PermissionMode::Default, PermissionMode::Plan];
        let mut params = ExecuteParams::new("hi");
        plan(&mut params);
        assert!(params.check(&INFO, &can).is_ok());
        // A prompt may consist of an image.
        can.images = true;
        params.prompt = String::new();
        params.images = vec![crate::Image::bytes("image/png", [1_u8])];
        assert!(params.check(&INFO, &can).is_ok());
    }
}
