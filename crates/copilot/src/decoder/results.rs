//! Results of tools, as text.
//!
//! An MCP tool's complete result is in `contents` and `structuredContent`. `content` is the model's version of both:
//! texts without separators, without media, and only a preview if it is large. `error.message` is similar, with its
//! middle left out.

use std::slice;

use serde_json::Value;
use teamster_core::provider::{mcp_content, media_placeholder};

use super::wire::{ToolComplete, ToolResult};

/// Returns the result of a call, and the reason of a failure unless the result contains it.
pub(crate) fn output(line: &ToolComplete<'_>) -> String {
    let result = &line.result;
    let content = result.content.text();
    let structured = structured(result);
    let mut texts: Vec<&str> = result.contents.iter().filter_map(text_of).collect();
    texts.extend(structured.as_deref());

    let has_whole = !result.contents.is_empty() || structured.is_some();
    let is_cut = has_whole && is_large(line);
    // Text that is only in `content`, for any reason, must not be lost.
    let has_more = !is_cut && !is_made_of(content, &texts);
    let is_new = |text: Option<&str>| !has_more || text.is_none_or(|t| !content.contains(t));

    let mut parts = Parts::default();
    if has_more {
        parts.add(content);
    }
    let blocks = result.contents.iter().filter(|b| is_new(text_of(b)));
    let blocks: Vec<String> = blocks.map(|b| mcp_content(slice::from_ref(b))).collect();
    parts.add(&blocks.join("\n"));
    if let Some(structured) = structured.as_deref()
        && is_new(Some(structured))
        && !result.contents.iter().any(|b| is_same(b, result))
    {
        parts.add(structured);
    }
    if !result.contents.iter().any(is_media) {
        for binary in &result.binary_results_for_llm {
            parts.add(&binary_placeholder(binary));
        }
    }
    let error = line.error.as_ref().map_or("", |error| error.message.text());
    if texts.is_empty() {
        texts.push(content);
    }
    let is_known = is_made_of(error, &texts) || (is_cut && error == content);
    if !succeeded(line) && !is_known {
        parts.add_error(error);
    }
    parts.0
}

/// Returns whether a call succeeded. Without a status it did, unless there is an error.
pub(crate) fn succeeded(line: &ToolComplete<'_>) -> bool {
    line.success.unwrap_or(line.error.is_none())
}

/// Returns whether the model got only a preview.
pub(crate) fn is_large(line: &ToolComplete<'_>) -> bool {
    let reported = &line.tool_telemetry.properties;
    let signs = [
        // For commands and for MCP tools.
        &reported.large_output_handled,
        &reported.large_output_written_to_file,
    ];
    signs.into_iter().any(|sign| sign.get() == Some("true"))
}

/// Parts of a text, each on its own line.
#[derive(Default)]
struct Parts(String);

impl Parts {
    fn add(&mut self, part: &str) {
        if part.is_empty() {
            return;
        }
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(part);
    }

    /// Adds the reason of the failure, without repetitions.
    fn add_error(&mut self, error: &str) {
        let text = self.0.trim();
        if text.contains(error) {
            return;
        }
        if !text.is_empty() && error.contains(text) {
            self.0.clear();
        }
        self.add(error);
    }
}

/// Returns the text of a content block that the model got.
fn text_of(block: &Value) -> Option<&str> {
    let inner = block.get("resource").unwrap_or(block);
    let text = block.get("text").or_else(|| inner.get("text"));
    text.and_then(Value::as_str)
}

fn is_media(block: &Value) -> bool {
    let kind = block.get("type").and_then(Value::as_str);
    matches!(kind, Some("image" | "audio" | "resource" | "resource_link"))
}

/// Returns the structured part as JSON.
fn structured(result: &ToolResult<'_>) -> Option<String> {
    Some(match result.structured_content.as_ref()? {
        // A value nested too deeply becomes its text.
        Value::String(text) => text.clone(),
        value => value.to_string(),
    })
}

/// Returns whether this block is the structured part as text.
fn is_same(block: &Value, result: &ToolResult<'_>) -> bool {
    let text = text_of(block).unwrap_or_default();
    let value = serde_json::from_str::<Value>(text).ok();
    value.is_some() && value == result.structured_content
}

/// Returns whether a text consists only of these texts in order, possibly with some left out, and with or without the
/// server's name in front.
fn is_made_of(text: &str, texts: &[&str]) -> bool {
    let squeeze = |text: &str| -> String { text.split_whitespace().collect() };
    let from_server = text.strip_prefix("MCP server '");
    let bare = from_server.and_then(|rest| rest.split_once("': "));
    let text = squeeze(bare.map_or(text, |(_, bare)| bare));
    let mut rest = text.as_str();
    for text in texts {
        rest = rest.strip_prefix(&squeeze(text)).unwrap_or(rest);
    }
    rest.is_empty()
}

fn binary_placeholder(binary: &Value) -> String {
    let text = |name: &str| binary.get(name).and_then(Value::as_str);
    media_placeholder(
        text("type").unwrap_or("binary"),
        text("mimeType"),
        text("data"),
    )
}
