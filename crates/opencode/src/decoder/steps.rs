//! Steps: their text and usage, and the end of the run by the last one.

use teamster_core::{AgentEvent, CostSource, ErrorKind, Id, Usage, UsageReport};

use super::wire::{Part, Tokens};

/// All steps of a run.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    open: Option<Step>,
    /// Text of the last message's finished steps, kept if a later attempt is withdrawn.
    kept: String,
    message: Option<Id>,
    /// True if text of the last message was emitted.
    has_text: bool,
    /// True if the next step is the summary of a conversation that was too long.
    summary_next: bool,
    /// True if this step is that summary.
    summary: bool,
    /// Finish reason of the last step; `None` while one is open.
    reason: Option<String>,
    finished: u32,
    usage: Usage,
    cost: f64,
}

/// A step that has not ended.
#[derive(Debug, Default)]
struct Step {
    message: Option<Id>,
    text: String,
    /// Number of earlier attempts.
    tries: u32,
}

/// An attempt whose connection broke.
pub(crate) struct Lost {
    pub(crate) message: Option<Id>,
    /// Number of earlier attempts of the step.
    pub(crate) tries: u32,
    /// True if text of the attempt was emitted.
    pub(crate) has_text: bool,
    /// Text of the same message that stays, because its step had ended.
    pub(crate) kept: String,
}

/// Meaning of a step's finish reason for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The answer is complete.
    Complete,
    /// The answer was truncated or blocked.
    Cut,
    /// The model failed.
    Failed,
    /// Not an end: a step is open, or another one must follow.
    None,
}

impl Steps {
    /// Begins a step. Returns the previous one if it never ended and is repeated.
    pub(crate) fn start(&mut self, message: Option<Id>) -> Option<Lost> {
        let open = self.open.take();
        let again = open.as_ref().is_some_and(|o| o.message == message);
        if self.message != message {
            self.kept.clear();
            self.has_text = false;
            self.summary = std::mem::take(&mut self.summary_next);
            self.message.clone_from(&message);
        }
        self.reason = None;
        let open = open.filter(|_| again);
        let tries = open.as_ref().map_or(0, |open| open.tries + 1);
        self.open = Some(Step {
            message,
            text: String::new(),
            tries,
        });
        open.map(|lost| Lost {
            message: lost.message,
            tries,
            has_text: !lost.text.is_empty(),
            kept: self.kept.clone(),
        })
    }

    /// Records emitted text.
    pub(crate) fn text(&mut self, message: Option<&Id>, text: &str) {
        if self.message.as_ref() != message {
            // The line with its step's start was lost.
            self.message = message.cloned();
            self.kept.clear();
        }
        self.has_text = true;
        match &mut self.open {
            Some(step) if step.message.as_ref() == message => step.text.push_str(text),
            _ => self.kept.push_str(text),
        }
    }

    /// Ends a step. Returns the run's usage so far, if the step reports its usage.
    pub(crate) fn finish(&mut self, part: &Part<'_>) -> Option<AgentEvent> {
        if let Some(step) = self.open.take() {
            self.kept.push_str(&step.text);
        }
        self.reason = Some(part.reason.as_deref().unwrap_or_default().to_owned());
        self.finished += 1;
        self.cost += part.cost.filter(|cost| *cost > 0.0).unwrap_or_default();
        let usage = part.tokens.and_then(usage)?;
        self.usage = self.usage.plus(usage);
        Some(AgentEvent::Usage(Box::new(
            UsageReport::new(self.usage).cost_usd(self.cost().map(|(usd, _)| usd)),
        )))
    }

    /// Records that the run continued after an error.
    pub(crate) fn error_overcome(&mut self, kind: ErrorKind) {
        self.summary_next = kind == ErrorKind::ContextWindow;
        // A new message follows, even with the same id.
        self.open = None;
    }

    /// Returns whether the text of this step is the summary of the conversation.
    pub(crate) fn is_summary(&self) -> bool {
        self.summary
    }

    /// Returns the last message if it was emitted as an answer but was a summary.
    pub(crate) fn last_message_was_a_summary(&mut self) -> Option<Id> {
        if self.summary || !std::mem::take(&mut self.has_text) {
            return None;
        }
        self.summary = true;
        self.kept.clear();
        self.message.clone()
    }

    /// Returns the end of the run by its last step.
    pub(crate) fn end(&self) -> End {
        match self.reason.as_deref() {
            // The conversation was compacted, and the actual answer must follow.
            _ if self.summary => End::None,
            Some("stop" | "other") => End::Complete,
            Some("length" | "content-filter") => End::Cut,
            Some("error") => End::Failed,
            _ => End::None,
        }
    }

    /// Returns the finish reason of the last step.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref().filter(|reason| !reason.is_empty())
    }

    pub(crate) fn finished(&self) -> Option<u32> {
        Some(self.finished).filter(|steps| *steps > 0)
    }

    pub(crate) fn usage(&self) -> Option<Usage> {
        Some(self.usage).filter(|usage| !usage.is_empty())
    }

    /// Returns the cost. The CLI reports 0 for a model with an unknown price, so 0 is ignored.
    pub(crate) fn cost(&self) -> Option<(f64, CostSource)> {
        (self.cost > 0.0).then_some((self.cost, CostSource::Reported))
    }
}

/// Converts the token counts: reasoning is added to the output. The CLI reports 0 for a count that the service does
/// not have, and every step has input and output.
pub(crate) fn usage(tokens: Tokens) -> Option<Usage> {
    let output = match (tokens.output, tokens.reasoning) {
        (None, None) => None,
        (output, reasoning) => Some(
            output
                .unwrap_or_default()
                .saturating_add(reasoning.unwrap_or_default()),
        ),
    };
    let usage = Usage::default()
        .input_tokens(tokens.input)
        .output_tokens(output)
        .cache_read_tokens(tokens.cache.read)
        .cache_write_tokens(tokens.cache.write)
        .reasoning_tokens(tokens.reasoning);
    usage.total_tokens().filter(|total| *total > 0)?;
    Some(usage)
}
