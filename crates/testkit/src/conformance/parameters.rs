//! Checks of parameters against the capabilities.

use serde_json::json;
use teamster_core::{ErrorCode, ExecuteParams, PermissionMode, SystemPrompt};

use super::arbitrary::takes;
use super::{Failures, Plain, Suite, Verdict};

/// A parameter: its name, whether it is supported, and a function that sets a plain value.
type Parameter = (&'static str, bool, Box<dyn Fn(&mut ExecuteParams, &Plain)>);

const MODES: [PermissionMode; 4] = [
    PermissionMode::Default,
    PermissionMode::ReadOnly,
    PermissionMode::AcceptEdits,
    PermissionMode::Bypass,
];

impl Suite {
    /// Checks that a plain value of every supported parameter reaches the CLI, and that any other is refused
    /// by name before anything starts.
    pub fn parameters(&self) -> Verdict {
        let mut wrong = Failures::of("parameters");
        for (name, can, set) in self.each_parameter() {
            let mut params = self.plain_params("hi");
            set(&mut params, &self.plain);
            match (self.provider.launch(&params), can) {
                (Ok(launch), true) => {
                    wrong.add_if_err(name, self.check_launch(&params, &launch));
                }
                (Err(error), false) => {
                    let by_name = error.parameter() == Some(name);
                    if error.code != ErrorCode::InvalidParams || !by_name {
                        let code = error.code;
                        let what = format!("refused, but not by its name: {code:?} {error}");
                        wrong.add(name, what);
                    }
                }
                (Ok(_), false) => wrong.add(name, "taken, though it cannot be honoured"),
                (Err(error), true) => {
                    wrong.add(name, format!("refused, though it can be honoured: {error}"));
                }
            }
        }
        wrong.add_if_err("extra_args", self.check_extra_args());
        wrong.verdict()
    }

    fn each_parameter(&self) -> Vec<Parameter> {
        let can = self.provider.capabilities();
        let (append, replace) = takes(can.system_prompt);
        let mut all: Vec<Parameter> = vec![
            ("prompt", true, Box::new(|_, _| ())),
            ("prompt", false, Box::new(|p, _| p.prompt = " \n".into())),
            (
                "session_id",
                can.resume,
                Box::new(|p, plain| p.session_id = Some(plain.session_id.into())),
            ),
            (
                "fork",
                can.fork,
                Box::new(move |p, plain| {
                    p.fork = true;
                    p.session_id = Some(plain.session_id.into());
                }),
            ),
            (
                "new_session_id",
                can.new_session_id,
                Box::new(|p, plain| p.new_session_id = Some(plain.new_session_id.into())),
            ),
            (
                "slash_commands",
                can.slash_commands,
                Box::new(|p, _| p.slash_commands = true),
            ),
            (
                "working_directory",
                true,
                Box::new(|p, _| p.working_directory = Some("/tmp".into())),
            ),
            (
                "add_dirs",
                can.add_dirs,
                Box::new(|p, _| p.add_dirs = vec!["/tmp".into(), "/var/tmp".into()]),
            ),
            (
                "system_prompt",
                append,
                Box::new(|p, _| p.system_prompt = Some(SystemPrompt::Append("Be brief.".into()))),
            ),
            (
                "system_prompt",
                replace,
                Box::new(|p, _| p.system_prompt = Some(SystemPrompt::Replace("Be brief.".into()))),
            ),
            (
                "title",
                can.title,
                Box::new(|p, _| p.title = Some("Nightly review".into())),
            ),
            (
                "model",
                can.model,
                Box::new(|p, plain| p.model = Some(plain.model.into())),
            ),
            (
                "effort",
                can.effort,
                Box::new(|p, plain| p.effort = Some(plain.effort.into())),
            ),
            (
                "allowed_tools",
                can.allowed_tools,
                Box::new(|p, plain| p.allowed_tools = vec![plain.tool.into()]),
            ),
            (
                "denied_tools",
                can.denied_tools,
                Box::new(|p, plain| p.denied_tools = vec![plain.tool.into()]),
            ),
            (
                "max_turns",
                can.max_turns,
                Box::new(|p, _| p.max_turns = Some(3)),
            ),
            (
                "max_budget_usd",
                can.max_budget_usd,
                Box::new(|p, _| p.max_budget_usd = Some(1.5)),
            ),
            (
                "output_schema",
                can.output_schema,
                Box::new(|p, _| p.output_schema = Some(json!({"type": "object"}))),
            ),
            (
                "images",
                can.images,
                Box::new(|p, plain| p.images = vec![plain.image.clone()]),
            ),
            (
                "usage_updates",
                can.live_usage,
                Box::new(|p, _| p.usage_updates = true),
            ),
            (
                "cli_retries",
                can.cli_retries,
                Box::new(|p, _| p.cli_retries = Some(2)),
            ),
        ];
        for mode in MODES {
            let can = can.permission_modes.contains(&mode);
            all.push(("permission", can, Box::new(move |p, _| p.permission = mode)));
        }
        all
    }

    /// Checks that extra arguments are passed unchanged and next to each other.
    fn check_extra_args(&self) -> Result<(), String> {
        let extra = ["--some-flag=with a value", "-x"];
        let mut params = self.plain_params("hi");
        params.extra_args = extra.map(str::to_owned).to_vec();
        let launch = self.provider.launch(&params).map_err(|e| e.to_string())?;
        let mut ends = launch.args.split(|arg| arg == "--");
        let options = ends.next().unwrap_or_default();
        if options.windows(2).any(|pair| pair == extra) {
            Ok(())
        } else {
            Err(format!("not among the options: {:?}", launch.args))
        }
    }
}
