//! Findings of a case.

use teamster::RunStatus;
use teamster_api::RunEvent;
use teamster_mock_model::Cli;

use super::case::Case;
use super::facts::Fact;
use super::stage::{Ran, Stage};
use crate::conversation;

#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Failed checks.
    pub(crate) wrong: Vec<String>,
    /// Names of the declared facts that were needed.
    pub(crate) facts: Vec<&'static str>,
    /// Details of everything that happened.
    pub(crate) details: Vec<String>,
}

impl Findings {
    /// Returns whether no check failed.
    pub(crate) fn holds(&self) -> bool {
        self.wrong.is_empty()
    }

    /// Adds a failure unless this holds.
    pub(crate) fn must(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong.push(what());
        }
    }

    /// Adds a failure unless these are equal.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "what is compared is often made for it"
    )]
    pub(crate) fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, is: T, wanted: T) {
        self.must(is == wanted, || {
            format!("{what}: {is:?}, wanted was {wanted:?}")
        });
    }

    /// Returns whether this fact is declared for the CLI. If so, adds it to the findings.
    pub(crate) fn knows(&mut self, fact: &'static Fact, cli: Cli, case: Case) -> bool {
        let known = fact.is_of(cli, case);
        if known && !self.facts.contains(&fact.name) {
            self.facts.push(fact.name);
        }
        known
    }

    /// Checks the events of every run.
    pub(crate) fn lifecycle(&mut self, ran: &Ran) {
        for event in &ran.events {
            self.details
                .push(serde_json::to_string(event).unwrap_or_else(|error| error.to_string()));
        }
        self.same(
            "events by the stream and by the callback",
            ran.events.len(),
            ran.called.len(),
        );
        self.must(
            ran.events
                .iter()
                .eq(ran.called.iter().map(|(event, _)| event)),
            || "the callback got other events than the stream".to_owned(),
        );
        let count = |name: &str| {
            ran.events
                .iter()
                .filter(|event| event.type_name() == name)
                .count()
        };
        self.same("run:start events", count("run:start"), 1);
        self.same("run:end events", count("run:end"), 1);
        let at = |event: Option<&RunEvent>| event.map_or("none", RunEvent::type_name);
        self.same("the first event", at(ran.events.first()), "run:start");
        self.same("the last event", at(ran.events.last()), "run:end");
        let outcome = &ran.outcome;
        let failed = !outcome.is_success() && outcome.result.status != RunStatus::Aborted;
        self.same("run:error events", count("run:error"), usize::from(failed));
        let mut open = Vec::new();
        for event in &ran.events {
            match event {
                RunEvent::ToolStart { tool_id, .. } => open.push(tool_id),
                RunEvent::ToolEnd { tool_id, .. } => {
                    let at = open.iter().position(|id| *id == tool_id);
                    self.must(at.is_some(), || {
                        format!("tool:end of {tool_id}, which did not begin")
                    });
                    if let Some(at) = at {
                        open.remove(at);
                    }
                }
                RunEvent::Retry { .. } | RunEvent::Fallback { .. } | RunEvent::End(_) => {
                    let open = std::mem::take(&mut open);
                    self.must(open.is_empty(), || {
                        format!("no tool:end of {open:?} before {}", event.type_name())
                    });
                }
                _ => {}
            }
        }
        let left = &ran.processes_left;
        self.must(left.is_empty(), || format!("processes are left: {left:?}"));
        self.must(!ran.active_after, || "the run is still active".to_owned());
    }
}

/// Records the requests to the models and the errors of the attempts.
pub(crate) fn record(findings: &mut Findings, ran: &Ran, stages: &[&Stage]) {
    for (number, stage) in stages.iter().enumerate() {
        for request in ran.asked(number) {
            let line = conversation::line(request);
            findings.details.push(format!("{} {line}", stage.cli));
        }
    }
    for attempt in &ran.outcome.attempts {
        findings.details.push(format!("attempt: {attempt:?}"));
    }
}
