//! Content of `meta.json`, without credentials.

use std::env;
use std::ffi::OsStr;
use std::time::Duration;

use serde_json::{Map, Value, json};
use teamster_core::provider::{Exit, MCP_VARIABLES, Secrets, Stdin, Stop, without_credentials};
use teamster_core::time::millis;
use teamster_core::{ExecuteParams, McpServer};

use crate::config::{EnvPolicy, RuntimeConfig};
use crate::launch::Plan;
use crate::os;

/// Placeholder for a credential.
const HIDDEN: &str = "…";
/// Substrings of credential names.
const PARTS: &[&str] = &[
    "AUTH", "BEARER", "COOKIE", "CRED", "HEADER", "JWT", "KEY", "PASS", "SECRET", "TOKEN",
];
/// Words of credential names. As substrings they also occur in other names.
const WORDS: &[&str] = &["DSN", "PAT", "PW", "PWD"];

/// The content of `meta.json`. Its fields are described in `fixtures/README.md`.
pub(super) struct About(Map<String, Value>);

impl About {
    pub(super) fn new(
        cli: &'static str,
        plan: &Plan,
        params: &ExecuteParams,
        config: &RuntimeConfig,
    ) -> Self {
        let mut about = Self(Map::new());
        about.set("cli", cli);
        about.set("version", config.cli_version.clone());
        about.set(
            "recorded_by",
            concat!("teamster ", env!("CARGO_PKG_VERSION")),
        );
        about.launched(plan, params, config);
        for field in ["exit_code", "signal", "spawn_error", "stopped"] {
            about.set(field, Value::Null);
        }
        about.set("duration_ms", 0);
        about
    }

    /// Updates the launch, which may have changed.
    pub(super) fn launched(&mut self, plan: &Plan, params: &ExecuteParams, config: &RuntimeConfig) {
        let shown = Shown::new(plan, params);
        self.set("argv", shown.argv(plan, &params.prompt));
        self.set("env", shown.env(plan, config));
        self.set("prompt", shown.secrets.hide(params.prompt.clone()));
        self.set("stdin", stdin(&plan.launch.stdin, &params.prompt));
        if matches!(plan.launch.stdin, Stdin::Open(_)) {
            self.set("params", by_protocol(params));
        }
        if !plan.servers.is_empty() {
            self.set("mcp_servers", plan.servers.clone());
        }
    }

    pub(super) fn not_started(&mut self, why: &str) {
        self.set("spawn_error", why);
    }

    /// Sets the end of the run. `incomplete` is the reason why not everything was written.
    pub(super) fn ended(
        &mut self,
        exit: &Exit,
        stop: Option<&Stop>,
        lines_before_stop: usize,
        duration: Duration,
        incomplete: Option<&str>,
    ) {
        self.set("exit_code", exit.code);
        self.set("signal", exit.signal.clone());
        self.set(
            "stopped",
            stop.map(|stop| stopped_json(stop, lines_before_stop)),
        );
        self.set("duration_ms", millis(duration));
        if let Some(why) = incomplete {
            self.set("incomplete", why);
        }
    }

    pub(super) fn to_text(&self) -> String {
        // Serializing a `Value` cannot fail.
        let mut text = serde_json::to_string_pretty(&self.0).unwrap_or_default();
        text.push('\n');
        text
    }

    fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.0.insert(field.to_owned(), value.into());
    }
}

fn stdin(stdin: &Stdin, prompt: &str) -> String {
    match stdin {
        Stdin::Bytes(bytes) if bytes.trim_ascii() == prompt.trim().as_bytes() => "prompt".into(),
        Stdin::Bytes(bytes) => format!("{} bytes, and then the end", bytes.len()),
        Stdin::Open(_) => "open".into(),
        _ => "devnull".into(),
    }
}

/// Returns the parameters that are sent by the protocol and are not on the command line.
fn by_protocol(params: &ExecuteParams) -> Value {
    let mut fields = Map::new();
    fields.insert("permission".to_owned(), json!(params.permission));
    let texts = [
        ("session_id", &params.session_id),
        ("model", &params.model),
        ("effort", &params.effort),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            fields.insert(name.to_owned(), json!(value));
        }
    }
    if params.fork {
        fields.insert("fork".to_owned(), json!(true));
    }
    fields.into()
}

/// Returns the reason of the stop and the number of lines before it. A replay decodes later lines differently.
fn stopped_json(stop: &Stop, after_lines: usize) -> Value {
    let (why, error) = match stop {
        Stop::Aborted => ("aborted", None),
        Stop::Timeout(error) => ("timeout", Some(error)),
        Stop::Lingering => ("lingering", None),
        Stop::Failed(error) => ("failed", Some(error)),
        _ => ("stopped", None),
    };
    let mut stopped = json!({"why": why, "after_lines": after_lines});
    if let Some(error) = error {
        stopped["error"] = json!(error);
    }
    stopped
}

/// The parts of a launch that may be shown.
struct Shown {
    secrets: Secrets,
}

impl Shown {
    fn new(plan: &Plan, params: &ExecuteParams) -> Self {
        // A credential in a variable may be repeated elsewhere, like that of a server. It is hidden in the same
        // way.
        let mut variables = McpServer::stdio("", "", [""; 0]);
        for (name, value) in &plan.env.set {
            let name = name.to_string_lossy();
            if is_credential(&name) {
                variables = variables.env(name, value.to_string_lossy());
            }
        }
        let servers = params.mcp_servers.iter().chain([&variables]);
        Self {
            secrets: Secrets::of(servers),
        }
    }

    fn argv(&self, plan: &Plan, prompt: &str) -> Vec<String> {
        let program = plan.program.file_name().unwrap_or_default();
        let mut argv = vec![program.to_string_lossy().into_owned()];
        let mut is_secret = false;
        for argument in &plan.launch.args {
            let argument = argument.to_string_lossy();
            let is_flag = argument.starts_with('-');
            argv.push(if argument == prompt {
                self.secrets.hide(prompt.to_owned())
            } else if is_secret && !is_flag {
                HIDDEN.to_owned()
            } else {
                self.value(&argument)
            });
            // The value of a flag may be the next argument.
            is_secret = is_flag && is_name(&argument) && is_credential(&argument);
        }
        argv
    }

    /// Returns the variables that are set in addition to the inherited ones.
    fn env(&self, plan: &Plan, config: &RuntimeConfig) -> Map<String, Value> {
        let inherited = |name: &OsStr, value: &OsStr| match &config.env_policy {
            EnvPolicy::Inherit => false,
            EnvPolicy::Clean { allow } => {
                allow.iter().any(|it| OsStr::new(it) == name)
                    && env::var_os(name).as_deref() == Some(value)
            }
        };
        let set = plan.env.set.iter();
        set.filter(|(name, value)| *name != os::RUN_ID_VAR && !inherited(name, value))
            .map(|(name, value)| {
                let name = name.to_string_lossy().into_owned();
                let value = if is_credential(&name) {
                    HIDDEN.to_owned()
                } else {
                    self.value(&value.to_string_lossy())
                };
                (name, value.into())
            })
            .collect()
    }

    /// Hides credentials in a text: in the fields of JSON, in the value of a setting or header, in an address.
    fn value(&self, text: &str) -> String {
        if text.starts_with(['{', '['])
            && let Ok(given) = serde_json::from_str::<Value>(text)
        {
            let mut shown = given.clone();
            self.hide_in(&mut shown, false);
            return if shown == given {
                text.to_owned()
            } else {
                shown.to_string()
            };
        }
        for between in ["=", ": "] {
            if let Some((name, value)) = text.split_once(between)
                && is_name(name)
            {
                let value = if is_credential(name) {
                    HIDDEN.to_owned()
                } else {
                    self.value(value)
                };
                return format!("{name}{between}{value}");
            }
        }
        let text = self.secrets.hide(text.to_owned());
        if is_address(&text) {
            without_credentials(&text)
        } else {
            text
        }
    }

    /// Hides credentials in a JSON value, or all of its strings if it belongs to a credential.
    fn hide_in(&self, value: &mut Value, is_secret: bool) {
        match value {
            Value::String(text) if is_secret => HIDDEN.clone_into(text),
            Value::String(text) => *text = self.value(text),
            Value::Array(values) => {
                for value in values {
                    self.hide_in(value, is_secret);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.hide_in(value, is_secret || is_credential(name));
                }
            }
            _ => {}
        }
    }
}

/// Returns whether a name may be that of a credential. In doubt it is.
fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words = || name.split(|c: char| !c.is_ascii_alphanumeric());
    // These have values of a server, possibly in an escaped form that a search for the value does not find.
    name.starts_with(MCP_VARIABLES)
        || PARTS.iter().any(|part| name.contains(part))
        // The shell's working directory.
        || name != "PWD" && words().any(|word| WORDS.contains(&word))
}

/// Returns whether a text can be the name of a flag, setting or header.
fn is_name(text: &str) -> bool {
    let of_name = |c: char| c.is_alphanumeric() || "-_.\"'".contains(c);
    !text.is_empty() && text.chars().all(of_name)
}

fn is_address(text: &str) -> bool {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    !scheme.is_empty()
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests;
