//! One server of a configuration.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use jsonc_parser::ast::Object;
use teamster_core::time::millis;
use teamster_core::{McpServer, McpTransport};

use super::expand::expand;
use super::fields::Fields;

/// Error in the definition of a server.
#[derive(Debug)]
pub(super) enum Problem {
    /// A variable is not set. The other servers can still be used.
    Unset(String),
    /// There is neither a command nor a URL, so it may not be a server.
    Unreachable,
    Other(String),
}

impl Problem {
    /// Adds the field to the message.
    fn at(self, field: &str) -> Self {
        match self {
            Self::Unset(what) => Self::Unset(format!("{field}: {what}")),
            Self::Other(what) => Self::Other(format!("{field}: {what}")),
            Self::Unreachable => Self::Unreachable,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset(what) | Self::Other(what) => f.write_str(what),
            Self::Unreachable => f.write_str("it has neither command nor url"),
        }
    }
}

impl From<String> for Problem {
    fn from(what: String) -> Self {
        Self::Other(what)
    }
}

impl From<&str> for Problem {
    fn from(what: &str) -> Self {
        Self::Other(what.to_owned())
    }
}

/// The fields that have an effect, as suggestions for a mistyped one.
const KNOWN: &str = "
    type command args env environment cwd url httpUrl serverUrl headers timeout
    startup_timeout_sec tool_timeout_sec tools includeTools excludeTools enabled_tools
    disabled_tools disabled enabled
";

/// Further fields of CLIs that have no effect here.
const WITHOUT_EFFECT: [&str; 2] = ["trust", "description"];

/// A parsed server.
pub(super) struct Read {
    /// The server, or `None` if it is disabled.
    pub(super) server: Option<McpServer>,
    /// Fields without effect, with the reason.
    pub(super) ignored: Vec<String>,
}

/// The transport that a `type` selects.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Stdio,
    Http,
    Sse,
}

/// Reads one server. Errors begin with the field.
pub(super) fn read(
    name: &str,
    object: Object<'_>,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<Read, Problem> {
    let mut fields = Fields::new(object)?;
    let disabled = fields.yes_or_no(&["disabled"])?.is_some_and(|(_, it)| it);
    let enabled = fields.yes_or_no(&["enabled"])?.is_none_or(|(_, it)| it);
    if disabled || !enabled {
        return Ok(Read {
            server: None,
            ignored: Vec::new(),
        });
    }
    let mut ignored = Vec::new();
    let expand_in =
        |path: &str, text: &str| expand(text, variables).map_err(|problem| problem.at(path));

    let kind = fields
        .text(&["type"])?
        .map(|(_, it)| kind(&it))
        .transpose()?;
    let command = fields.text_or_texts(&["command"])?;
    let args = fields.texts(&["args"])?;
    let env = fields.texts_by_name(&["env", "environment"])?;
    let cwd = fields.text(&["cwd"])?;
    let url = fields.text(&["url", "httpUrl", "serverUrl"])?;
    let headers = fields.texts_by_name(&["headers"])?;
    let kind = match (kind, &command, &url) {
        (Some(kind), ..) => kind,
        (None, Some(_), None) => Kind::Stdio,
        (None, None, Some(_)) => Kind::Http,
        (None, Some(_), Some((url, _))) => {
            return Err(Problem::Other(format!(
                "it has both command and {url}; choose one with type"
            )));
        }
        (None, None, None) => return Err(Problem::Unreachable),
    };

    let transport = if kind == Kind::Stdio {
        let unused = [url.map(|it| it.0), headers.map(|it| it.0)];
        ignored.extend(no_effect(unused, "a stdio server"));
        let (_, mut words) = command.ok_or("command: a stdio server must have one")?;
        let given = args.map(|it| it.1).unwrap_or_default();
        if words.is_empty() {
            return Err("command: it is empty".into());
        }
        let program = expand_in("command", &words.remove(0))?;
        let paths = (1..).map(|index| format!("command[{index}]"));
        let mut list = Vec::new();
        for (path, word) in paths.zip(&words) {
            list.push(expand_in(&path, word)?);
        }
        for (index, word) in given.iter().enumerate() {
            list.push(expand_in(&format!("args[{index}]"), word)?);
        }
        let mut map = env.map(|it| it.1).unwrap_or_default();
        for (key, value) in &mut map {
            *value = expand_in(&format!("env.{}", super::shown(key)), value)?;
        }
        McpTransport::Stdio {
            command: program,
            args: list,
            env: map,
            cwd: cwd
                .map(|(path, it)| expand_in(path, &it))
                .transpose()?
                .map(PathBuf::from),
        }
    } else {
        let unused = [
            command.map(|it| it.0),
            args.map(|it| it.0),
            env.map(|it| it.0),
            cwd.map(|it| it.0),
        ];
        ignored.extend(no_effect(unused, "a server at an address"));
        let (path, url) = url.ok_or("url: a server at an address must have one")?;
        let url = expand_in(path, &url)?;
        let mut headers = headers.map(|it| it.1).unwrap_or_default();
        for (key, value) in &mut headers {
            *value = expand_in(&format!("headers.{}", super::shown(key)), value)?;
        }
        if kind == Kind::Sse {
            McpTransport::Sse { url, headers }
        } else {
            McpTransport::Http { url, headers }
        }
    };

    let mut server = McpServer::new(name, transport);
    server.startup_timeout = duration(&mut fields, "startup_timeout_sec", 1000.0)?;
    server.tool_timeout = match duration(&mut fields, "tool_timeout_sec", 1000.0)? {
        None => duration(&mut fields, "timeout", 1.0)?,
        some if duration(&mut fields, "timeout", 1.0)?.is_none() => some,
        _ => return Err("timeout: it means the same as tool_timeout_sec; leave one out".into()),
    };
    let only = fields.texts(&["tools", "includeTools", "enabled_tools"])?;
    server.tools.only = only
        .filter(|(path, list)| !(*path == "tools" && *list == ["*"]))
        .map(|it| it.1);
    let except = fields.texts(&["excludeTools", "disabled_tools"])?;
    server.tools.except = except.map(|it| it.1).unwrap_or_default();
    if let Some(problem) = server.problem() {
        return Err(problem.into());
    }
    ignored.extend(fields.left().filter_map(|name| unknown(&name)));
    Ok(Read {
        server: Some(server),
        ignored,
    })
}

fn kind(name: &str) -> Result<Kind, String> {
    match name {
        "stdio" | "local" => Ok(Kind::Stdio),
        "http" | "streamable-http" | "streamableHttp" | "remote" => Ok(Kind::Http),
        "sse" => Ok(Kind::Sse),
        _ => Err(
            "type: expected stdio, local, http, streamable-http, streamableHttp, remote or sse"
                .to_owned(),
        ),
    }
}

fn no_effect<const N: usize>(
    fields: [Option<&'static str>; N],
    whose: &str,
) -> impl Iterator<Item = String> {
    let fields = fields.into_iter().flatten();
    fields.map(move |field| format!("{field}: {whose} has none"))
}

/// Reads a duration, rounded to milliseconds. `unit` is the number of milliseconds in one unit.
fn duration(
    fields: &mut Fields<'_>,
    name: &'static str,
    unit: f64,
) -> Result<Option<Duration>, String> {
    let Some((_, number)) = fields.number(&[name])? else {
        return Ok(None);
    };
    let duration = Duration::try_from_secs_f64((number * unit).round() / 1000.0);
    match duration.map(|it| Duration::from_millis(round_to_ms(it))) {
        Ok(duration) if !duration.is_zero() => Ok(Some(duration)),
        _ => Err(format!("{name}: expected a length of time above 0")),
    }
}

/// Rounds to milliseconds, because fractional seconds are inexact.
fn round_to_ms(duration: Duration) -> u64 {
    let nearest = duration.saturating_add(Duration::from_micros(500));
    millis(nearest)
}

/// Returns a message about an unknown field, unless it is known to have no effect.
fn unknown(name: &str) -> Option<String> {
    if WITHOUT_EFFECT.contains(&name) {
        return None;
    }
    let meant = KNOWN
        .split_ascii_whitespace()
        .find(|known| is_typo_of(name, known));
    let tip = meant.map_or(String::new(), |known| format!("; did you mean {known}?"));
    Some(format!("{}: unknown field{tip}", super::shown(name)))
}

/// Returns whether `name` differs from `known` only by one letter, by case, or by `_` and `-`.
pub fn is_typo_of(name: &str, known: &str) -> bool {
    let letters = |text: &str| -> Vec<char> {
        let letters = text.chars().filter(|c| !matches!(c, '_' | '-'));
        letters.map(|c| c.to_ascii_lowercase()).collect()
    };
    let (name, known) = (letters(name), letters(known));
    let same_at_start = name.iter().zip(&known).take_while(|(a, b)| a == b).count();
    let (name, known) = (&name[same_at_start..], &known[same_at_start..]);
    let rest = |text: &[char]| text.get(1..).unwrap_or_default().to_vec();
    rest(name) == rest(known) || rest(name) == known || name == rest(known)
}
