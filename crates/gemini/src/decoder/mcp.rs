//! MCP servers: the server of a call, and the CLI's messages about failed servers.

use teamster_core::text::{excerpt, without_colors};
use teamster_core::{ExecuteParams, McpTool};

use crate::command_line::Flags;

/// Prefix of the name of an MCP server's tool.
const PREFIX: &str = "mcp_";

/// The CLI's only message on stderr about failed servers before the model calls a tool of any server.
const TROUBLE: &str = "MCP issues detected";

/// Text before and after a server's name in the CLI's message about its failure. The CLI prints it only after the
/// model has called a tool of a server. From the CLI's source.
const NAMED: &[(&str, &str)] = &[
    ("Error during discovery for MCP server '", "': "),
    ("Fatal error ensuring MCP server '", "' is connected: "),
    ("Error connecting to MCP server '", "': "),
    ("Error discovering tools from ", ": "),
    ("Error discovering prompts from ", ": "),
    ("Error discovering resources from ", ": "),
    ("Could not configure OAuth for '", "' - "),
    ("Failed to handle automatic OAuth for server '", "': "),
    ("Failed to create OAuth transport for server '", "': "),
];

/// Longest kept reason, in bytes.
const REASON_BYTES: usize = 500;

/// Servers that the run is known to use.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    /// Longer names first.
    known: Vec<String>,
    /// Servers of the run itself.
    ours: Vec<String>,
}

impl Servers {
    pub(crate) fn new(params: &ExecuteParams, given: &Flags) -> Self {
        let ours = params.mcp_servers.iter();
        let ours: Vec<_> = ours.map(|server| server.name.clone()).collect();
        let mut known = ours.clone();
        known.extend(given.servers.iter().cloned());
        known.sort_by_key(|name| std::cmp::Reverse(name.len()));
        Self { known, ours }
    }

    /// Returns server and tool in a name such as `mcp_server_tool`. The separator is also valid in names, and the CLI
    /// never lists the servers. If no known server matches, the server's name ends at the first `_`, as in the CLI's
    /// own policies.
    pub(crate) fn tool(&self, name: &str) -> Option<McpTool> {
        let name = name.strip_prefix(PREFIX)?;
        let (server, tool) = self.split(name).or_else(|| name.split_once('_'))?;
        (!server.is_empty()).then(|| McpTool::new(server, tool))
    }

    /// Returns whether an existing tool of this name is permitted if nothing is denied.
    pub(crate) fn permit(&self, name: &str) -> bool {
        name.strip_prefix(PREFIX)
            .is_some_and(|name| self.split(name).is_some())
    }

    fn split<'a>(&self, name: &'a str) -> Option<(&'a str, &'a str)> {
        self.known.iter().find_map(|server| {
            let tool = name.strip_prefix(server.as_str())?.strip_prefix('_')?;
            (!tool.is_empty()).then(|| (&name[..server.len()], tool))
        })
    }

    /// Returns a notice for each failed server that the CLI names, or one if it names none.
    pub(crate) fn trouble(&self, stderr: &str) -> Vec<String> {
        let plain = without_colors(stderr);
        let mut any = false;
        // Most lines come twice, with and without their level.
        let mut named: Vec<(&str, Option<String>)> = Vec::new();
        for line in plain.lines() {
            match Trouble::of(line) {
                Some(Trouble::Somewhere) => any = true,
                Some(Trouble::Of(server, why)) => {
                    match named.iter_mut().find(|(name, _)| *name == server) {
                        Some((_, known)) => *known = known.take().or(why),
                        None => named.push((server, why)),
                    }
                }
                None => {}
            }
        }
        if named.is_empty() && any {
            return vec![self.unnamed()];
        }
        let reported = named.into_iter().map(|(server, why)| {
            let why = why.as_deref().unwrap_or("Gemini CLI does not say why");
            format!("the MCP server {server} had an error in the run: {why}")
        });
        reported.collect()
    }

    fn unnamed(&self) -> String {
        let mut message = format!(
            "{TROUBLE}: an MCP server did not start, or broke off before any tool was called; Gemini \
             CLI does not report which or why"
        );
        if !self.ours.is_empty() {
            message.push_str("; those of this run: ");
            message.push_str(&self.ours.join(", "));
        }
        message
    }
}

/// A message on stderr about failed servers.
#[derive(Debug, PartialEq)]
pub(crate) enum Trouble<'a> {
    /// An unnamed server failed.
    Somewhere,
    /// This server failed, with the reason if there is one.
    Of(&'a str, Option<String>),
}

impl<'a> Trouble<'a> {
    /// Parses a line without colours.
    pub(crate) fn of(line: &'a str) -> Option<Self> {
        let levels = ["[INFO] ", "[WARNING] ", "[ERROR] "];
        let level = levels
            .into_iter()
            .find_map(|level| line.strip_prefix(level));
        let message = level.unwrap_or(line).trim_end();
        if message.starts_with(TROUBLE) {
            return Some(Self::Somewhere);
        }
        let (server, why) = Self::broke_off(message)
            .or_else(|| Self::why(message))
            .or_else(|| Self::wants_login(message))?;
        let why = why.filter(|why| !why.is_empty());
        (!server.is_empty()).then(|| Self::Of(server, why.map(|why| excerpt(&why, REASON_BYTES))))
    }

    fn broke_off(message: &str) -> Option<(&str, Option<String>)> {
        let rest = message.strip_prefix("MCP ERROR (")?;
        let server = rest.strip_suffix(':').unwrap_or(rest).strip_suffix(')')?;
        Some((server, None))
    }

    fn why(message: &str) -> Option<(&str, Option<String>)> {
        NAMED.iter().find_map(|(before, after)| {
            let (server, why) = message.strip_prefix(before)?.split_once(after)?;
            Some((server, Some(why.to_owned())))
        })
    }

    fn wants_login(message: &str) -> Option<(&str, Option<String>)> {
        let (server, why) = message.strip_prefix("MCP server '")?.split_once("' ")?;
        let known = ["requires authentication", "rejected stored OAuth token"];
        let known = known.iter().any(|words| why.starts_with(words));
        known.then(|| (server, Some(format!("it {why}"))))
    }
}
