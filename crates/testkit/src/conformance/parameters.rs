//! Checks of parameters against the capabilities.

use serde_json::json;
use teamster_core::{ErrorCode, ExecuteParams, PermissionMode, SubAgent, SystemPrompt};

use super::arbitrary::takes;
use super::{Failures, Suite, Verdict};

/// A parameter: its name, whether it is supported, and a plain value of it.
type Parameter = (&'static str, bool, ExecuteParams);

/// The parameters without a capability of their names: tested above by themselves, elsewhere, or of the engine.
const OTHERS: &str = "
    prompt session_id working_directory env system_prompt permission permissions mcp_servers
    mcp_delivery mcp_strict extra_args include_native usage_updates keep_background timeouts cancel
";

impl Suite {
    /// Checks that a plain value of every supported parameter reaches the CLI, and that any other is refused
    /// by name before anything starts.
    pub fn parameters(&self) -> Verdict {
        let mut wrong = Failures::of("parameters");
        for (name, can, params) in self.each_parameter() {
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
        let mut all: Vec<Parameter> = Vec::new();
        let mut add = |name, can, set: &dyn Fn(&mut ExecuteParams)| {
            let mut params = self.plain_params("hi");
            set(&mut params);
            all.push((name, can, params));
        };
        let brief = || "Be brief.".to_owned();
        add("prompt", true, &|_| ());
        add("prompt", false, &|p| p.prompt = " \n".into());
        add("session_id", can.resume, &|p| {
            p.session_id = Some(self.plain.session_id.into());
        });
        add("working_directory", true, &|p| {
            p.working_directory = Some("/tmp".into());
        });
        add("system_prompt", append, &|p| {
            p.system_prompt = Some(SystemPrompt::Append(brief()));
        });
        add("system_prompt", replace, &|p| {
            p.system_prompt = Some(SystemPrompt::Replace(brief()));
        });
        add("usage_updates", can.live_usage, &|p| p.usage_updates = true);
        for &mode in PermissionMode::ALL {
            let can = can.permission_modes.contains(&mode);
            add("permission", can, &|p| p.permission = mode);
        }
        // The capabilities that have the names of parameters.
        let named = serde_json::to_value(can).unwrap_or_default();
        for name in ExecuteParams::NAMES {
            match named[camel_case(name)].as_bool() {
                Some(can) => add(name, can, &|p| self.set_plain(name, p)),
                None => assert!(
                    OTHERS.split_ascii_whitespace().any(|other| other == *name),
                    "{name} is not tested: no capability has its name"
                ),
            }
        }
        all
    }

    /// Sets a plain value: one that the CLI has, or the first that fits.
    fn set_plain(&self, name: &str, p: &mut ExecuteParams) {
        let plain = &self.plain;
        match name {
            "fork" => {
                p.fork = true;
                p.session_id = Some(plain.session_id.into());
            }
            "new_session_id" => p.new_session_id = Some(plain.new_session_id.into()),
            "add_dirs" => p.add_dirs = vec!["/tmp".into(), "/var/tmp".into()],
            "skills" => p.skills = vec!["/tmp/skill".into(), "/var/tmp/skill".into()],
            "sub_agents" => {
                p.sub_agents = vec![SubAgent::new("reviewer", "Reviews code", "Be brief.")];
            }
            "hooks" => p.hooks = Some(json!({"PreToolUse": []})),
            "model" => p.model = Some(plain.model.into()),
            "effort" => p.effort = Some(plain.effort.into()),
            "allowed_tools" => p.allowed_tools = vec![plain.tool.into()],
            "max_budget_usd" => p.max_budget_usd = Some(1.5),
            "denied_tools" => p.denied_tools = vec![plain.tool.into()],
            "output_schema" => p.output_schema = Some(json!({"type": "object"})),
            "images" => p.images = vec![plain.image.clone()],
            _ => {
                let values = [json!(true), json!(2), json!("Nightly review")];
                let mut fitting = values.into_iter().filter_map(|value| {
                    let all = json!({"prompt": p.prompt, "env": p.env, camel_case(name): value});
                    serde_json::from_value(all).ok()
                });
                *p = fitting
                    .next()
                    .unwrap_or_else(|| panic!("{name} takes no plain value: add one here"));
            }
        }
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

/// Returns the name of a field in JSON.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, word| {
        let (initial, rest) = word.split_at(1);
        text + &initial.to_ascii_uppercase() + rest
    })
}
