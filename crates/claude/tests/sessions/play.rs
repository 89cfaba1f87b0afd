//! Replays a recorded conversation with Claude Code against the protocol, line by line. Recorded ids of messages and
//! requests are replaced by those of the protocol.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::Path;

use serde_json::Value;
use teamster_claude::Claude;
use teamster_core::provider::{CommandId, Outbox, SessionAssembler, SessionCommand, grammar};
use teamster_core::{
    AgentError, AgentEvent, Notice, Offers, PermissionRequest, RunResult, SessionOptions,
    SessionProvider, ToolResult, ToolUse, Turn, TurnEnd,
};
use teamster_testkit::events::{payloads, tokens};

/// Events and result of a turn.
#[derive(Debug)]
pub(crate) struct PlayedTurn {
    pub(crate) events: Vec<AgentEvent>,
    pub(crate) result: RunResult,
}

impl PlayedTurn {
    fn of(events: Vec<AgentEvent>) -> Self {
        assert_eq!(grammar::check(&events), Ok(()), "{events:#?}");
        let Some(AgentEvent::Done(done)) = events.last() else {
            panic!("{events:#?}");
        };
        let result = (*done.result).clone();
        let diagnostics = &result.diagnostics;
        assert_eq!((diagnostics.unknown, diagnostics.malformed), (0, 0));
        Self { events, result }
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.events
            .iter()
            .filter(|it| it.type_name() == name)
            .count()
    }

    /// Returns the input and output tokens.
    pub(crate) fn tokens(&self) -> Option<(u64, u64)> {
        tokens(self.result.usage)
    }

    /// Returns the cost in micro-USD.
    pub(crate) fn cost(&self) -> Option<f64> {
        self.result.total_cost_usd.map(micro)
    }

    /// Returns the tokens at the end of the turn, and its cost as in [`cost`](Self::cost).
    pub(crate) fn end(&self) -> (Option<(u64, u64)>, Option<f64>) {
        let mut ends = payloads::<TurnEnd>(&self.events);
        let end = ends.next().expect("an end");
        assert!(ends.next().is_none(), "one end: {:#?}", self.events);
        (tokens(end.usage), end.cost_usd.map(micro))
    }

    /// Returns the names and ids of the tools that were used.
    pub(crate) fn tools(&self) -> Vec<(&str, &str)> {
        payloads::<ToolUse>(&self.events)
            .map(|it| (it.tool_name.as_str(), &*it.tool_id))
            .collect()
    }

    pub(crate) fn outputs(&self) -> Vec<(&str, Option<bool>)> {
        payloads::<ToolResult>(&self.events)
            .map(|it| (it.output.as_str(), it.is_error))
            .collect()
    }

    pub(crate) fn notices(&self) -> Vec<&str> {
        payloads::<Notice>(&self.events)
            .map(|it| it.message.as_str())
            .collect()
    }
}

fn micro(usd: f64) -> f64 {
    (usd * 1e8).round() / 100.0
}

/// A conversation that is being replayed.
pub(crate) struct Play {
    pub(crate) session: SessionAssembler,
    lines: VecDeque<String>,
    /// Recorded ids of messages. Some messages have none.
    messages: VecDeque<Option<String>>,
    /// Recorded ids of requests, by their kind.
    requests: HashMap<String, VecDeque<String>>,
    /// Pairs of recorded ids and the protocol's ids.
    ids: Vec<(String, String)>,
    /// Messages of the protocol since the test last cleared the list.
    pub(crate) written: Vec<Value>,
    /// What the session offered, as it changed.
    pub(crate) offers: Vec<Offers>,
    pub(crate) settled: Vec<(CommandId, Result<(), AgentError>)>,
    pub(crate) asked: Vec<PermissionRequest>,
    pub(crate) withdrawn: Vec<u64>,
    events: Vec<AgentEvent>,
    /// Turns that the CLI began by itself.
    pub(crate) unasked: Vec<PlayedTurn>,
}

impl Play {
    pub(crate) fn new(scenario: &str) -> Self {
        Self::with(scenario, |_| {})
    }

    pub(crate) fn with(scenario: &str, change: impl FnOnce(&mut SessionOptions)) -> Self {
        let mut options = SessionOptions::default();
        change(&mut options);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions");
        let read = |file: &str| {
            let text = fs::read_to_string(folder.join(scenario).join(file)).unwrap();
            let lines = text.lines().map(str::to_owned);
            lines.collect::<VecDeque<_>>()
        };
        let (mut messages, mut requests) = (VecDeque::new(), HashMap::new());
        for line in read("stdin.ndjson") {
            // One scenario has an invalid line.
            let Ok(line) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            match line["type"].as_str() {
                Some("user") => messages.push_back(line["uuid"].as_str().map(str::to_owned)),
                Some("control_request") => {
                    let kind = line["request"]["subtype"].as_str().unwrap().to_owned();
                    let id = line["request_id"].as_str().unwrap().to_owned();
                    let of_kind: &mut VecDeque<String> = requests.entry(kind).or_default();
                    of_kind.push_back(id);
                }
                _ => {}
            }
        }
        let mut this = Self {
            session: SessionAssembler::new(Claude.protocol(&options))
                .may_be_silent(options.params.commands()),
            lines: read("stdout.ndjson"),
            messages,
            requests,
            ids: Vec::new(),
            written: Vec::new(),
            offers: Vec::new(),
            settled: Vec::new(),
            asked: Vec::new(),
            withdrawn: Vec::new(),
            events: Vec::new(),
            unasked: Vec::new(),
        };
        this.settle();
        this
    }

    pub(crate) fn turn(&mut self, prompt: &str) {
        self.begin(Turn::new(prompt));
    }

    pub(crate) fn begin(&mut self, turn: Turn) {
        self.session.begin(turn);
        self.settle();
    }

    pub(crate) fn command(&mut self, command: SessionCommand) {
        self.session.command(command);
        self.settle();
    }

    /// Interrupts the turn in the same way as the engine.
    pub(crate) fn interrupt(&mut self) {
        self.session.stop_requested();
        self.command(SessionCommand::Interrupt);
    }

    /// Plays lines up to the first one that contains `text`.
    pub(crate) fn until(&mut self, text: &str) {
        loop {
            assert!(!self.session.is_over(), "the turn is over before {text}");
            let line = self.feed().unwrap_or_else(|| panic!("no line has {text}"));
            if line.contains(text) {
                return;
            }
        }
    }

    /// Plays the rest of the turn.
    pub(crate) fn end(&mut self) -> PlayedTurn {
        while !self.session.is_over() {
            assert!(self.feed().is_some(), "no end: {:#?}", self.events);
        }
        self.ended()
    }

    fn ended(&mut self) -> PlayedTurn {
        self.session.end_turn(0);
        self.settle();
        PlayedTurn::of(std::mem::take(&mut self.events))
    }

    /// Plays lines outside of a turn, up to the first one that contains `text`.
    pub(crate) fn idle(&mut self, text: &str) {
        while let Some(line) = self.feed() {
            if line.contains(text) {
                return;
            }
        }
        panic!("no line has {text}");
    }

    /// Plays the remaining lines. Afterwards, no turn is active.
    pub(crate) fn rest(&mut self) {
        while self.feed().is_some() {}
        assert_eq!(self.session.turn(), None);
    }

    /// Plays a whole turn.
    pub(crate) fn play(&mut self, prompt: &str) -> PlayedTurn {
        self.turn(prompt);
        self.end()
    }

    pub(crate) fn session_id(&self) -> String {
        self.session.session_id().expect("a session").to_string()
    }

    fn feed(&mut self) -> Option<String> {
        let mut line = self.lines.pop_front()?;
        for (recorded, ours) in &self.ids {
            line = line.replace(recorded, ours);
        }
        self.session.line(line.as_bytes());
        self.settle();
        if self.session.turn() == Some(teamster_core::provider::TurnOrigin::Unasked)
            && self.session.is_over()
        {
            let turn = self.ended();
            self.unasked.push(turn);
        }
        Some(line)
    }

    fn settle(&mut self) {
        for event in self.session.out().drain() {
            match event {
                // Every recording has them; the stories are about the rest.
                AgentEvent::Offers(offers) => self.offers.push(*offers),
                event => self.events.push(event),
            }
        }
        let written = self.session.outbox(Outbox::take_input);
        for line in written.split_inclusive(|b| *b == b'\n') {
            assert_eq!(line.last(), Some(&b'\n'), "a whole line");
            let line: Value = serde_json::from_slice(line).expect("a line of JSON");
            if line["request"]["subtype"] == "initialize" {
                continue;
            }
            let ours = |id: &Value| id.as_str().expect("an id").to_owned();
            let recorded = match line["type"].as_str() {
                Some("user") => {
                    let recorded = self.messages.pop_front().flatten();
                    recorded.map(|recorded| (recorded, ours(&line["uuid"])))
                }
                Some("control_request") => {
                    let kind = line["request"]["subtype"].as_str().unwrap();
                    let recorded = self.requests.get_mut(kind);
                    let recorded = recorded.and_then(VecDeque::pop_front);
                    recorded.map(|it| (format!("\"{it}\""), format!("{}", line["request_id"])))
                }
                _ => None,
            };
            self.ids.extend(recorded);
            self.written.push(line);
        }
        let settled = self.session.outbox(Outbox::take_answers);
        for (command, _) in &settled {
            let before = self.settled.iter().any(|(it, _)| it == command);
            assert!(!before, "{command:?} was answered twice");
        }
        self.settled.extend(settled);
        self.asked
            .extend(self.session.outbox(Outbox::take_requests));
        self.withdrawn
            .extend(self.session.outbox(Outbox::take_withdrawn));
    }
}
