//! MCP servers: tool names, denied tools, and notices about servers that are missing.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use teamster_core::{ExecuteParams, Id, McpServerStatus, McpTool, PermissionMode};

use crate::command_line::Flags;
use crate::launch::{READ_ONLY_TOOLS, mcp_tool_name};

/// Prefix of the names of MCP tools.
const PREFIX: &str = "mcp__";
/// Tools of the CLI that no run and no session here has under any rule: those for a person at a terminal, and one
/// that newer tools have replaced. Measured with 2.1.197 and 2.1.332.
const NEVER_THERE: &[&str] = &[
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "TodoWrite",
];

/// State of MCP servers in addition to the CLI's list.
#[derive(Debug, Default)]
pub(super) struct Servers {
    /// Names of the run's own servers.
    ours: Vec<String>,
    /// Names of other servers on the command line.
    given: Vec<String>,
    /// Rules that take tools from the agent.
    denied: Vec<String>,
    /// The CLI's own tools that the run leaves, if it names them.
    left: Option<Vec<String>>,
    /// Calls of tools that the run takes away.
    denied_calls: HashMap<Id, DeniedCall>,
    /// Servers that were reported, with the problem.
    reported: HashSet<(String, &'static str)>,
    /// True once the run's servers missing from the CLI's list were reported.
    left_out_reported: bool,
}

/// A call of a tool that the run takes away.
#[derive(Debug)]
struct DeniedCall {
    tool: String,
    /// True if a rule names the tool, which need not exist. Otherwise the run leaves only others.
    by_rule: bool,
}

impl Servers {
    pub(super) fn new(params: &ExecuteParams) -> Self {
        let given = Flags::of(&params.extra_args);
        let ours = &params.mcp_servers;
        let denied = params.denied_tools.iter().chain(&given.denied_tools);
        let rules = denied.flat_map(|list| list.split([',', ' ', '\n', '\t']));
        let left = match params.permission {
            PermissionMode::ReadOnly => Some(vec![READ_ONLY_TOOLS.to_owned()]),
            _ => given.tools,
        };
        let left_out = ours.iter().flat_map(|server| {
            let tools = server.tools.except.iter();
            tools.map(|tool| mcp_tool_name(&server.name, tool))
        });
        Self {
            ours: ours.iter().map(|server| server.name.clone()).collect(),
            given: given.servers,
            denied: rules.map(str::to_owned).chain(left_out).collect(),
            left: left.map(|lists| {
                let names = lists.iter().flat_map(|list| list.split([',', ' ']));
                names.map(str::to_owned).collect()
            }),
            ..Self::default()
        }
    }

    /// Splits a name like `mcp__server__tool` into server and tool. `listed` is the CLI's list of servers.
    ///
    /// A server's name may contain `__`, so known servers are tried first. Servers that may have tools take
    /// precedence, then longer names.
    pub(super) fn tool(&self, name: &str, listed: &[McpServerStatus]) -> Option<McpTool> {
        let rest = name.strip_prefix(PREFIX)?;
        let is_listed = |name: &String| listed.iter().any(|server| server.name == *name);
        let others = self.ours.iter().chain(&self.given);
        let others = others.filter(|name| !is_listed(name));
        // A server that needs a login has tools for that.
        let may = |status: &str| !matches!(status, "failed" | "disabled");
        let known = listed
            .iter()
            .map(|server| (server.name.as_str(), may(&server.status)))
            .chain(others.map(|name| (name.as_str(), true)));
        let fits = known.filter_map(|(server, may)| {
            let mapped = in_tool_names(server);
            let tool = rest.strip_prefix(&mapped)?.strip_prefix("__")?;
            (!mapped.is_empty()).then_some((may, mapped.len(), server, tool))
        });
        // The first of several equal matches.
        let best = fits.min_by_key(|&(may, length, ..)| (!may, Reverse(length)));
        let (server, tool) = match best {
            Some((_, _, server, tool)) => (server, tool),
            None => rest
                .split_once("__")
                .filter(|(server, _)| !server.is_empty())?,
        };
        Some(McpTool::new(server, tool))
    }

    /// Records a call. If the run takes the tool away, neither the result of the call nor that of the turn mentions it:
    /// the CLI treats the tool as missing, as it does one that it never had.
    pub(super) fn called(&mut self, id: &Id, name: &str) {
        let is_left = |left: &Vec<String>| {
            let is_named = |tool: &String| tool == name || tool == "default";
            name.starts_with(PREFIX) || NEVER_THERE.contains(&name) || left.iter().any(is_named)
        };
        let by_rule = self.denied.iter().any(|rule| denies(rule, name));
        if by_rule || !self.left.as_ref().is_none_or(is_left) {
            let tool = name.to_owned();
            let call = DeniedCall { tool, by_rule };
            self.denied_calls.insert(id.clone(), call);
        }
    }

    /// Returns the tool of a failed call, if it is missing because the run takes it away.
    pub(super) fn denied(&mut self, id: &Id, output: &str) -> Option<String> {
        let call = self.denied_calls.remove(id)?;
        let (_, rest) = output.split_once("No such tool available: ")?;
        let why = rest.strip_prefix(&call.tool)?;
        // The CLI has a reason for a tool that it knows.
        (call.by_rule || why.starts_with('.')).then_some(call.tool)
    }

    /// Returns the servers that are missing and were not reported before, with the problem. `odd` are listed servers
    /// whose status is unreadable.
    pub(super) fn missing(
        &mut self,
        listed: &[McpServerStatus],
        odd: &[String],
    ) -> Vec<(String, &'static str)> {
        let mut missing = Vec::new();
        for server in listed {
            let why = match server.status.as_str() {
                "failed" => "failed to start",
                "needs-auth" => "needs a login first",
                // The user may have disabled their own servers on purpose.
                "disabled" if self.ours.contains(&server.name) => "is switched off",
                _ => continue,
            };
            // Reported once per run, even if the server was connected in between.
            if self.reported.insert((server.name.clone(), why)) {
                missing.push((server.name.clone(), why));
            }
        }
        if !std::mem::replace(&mut self.left_out_reported, true) {
            let is_listed =
                |name: &String| odd.contains(name) || listed.iter().any(|s| s.name == *name);
            let left_out = self.ours.iter().filter(|name| !is_listed(name));
            missing.extend(left_out.map(|name| (name.clone(), "was not loaded by the CLI")));
        }
        missing
    }
}

/// Returns a server's name as it appears in the names of its tools.
///
/// This is the CLI's rule: each UTF-16 unit other than an ASCII letter, a digit, `_` or `-` becomes `_`. For the
/// service's connectors, consecutive `_` are merged, and those at both ends are removed.
fn in_tool_names(server: &str) -> String {
    let mut name = String::with_capacity(server.len());
    for c in server.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') {
            name.push(c);
        } else {
            name.extend(std::iter::repeat_n('_', c.len_utf16()));
        }
    }
    if server.starts_with("claude.ai ") {
        let parts: Vec<_> = name.split('_').filter(|part| !part.is_empty()).collect();
        return parts.join("_");
    }
    name
}

/// Returns whether a rule takes a tool away. The CLI takes the part before the first `__` as the server, in the rule and
/// in the tool's name. A rule without a tool applies to all tools of the server. One about some calls of a tool, such
/// as `Bash(git *)`, leaves it.
fn denies(rule: &str, tool: &str) -> bool {
    let (Some(of_rule), Some(of_tool)) = (rule.strip_prefix(PREFIX), tool.strip_prefix(PREFIX))
    else {
        return rule == tool;
    };
    if of_rule.is_empty() || of_rule.contains("__") {
        return matches(of_rule, of_tool);
    }
    of_tool
        .split_once("__")
        .is_some_and(|(server, _)| server == of_rule)
}

/// Returns whether a text matches a pattern, in which `*` matches any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, pattern)) = pattern.split_once('*') else {
        return pattern == text;
    };
    text.strip_prefix(start).is_some_and(|rest| {
        pattern.is_empty()
            || rest
                .char_indices()
                .any(|(at, _)| matches(pattern, &rest[at..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_server_in_those_of_its_tools() {
        for (server, expected) in [
            ("tiny", "tiny"),
            ("a__b-c", "a__b-c"),
            ("my server (x)", "my_server__x_"),
            ("é", "_"),
            ("🚀x", "__x"),
            ("claude.ai Foo (Beta)", "claude_ai_Foo_Beta"),
            ("claude.ai  🚀 __x-", "claude_ai_x-"),
            ("claude.aiFoo (Beta)", "claude_aiFoo__Beta_"),
            ("", ""),
        ] {
            assert_eq!(in_tool_names(server), expected, "{server}");
        }
    }

    #[test]
    fn the_tools_that_a_rule_is_about() {
        for (rule, tool, expected) in [
            ("mcp__a", "mcp__a__x", true),
            ("mcp__a", "mcp__a__b__x", true),
            ("mcp__a", "mcp__ab__x", false),
            ("mcp__a", "mcp__a", false),
            ("mcp__a__x", "mcp__a__x", true),
            ("mcp__a__x", "mcp__a__xy", false),
            ("mcp__a__*", "mcp__a__x", true),
            ("mcp__a__b__*", "mcp__a__b__x", true),
            ("mcp__a__b__*", "mcp__a__x", false),
            ("mcp__a__*_of_*", "mcp__a__list_of_é_y", true),
            ("mcp__a__*_of_", "mcp__a__list_of_x", false),
            ("mcp__", "mcp__a__x", false),
            ("Bash", "mcp__a__x", false),
            ("Bash", "Bash", true),
            ("Bash(git", "Bash", false),
            ("Bash", "BashOutput", false),
        ] {
            assert_eq!(denies(rule, tool), expected, "{rule} {tool}");
        }
    }
}
