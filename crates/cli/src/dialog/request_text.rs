//! Text of a request for a person: the changes of an edit as a diff, and every other argument of the tool.
//!
//! Nothing is left out without a count, and nothing of the agent reaches the terminal as a control character or as one
//! that cannot be seen.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value};
use teamster::PermissionRequest;
use teamster_api::tool_input::{self, Change, Shown};

use super::change_lines::{ChangeLine, lines_of};
use crate::style::{ADDED, BOLD, DELETED, DIM, HUNK};
use crate::words;

/// Maximum length of the summarized argument of a tool, in characters.
const MAX_SUMMARIZED_ARGUMENT: usize = 2000;
/// Maximum length of each other argument, and of a line of a diff, in characters.
const MAX_ARGUMENT: usize = 200;
/// Maximum number of arguments shown, and of changed places or files.
const MAX_ARGUMENTS: usize = 12;
/// Maximum number of lines shown of all changes together.
const MAX_LINES: usize = 40;

pub(crate) struct RequestText {
    /// The text, in which what is long is cut.
    pub(crate) short: String,
    /// The text with everything, if something is cut.
    pub(crate) whole: Option<String>,
}

impl RequestText {
    /// Writes the text of a request. Paths below the directory are shown relative to it.
    pub(crate) fn of(request: &PermissionRequest, directory: Option<&Path>) -> Self {
        let styled = anstream::AutoStream::choice(&std::io::stderr());
        let finish = |text: String| match styled {
            anstream::ColorChoice::Never => anstream::adapter::strip_str(&text).to_string(),
            _ => text,
        };
        let (short, is_cut) = text(request, directory, false);
        let whole = is_cut.then(|| finish(text(request, directory, true).0));
        Self {
            short: finish(short),
            whole,
        }
    }
}

/// Returns the text of a request with everything.
pub(crate) fn whole(request: &PermissionRequest, directory: Option<&Path>) -> String {
    text(request, directory, true).0
}

/// Returns the text, and whether something is cut.
fn text(request: &PermissionRequest, directory: Option<&Path>, is_whole: bool) -> (String, bool) {
    let mut writer = Writer {
        text: String::new(),
        summary: tool_input::summary(&request.input, directory),
        directory,
        is_whole,
        is_cut: false,
        lines: if is_whole { usize::MAX } else { MAX_LINES },
    };
    writer.request(request);
    (writer.text, writer.is_cut)
}

struct Writer<'a> {
    text: String,
    /// The most descriptive argument.
    summary: String,
    directory: Option<&'a Path>,
    is_whole: bool,
    is_cut: bool,
    /// Number of lines of changes that still fit.
    lines: usize,
}

impl Writer<'_> {
    fn line(&mut self, indent: usize, line: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{}{line}", " ".repeat(indent));
    }

    fn request(&mut self, request: &PermissionRequest) {
        let name = visible(&words::one_line(&request.tool_name));
        self.text.push('\n');
        match &request.schema {
            Some(_) => self.line(0, "Input needed"),
            None => self.line(0, format_args!("{BOLD}Allow {name}?{BOLD:#}")),
        }
        if let Some(message) = &request.message {
            let message = visible(&words::one_line(message));
            let message = self.shortened(&message, MAX_ARGUMENT);
            self.line(2, message);
        }
        if let Some(schema) = &request.schema {
            match &schema["properties"] {
                Value::Object(fields) => self.arguments(2, &all_of(fields)),
                Value::Null => {}
                other => self.value(other),
            }
            return;
        }
        match &request.input {
            Value::Object(fields) => {
                let shown = Shown::of(fields).over(request.old_text.as_deref());
                self.part(2, &shown);
            }
            Value::Null => {}
            other => self.value(other),
        }
    }

    fn value(&mut self, value: &Value) {
        let value = self.shortened(&visible(&value.to_string()), MAX_SUMMARIZED_ARGUMENT);
        self.line(2, value);
    }

    /// Writes the path, the change, the other arguments and the parts of an input.
    fn part(&mut self, indent: usize, shown: &Shown<'_>) {
        let path = shown.path();
        let is_path =
            |value: &Value| shown.change.is_some() && path.is_some() && value.as_str() == path;
        let (first, rest): (Vec<_>, Vec<_>) = shown
            .rest
            .iter()
            .copied()
            .partition(|(_, value)| is_path(value));
        self.arguments(indent, &first);
        if let Some(change) = shown.change {
            self.change(indent + 2, change);
        }
        self.arguments(indent, &rest);
        let count = shown.parts.len();
        let most = if self.is_whole { count } else { MAX_ARGUMENTS };
        for (i, part) in shown.parts.iter().take(most).enumerate() {
            if let Some(title) = self.title(part) {
                self.line(indent, title);
                if let Some(change) = part.change {
                    self.change(indent + 2, change);
                }
            } else {
                self.line(indent, format_args!("change {} of {count}", i + 1));
                self.part(indent + 2, part);
            }
        }
        if count > most {
            self.is_cut = true;
            let more = words::plural((count - most) as u64, "change");
            self.line(indent, format_args!("… {more} more"));
        }
    }

    /// Returns the kind and path of a change that has no other argument.
    fn title(&self, part: &Shown<'_>) -> Option<String> {
        let path = part.path()?;
        let is_known = |(name, value): &(&str, &Value)| match value {
            Value::Null => true,
            Value::Object(kind) if *name == "kind" => {
                (kind.iter()).all(|(name, value)| name == "type" || value.is_null())
            }
            value => *name == "kind" && value.is_string() || value.as_str() == Some(path),
        };
        let kind = part.kind().unwrap_or("update");
        let title = format!(
            "{} {}",
            in_one_line(kind),
            in_one_line(tool_input::relative(path, self.directory))
        );
        let is_path = |(_, value): &&(&str, &Value)| value.as_str() == Some(path);
        let is_all = part.rest.iter().all(is_known)
            && part.rest.iter().filter(is_path).count() == 1
            && part.parts.is_empty();
        is_all.then_some(title)
    }

    fn change(&mut self, indent: usize, change: Change<'_>) {
        let lines = lines_of(change, self.is_whole);
        let shown = lines.len().min(self.lines);
        for line in &lines[..shown] {
            let (mark, style, text) = match line {
                ChangeLine::Added(text) => ("+", ADDED, *text),
                ChangeLine::Deleted(text) => ("-", DELETED, *text),
                ChangeLine::Same(text) => (" ", anstyle::Style::new(), *text),
                ChangeLine::Head(text) => ("", HUNK, *text),
                ChangeLine::Note(text) => ("\\ ", DIM, *text),
                ChangeLine::Unchanged(count) => {
                    self.is_cut = true;
                    let count = words::plural(*count as u64, "unchanged line");
                    self.line(indent, format_args!("{DIM}… {count}{DIM:#}"));
                    continue;
                }
            };
            let text = self.shortened(&visible(text), MAX_ARGUMENT);
            self.line(indent, format_args!("{style}{mark}{text}{style:#}"));
        }
        self.lines -= shown;
        let more = &lines[shown..];
        if !more.is_empty() {
            self.is_cut = true;
            let count = |is: fn(&ChangeLine<'_>) -> bool| more.iter().filter(|it| is(it)).count();
            let added = count(|line| matches!(line, ChangeLine::Added(_)));
            let deleted = count(|line| matches!(line, ChangeLine::Deleted(_)));
            let more = words::plural(more.len() as u64, "line");
            self.line(
                indent,
                format_args!("{DIM}… {more} more (+{added} -{deleted}){DIM:#}"),
            );
        }
    }

    fn arguments(&mut self, indent: usize, arguments: &[(&str, &Value)]) {
        let most = if self.is_whole {
            arguments.len()
        } else {
            MAX_ARGUMENTS
        };
        for (name, value) in arguments.iter().take(most) {
            // Some CLIs start each command in a shell.
            let in_shell = (value
                .as_str()
                .filter(|_| matches!(*name, "command" | "cmd")))
            .and_then(tool_input::in_shell);
            let value = match (&in_shell, value) {
                (Some(it), _) => it.command.clone(),
                (None, Value::Array(commands)) if *name == "commands" => {
                    in_lines(commands).unwrap_or_else(|| as_text(value))
                }
                _ => as_text(value),
            };
            // The summary of a command is without its shell.
            let is_summarized = matches!(*name, "command" | "commands" | "cmd")
                || !self.summary.is_empty() && words::one_line(&value).ends_with(&self.summary);
            let most = if is_summarized {
                MAX_SUMMARIZED_ARGUMENT
            } else {
                MAX_ARGUMENT
            };
            let value = self.shortened(visible(&value).trim_end(), most);
            let between = format!("\n{}", " ".repeat(indent + 2));
            let value = value.replace('\n', &between);
            self.line(indent, format_args!("{}: {value}", in_one_line(name)));
            if let Some(it) = in_shell {
                self.line(indent, format_args!("{DIM}by {}{DIM:#}", it.shell));
            }
        }
        let more = arguments.len().saturating_sub(most) as u64;
        if more > 0 {
            self.is_cut = true;
            let more = words::plural(more, "argument");
            self.line(indent, format_args!("… {more} more"));
        }
    }

    fn shortened(&mut self, text: &str, most: usize) -> String {
        let count = text.chars().count();
        if self.is_whole || count <= most {
            return text.to_owned();
        }
        self.is_cut = true;
        let kept: String = text.chars().take(most).collect();
        format!("{kept}… ({} characters more)", count - most)
    }
}

fn all_of(fields: &Map<String, Value>) -> Vec<(&str, &Value)> {
    fields
        .iter()
        .map(|(name, value)| (&**name, value))
        .collect()
}

/// Returns commands, each in a line of its own; `None` if that would show something else.
fn in_lines(commands: &[Value]) -> Option<String> {
    let lines = commands.iter().map(Value::as_str);
    let lines: Vec<&str> = lines.collect::<Option<_>>()?;
    let is_clear = |line: &&str| !line.trim().is_empty() && !line.contains('\n');
    (!lines.is_empty() && lines.iter().all(is_clear)).then(|| lines.join("\n"))
}

/// Returns an argument as text: a string as it is, unless that looks like nothing or like another value.
fn as_text(value: &Value) -> String {
    match value {
        Value::String(text)
            if !text.trim().is_empty() && serde_json::from_str::<Value>(text).is_err() =>
        {
            text.clone()
        }
        value => value.to_string(),
    }
}

fn in_one_line(text: &str) -> String {
    visible(text).replace('\n', "^J")
}

/// Returns `true` if the character cannot be seen, or looks like a space and is none.
///
/// Source: format characters, spaces and default-ignorable code points of Unicode 16.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{1680}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
        | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the text with visible forms of control characters, except newlines and tabs, and of characters that cannot be
/// seen. A carriage return before a newline is left out.
fn visible(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let mut seen = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => seen.push(c),
            // `^[` is ESC.
            '\0'..='\u{1f}' | '\u{7f}' => {
                seen.push('^');
                seen.push(char::from(c as u8 ^ 0x40));
            }
            c if c.is_control() || is_hidden(c) => {
                let _ = write!(seen, "<U+{:04X}>", u32::from(c));
            }
            c => seen.push(c),
        }
    }
    seen
}

#[cfg(test)]
mod tests;
