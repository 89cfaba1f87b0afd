//! MCP servers: whose tool a call is of, which tools the run denies, and notices of servers that
//! did not come up.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use teamster_core::{ExecuteParams, Id, McpServerStatus, McpTool};

use crate::command_line::Flags;
use crate::launch::mcp_tool_name;

/// How the name of an MCP server's tool begins.
const PREFIX: &str = "mcp__";

/// State of MCP servers beside the CLI's own list of them.
#[derive(Debug, Default)]
pub(super) struct Servers {
    /// The names of this run's own.
    ours: Vec<String>,
    /// The names of others that the command line holds.
    given: Vec<String>,
    /// The rules that take tools from the agent.
    denied: Vec<String>,
    /// Calls of such tools: how they were named.
    denied_calls: HashMap<Id, String>,
    /// Servers and problems that were reported.
    reported: HashSet<(String, &'static str)>,
    /// Servers of the run that the CLI does not have were reported.
    left_out_reported: bool,
}

impl Servers {
    pub(super) fn new(params: &ExecuteParams) -> Self {
        let given = Flags::of(&params.extra_args);
        let ours = &params.mcp_servers;
        let denied = params.denied_tools.iter().chain(&given.denied_tools);
        let rules = denied.flat_map(|list| list.split([',', ' ', '\n', '\t']));
        let left_out = ours.iter().flat_map(|server| {
            let tools = server.tools.except.iter();
            tools.map(|tool| mcp_tool_name(&server.name, tool))
        });
        Self {
            ours: ours.iter().map(|server| server.name.clone()).collect(),
            given: given.servers,
            denied: rules
                .filter(|rule| rule.starts_with(PREFIX))
                .map(str::to_owned)
                .chain(left_out)
                .collect(),
            ..Self::default()
        }
    }

    /// Server and tool in a name like `mcp__server__tool`. A server's own name may hold `__` too, so
    /// those that are known are tried first: of those that may have tools, and then of all, the one
    /// with the longest name. `listed` is the CLI's own list.
    pub(super) fn tool(&self, name: &str, listed: &[McpServerStatus]) -> Option<McpTool> {
        let rest = name.strip_prefix(PREFIX)?;
        let is_listed = |name: &String| listed.iter().any(|server| server.name == *name);
        let others = self.ours.iter().chain(&self.given);
        let others = others.filter(|name| !is_listed(name));
        // One that needs a login has tools for that.
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
        // The first of several that fit as well.
        let best = fits.min_by_key(|&(may, length, ..)| (!may, Reverse(length)));
        let (server, tool) = match best {
            Some((_, _, server, tool)) => (server, tool),
            None => rest
                .split_once("__")
                .filter(|(server, _)| !server.is_empty())?,
        };
        Some(McpTool::new(server, tool))
    }

    /// A tool was called. If the run denies it, its result will not say so: to the CLI, it is just not
    /// there.
    pub(super) fn called(&mut self, id: &Id, name: &str) {
        if self.denied.iter().any(|rule| denies(rule, name)) {
            self.denied_calls.insert(id.clone(), name.to_owned());
        }
    }

    /// The tool of a call that failed with this output, if it is not there because the run denies it.
    pub(super) fn denied(&mut self, id: &Id, output: &str) -> Option<String> {
        let name = self.denied_calls.remove(id)?;
        let (_, rest) = output.split_once("No such tool available: ")?;
        rest.starts_with(&name).then_some(name)
    }

    /// Servers that did not come up and were not reported before: their names and why.
    /// `odd` are those on the CLI's list whose state cannot be read.
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
                // The user's own may well be.
                "disabled" if self.ours.contains(&server.name) => "is switched off",
                _ => continue,
            };
            // Once in a run, also if it came up in between.
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

/// A server's name as it stands in the names of its tools, by the CLI's own rule: what is neither an
/// ASCII letter nor a digit, `_` or `-` becomes `_`, one for each unit of UTF-16; of the service's
/// connectors, several `_` become one, and none stays at either end.
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

/// Whether a rule takes a tool from the agent. The CLI takes what stands before the first `__` for the
/// server, in the rule and in the tool's name; a rule without more is for all of its tools.
fn denies(rule: &str, tool: &str) -> bool {
    let (Some(of_rule), Some(of_tool)) = (rule.strip_prefix(PREFIX), tool.strip_prefix(PREFIX))
    else {
        return false;
    };
    if of_rule.is_empty() || of_rule.contains("__") {
        return matches(of_rule, of_tool);
    }
    of_tool
        .split_once("__")
        .is_some_and(|(server, _)| server == of_rule)
}

/// Whether a text matches the pattern, in which `*` is for any text.
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
        ] {
            assert_eq!(denies(rule, tool), expected, "{rule} {tool}");
        }
    }
}
