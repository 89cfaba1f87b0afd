//! Decoder of a program's text.

use std::borrow::Cow;
use std::sync::Arc;

use regex::Captures;
use teamster_core::provider::{DecodedResult, Decoder, Events, Exit};
use teamster_core::text::without_colors;
use teamster_core::{
    AgentError, CostSource, ErrorCode, ErrorKind, NoticeLevel, NoticeSource, Text, TurnEnd, Usage,
};

use crate::CommandSettings;

/// Decodes the output of one run. Each line is text, unless a pattern matches.
#[derive(Debug)]
pub(crate) struct TextDecoder {
    settings: Arc<CommandSettings>,
    model: Option<String>,
    /// True once text was emitted.
    has_text: bool,
    usage: Option<Usage>,
    cost_usd: Option<f64>,
    error: Option<AgentError>,
    /// Number of lines with binary data.
    binary_lines: u64,
    reported_bytes: bool,
}

impl TextDecoder {
    pub(crate) fn new(settings: Arc<CommandSettings>, model: Option<String>) -> Self {
        Self {
            settings,
            model,
            has_text: false,
            usage: None,
            cost_usd: None,
            error: None,
            binary_lines: 0,
            reported_bytes: false,
        }
    }

    fn text(&mut self, line: &[u8], out: &mut Events) {
        let text = String::from_utf8_lossy(line);
        if matches!(text, Cow::Owned(_)) && !self.reported_bytes {
            self.reported_bytes = true;
            out.notice(
                NoticeLevel::Warning,
                NoticeSource::Stdout,
                "the program prints bytes that are not UTF-8; they are replaced",
            );
        }
        // A carriage return overwrites the line: keep the last part.
        let text = text.trim_end_matches('\r');
        let text = text.rsplit('\r').next().unwrap_or_default();
        let text = without_colors(text);
        self.figures(&text);
        if self.is_error(&text) {
            return;
        }
        if self.settings.notices.iter().any(|it| it.is_match(&text)) {
            out.notice(NoticeLevel::Info, NoticeSource::Stdout, text);
            return;
        }
        let text = if self.has_text {
            format!("\n{text}")
        } else if text.trim().is_empty() {
            return;
        } else {
            text.into_owned()
        };
        self.has_text = true;
        out.push(Text::new(text));
    }

    fn figures(&mut self, text: &str) {
        if let Some(found) = self
            .settings
            .tokens
            .as_ref()
            .and_then(|it| it.0.captures(text))
        {
            let mut usage = Usage::default();
            usage.input_tokens = number(&found, "input");
            usage.output_tokens = number(&found, "output");
            usage.cache_read_tokens = number(&found, "cache_read");
            usage.cache_write_tokens = number(&found, "cache_write");
            if !usage.is_empty() {
                self.usage = Some(self.usage.unwrap_or_default().plus(usage));
            }
        }
        if let Some(found) = self
            .settings
            .cost
            .as_ref()
            .and_then(|it| it.0.captures(text))
            && let Some(cost) = figure(&found, "cost")
        {
            self.cost_usd = Some(self.cost_usd.unwrap_or_default() + cost);
        }
    }

    /// Returns whether the line reports a failure. The first failure is the error of the run.
    fn is_error(&mut self, text: &str) -> bool {
        let Some(found) = self
            .settings
            .errors
            .iter()
            .find(|it| it.pattern.is_match(text))
        else {
            return false;
        };
        let kind = found.kind.or_else(|| ErrorKind::of_message(text));
        let kind = kind.unwrap_or(ErrorKind::Internal);
        self.error
            .get_or_insert_with(|| AgentError::new(ErrorCode::CliError, kind, text.trim()));
        true
    }
}

/// Parses a number such as `1200`, `1,200`, `1.2k` or `3M`.
fn figure(found: &Captures<'_>, group: &str) -> Option<f64> {
    let text = found.name(group)?.as_str().replace([',', '_'], "");
    let (digits, factor) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1e3),
        b'm' | b'M' => (&text[..text.len() - 1], 1e6),
        _ => (text.as_str(), 1.0),
    };
    let figure: f64 = digits.parse().ok()?;
    (figure.is_finite() && figure >= 0.0).then_some(figure * factor)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is neither negative nor infinite, and larger ones are cut off"
)]
fn number(found: &Captures<'_>, group: &str) -> Option<u64> {
    figure(found, group).map(|figure| figure.round() as u64)
}

impl Decoder for TextDecoder {
    fn takes_text(&self) -> bool {
        true
    }

    fn line(&mut self, line: &[u8], out: &mut Events) {
        if line.contains(&0) {
            self.binary_lines += 1;
        } else {
            self.text(line, out);
        }
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        if self.binary_lines > 0 && self.error.is_none() {
            self.error = Some(AgentError::new(
                ErrorCode::CliError,
                ErrorKind::Protocol,
                format!(
                    "the program printed binary data and no text: {} lines are left out; have it write \
                     to a file",
                    self.binary_lines
                ),
            ));
        }
        let failed = self.error.is_some();
        if let Some(error) = self.error.take() {
            out.error(error);
        }
        // Any other end is a failure, explained by the exit code and stderr.
        let ended = failed || (exit.code == Some(0) && exit.stop.is_none());
        if ended {
            let end = TurnEnd::new(failed)
                .usage(self.usage)
                .cost_usd(self.cost_usd);
            out.push(end);
        }
        DecodedResult {
            ended_with_error: ended.then_some(failed),
            model: self.model.clone(),
            usage: self.usage,
            cost: self.cost_usd.map(|usd| (usd, CostSource::Reported)),
            ..DecodedResult::default()
        }
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        ErrorKind::of_message(stderr)
    }
}

#[cfg(test)]
mod tests;
