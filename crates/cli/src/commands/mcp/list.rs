//! `teamster mcp list`: lists configured MCP servers.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use teamster_host::{ServerList, list_servers};

use super::args::McpListArgs;
use crate::exit_code;
use crate::mcp_servers::{own_variable, sources_or_default};

pub(super) fn main(args: &McpListArgs) -> anyhow::Result<u8> {
    let sources = sources_or_default(&args.servers).map_err(exit_code::misuse)?;
    let list = list_servers(crate::global::providers(), &sources, &own_variable);
    let list = list.map_err(exit_code::misuse)?;
    if args.json {
        return exit_code::of_json(&list);
    }
    crate::report::warn(&list.ignored);
    exit_code::of_printed(print(&list, &mut anstream::stdout()))
}

fn print(report: &ServerList, out: &mut impl Write) -> io::Result<()> {
    if report.servers.is_empty() {
        return writeln!(out, "No MCP servers.");
    }
    let bold = Style::new().bold();
    let dim = Style::new().dimmed();
    let warn = AnsiColor::Yellow.on_default();
    let width = report
        .servers
        .iter()
        .map(|it| console::measure_text_width(&it.name));
    let width = width.max().unwrap_or_default();
    for server in &report.servers {
        let name = &server.name;
        let pad = " ".repeat(width - console::measure_text_width(name));
        writeln!(
            out,
            "{bold}{name}{bold:#}{pad}  {:<5}  {}",
            server.transport, server.reached_by
        )?;
        let mut line = |what: &str, text: &str| writeln!(out, "    {dim}{what:<8}{dim:#} {text}");
        if let Some(cwd) = &server.cwd {
            line("cwd", cwd)?;
        }
        for (what, names) in [("env", &server.env), ("headers", &server.headers)] {
            if !names.is_empty() {
                line(what, &names.join(", "))?;
            }
        }
        if let Some(only) = &server.only_tools {
            let only = if only.is_empty() {
                "none".to_owned()
            } else {
                only.join(", ")
            };
            line("tools", &format!("only {only}"))?;
        }
        if !server.except_tools.is_empty() {
            line("tools", &format!("not {}", server.except_tools.join(", ")))?;
        }
        for agent in &server.not_for {
            let (provider, reason) = (agent.provider, &agent.reason);
            writeln!(
                out,
                "    {warn}{:<8}{warn:#} {provider}: {reason}",
                "not for"
            )?;
        }
    }
    Ok(())
}
