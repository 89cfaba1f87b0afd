//! The names of a run on this machine and outside.
//!
//! Here it has its owner in its id, so that two owners and the user of this machine can have runs with one id. What leaves
//! this machine has the id that the fleet knows.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_with::{DeserializeAs, Map, Same};
use teamster_api::{
    Command, LiveStatus, LogLine, PendingRequest, Reply, RunSummary, RunView, ServiceError,
};
use teamster_host::state;

use crate::Fleet;
use crate::names::RunKey;

#[derive(Debug, Clone)]
pub(super) struct Outside {
    local: String,
    run: String,
    /// What the branch of a run begins with here if it has no other name.
    branch: String,
    /// How far the clock of this machine is ahead of the server's, in milliseconds.
    ahead: i64,
}

/// Where in an entry of a log a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Location {
    Entry,
    Result,
    Workspace,
    Meta,
}

impl Outside {
    pub(super) fn of(key: &RunKey) -> Self {
        Self {
            local: key.local(),
            run: key.run.clone(),
            branch: format!("teamster/{}@", key.owner),
            ahead: 0,
        }
    }

    /// Shows times by the clock of the server, if that of this machine is wrong. Entries of logs keep theirs.
    pub(super) async fn with_clock(mut self, fleet: &Fleet) -> Self {
        self.ahead = fleet.clock_ahead().await.unwrap_or_default();
        self
    }

    fn date(&self, time: &mut u64) {
        *time = time.saturating_add_signed(-self.ahead);
    }

    /// Returns an id of the run, of one of its turns or requests, as it is outside.
    fn id(&self, id: &str) -> Option<String> {
        replaced(id, &self.local, &self.run)
    }

    fn rename(&self, id: &mut String) {
        if let Some(outside) = self.id(id) {
            *id = outside;
        }
    }

    fn rename_branch(&self, branch: &mut Option<String>) {
        if let Some(name) = branch
            && let Some(rest) = name.strip_prefix(&self.branch)
        {
            *name = format!("teamster/{rest}");
        }
    }

    fn rename_request(&self, request: &mut PendingRequest) {
        self.rename(&mut request.run_id);
        self.rename(&mut request.request_id);
        self.date(&mut request.asked_at_ms);
        if let Some(time) = &mut request.expires_at_ms {
            self.date(time);
        }
    }

    fn show_live(&self, live: &mut LiveStatus) {
        self.date(&mut live.since);
        if let Some(turn) = &mut live.turn {
            self.rename(&mut turn.run_id);
            self.date(&mut turn.began_at_ms);
        }
    }

    /// Returns a command from outside for the run of this machine.
    pub(super) fn command(&self, mut command: Command) -> Command {
        if let Command::Answer { request_id, .. } = &mut command
            && let Some(local) = replaced(request_id, &self.run, &self.local)
        {
            *request_id = local;
        }
        command
    }

    pub(super) fn reply(&self, mut reply: Reply) -> Reply {
        match &mut reply {
            Reply::Requests { requests } => {
                for request in requests {
                    self.rename_request(request);
                }
            }
            Reply::Status { status } => self.show_live(status),
            Reply::Turn { run_id, .. } => self.rename(run_id),
            Reply::Refused { message, .. } => *message = self.text(message),
            _ => {}
        }
        reply
    }

    pub(super) fn summary(&self, mut summary: RunSummary) -> RunSummary {
        self.rename(&mut summary.info.run_id);
        self.rename_branch(&mut summary.info.branch);
        // That of another run of its owner.
        if let Some(first) = &mut summary.info.continues
            && let Some(run) = first.strip_prefix(self.owner())
        {
            *first = run.to_owned();
        }
        for request in &mut summary.requests {
            self.rename_request(request);
        }
        let times = [&mut summary.since, &mut summary.changed_at_ms];
        for time in times.into_iter().flatten() {
            self.date(time);
        }
        if let Some(live) = &mut summary.live {
            self.show_live(live);
        }
        if let Some(workspace) = &mut summary.workspace {
            self.rename_branch(&mut workspace.branch);
        }
        summary
    }

    pub(super) fn view(&self, mut view: RunView) -> RunView {
        view.summary = Arc::new(self.summary(Arc::unwrap_or_clone(view.summary)));
        if let Some(workspace) = view.result.as_mut().and_then(|it| it.workspace.as_mut()) {
            self.rename_branch(&mut workspace.branch);
        }
        view
    }

    pub(super) fn error(&self, mut error: ServiceError) -> ServiceError {
        error.message = self.text(&error.message);
        if let Some(run) = &mut error.run_id {
            self.rename(run);
        }
        if let Some(agent) = &mut error.agent_error {
            agent.message = self.text(&agent.message);
        }
        error
    }

    fn text(&self, text: &str) -> String {
        let runs = state::runs();
        self.text_with(text, |run| {
            let local = self.owned(run);
            let runs = runs.as_ref().ok();
            runs.is_some_and(|runs| runs.root().join(local).is_dir())
        })
    }

    /// Returns the id on this machine of a run of the owner.
    fn owned(&self, run: &str) -> String {
        format!("{}{run}", self.owner())
    }

    /// Returns with what the ids of the owner's runs begin here.
    fn owner(&self) -> &str {
        self.branch.trim_start_matches("teamster/")
    }

    /// Returns a text with the ids of the owner's runs as they are outside. Other texts that look like one, such as an
    /// address, stay: `is_here` returns whether this machine has a run of the owner with this id.
    fn text_with(&self, text: &str, is_here: impl Fn(&str) -> bool) -> String {
        // Also those of other runs of the owner, such as the one that is in the way.
        let owner = self.owner();
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(owner) {
            let (before, found) = rest.split_at(at);
            shown.push_str(before);
            // Not the end of another name, nor an address of mail.
            let is_part = |before: char| before.is_alphanumeric() || "_-.@+".contains(before);
            rest = &found[owner.len()..];
            if shown.ends_with(is_part) || !self.begins_with_run(rest, &is_here) {
                shown.push_str(owner);
            }
        }
        shown + rest
    }

    /// Returns whether a text begins with the id of a run, of a turn or of a request.
    fn begins_with_run(&self, text: &str, is_here: impl Fn(&str) -> bool) -> bool {
        let is_part = |at: char| at.is_ascii_alphanumeric() || "_.:-~".contains(at);
        let end = text.find(|at| !is_part(at)).unwrap_or(text.len());
        let mut id = &text[..end];
        loop {
            if id == self.run || !id.is_empty() && is_here(id) {
                return true;
            }
            // What follows may be the number of a turn, a colon or a full stop.
            match id.rfind(['.', ':']) {
                Some(at) if id[at + 1..].bytes().all(|byte| byte.is_ascii_digit()) => {
                    id = &id[..at];
                }
                _ => return false,
            }
        }
    }

    /// Returns the beginning of a git bundle of the run, which has the names of its refs in lines before an empty one.
    pub(super) fn bundle(&self, beginning: &[u8]) -> Vec<u8> {
        let of_refs = |branch: &str| format!(" refs/{branch}").into_bytes();
        let (here, outside) = (of_refs(&self.branch), of_refs("teamster/"));
        let mut renamed = Vec::with_capacity(beginning.len());
        let mut lines = beginning.split_inclusive(|byte| *byte == b'\n');
        let mut read = 0;
        for line in lines.by_ref() {
            read += line.len();
            match line.windows(here.len()).position(|part| part == here) {
                Some(at) => {
                    renamed.extend_from_slice(&line[..at]);
                    renamed.extend_from_slice(&outside);
                    renamed.extend_from_slice(&line[at + here.len()..]);
                }
                None => renamed.extend_from_slice(line),
            }
            if line == b"\n" {
                break;
            }
        }
        renamed.extend_from_slice(&beginning[read..]);
        renamed
    }

    /// Returns an entry of the log. What the agent wrote is not changed.
    pub(super) fn line(&self, line: LogLine) -> LogLine {
        let renamed = std::str::from_utf8(line.json()).ok();
        let renamed = renamed.and_then(|json| self.object(json, Location::Entry));
        let renamed = renamed.and_then(|json| LogLine::from_json(json.into_bytes(), &self.run));
        renamed.unwrap_or(line)
    }

    /// Returns an object with the ids as they are outside; `None` if it is none.
    fn object(&self, json: &str, location: Location) -> Option<String> {
        let fields = fields(json)?;
        let is_end = fields.iter().any(|(name, value)| {
            name == "type" && matches!(value.get(), r#""done""# | r#""run:end""#)
        });
        let mut renamed = String::with_capacity(json.len());
        for (name, value) in fields {
            renamed.push(if renamed.is_empty() { '{' } else { ',' });
            renamed.push_str(&serde_json::to_string(&name).ok()?);
            renamed.push(':');
            let value = value.get();
            let other = match (location, &*name) {
                (Location::Entry | Location::Meta, "runId") | (Location::Entry, "requestId") => {
                    string(value, |id| self.id(&id))
                }
                (Location::Workspace, "branch") => string(value, |name| {
                    let mut branch = Some(name);
                    self.rename_branch(&mut branch);
                    branch
                }),
                (Location::Entry, "result") if is_end => self.object(value, Location::Result),
                (Location::Result, "workspace") => self.object(value, Location::Workspace),
                (Location::Result, "meta") => self.object(value, Location::Meta),
                _ => None,
            };
            renamed.push_str(other.as_deref().unwrap_or(value));
        }
        if renamed.is_empty() {
            renamed.push('{');
        }
        renamed.push('}');
        Some(renamed)
    }
}

/// Returns a text in JSON with another content, if it gets one.
fn string(json: &str, rename: impl Fn(String) -> Option<String>) -> Option<String> {
    let text = serde_json::from_str(json).ok()?;
    serde_json::to_string(&rename(text)?).ok()
}

/// Returns an id with another beginning, if it is that of a run, or of one of its turns or requests.
fn replaced(id: &str, from: &str, to: &str) -> Option<String> {
    let rest = id.strip_prefix(from)?;
    let is_part = rest.is_empty() || rest.starts_with(['.', '/']);
    is_part.then(|| format!("{to}{rest}"))
}

/// Returns the fields of an object in their order, with their texts as they are; `None` if it is none.
fn fields(json: &str) -> Option<Vec<(String, &RawValue)>> {
    let mut json = serde_json::Deserializer::from_str(json);
    let fields = Map::<Same, Same>::deserialize_as(&mut json).ok()?;
    json.end().ok()?;
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outgoing_log_has_the_id_of_the_fleet_and_the_agents_words() {
        let outside = Outside::of(&RunKey::new("ann", "fix"));
        // Made by hand: entries of a log.
        for (local, shown) in [
            (
                r#"{"seq":1,"atMs":2,"runId":"ann@fix","attempt":1,"type":"text","text":"ann@fix \ud83d"}"#,
                r#"{"seq":1,"atMs":2,"runId":"fix","attempt":1,"type":"text","text":"ann@fix \ud83d"}"#,
            ),
            (
                r#"{"seq":1,"atMs":2,"runId":"ann@fix.3","attempt":1,"type":"permission","requestId":"ann@fix.3/1"}"#,
                r#"{"seq":1,"atMs":2,"runId":"fix.3","attempt":1,"type":"permission","requestId":"fix.3/1"}"#,
            ),
            (
                r#"{"seq":1,"type":"run:end","runId":"ann@fix","result":{"meta":{"runId":"ann@fix"}}}"#,
                r#"{"seq":1,"type":"run:end","runId":"fix","result":{"meta":{"runId":"fix"}}}"#,
            ),
            (
                r#"{"seq":1,"type":"done","result":{"workspace":{"branch":"teamster/ann@fix"},"x":{}}}"#,
                r#"{"seq":1,"type":"done","result":{"workspace":{"branch":"teamster/fix"},"x":{}}}"#,
            ),
            (
                r#"{"seq":1,"type":"tool_use","input":{"runId":"ann@fix"},"result":{"meta":{"runId":"ann@fix"}}}"#,
                r#"{"seq":1,"type":"tool_use","input":{"runId":"ann@fix"},"result":{"meta":{"runId":"ann@fix"}}}"#,
            ),
            (
                r#"{"seq":1,"runId":"ann@fix-2","type":"text"}"#,
                r#"{"seq":1,"runId":"ann@fix-2","type":"text"}"#,
            ),
        ] {
            let line = LogLine::from_json(local.into(), "ann@fix").unwrap();
            let is_end = line.is_end();
            let line = outside.line(line);
            assert_eq!(std::str::from_utf8(line.json()).unwrap(), shown);
            assert_eq!(line.is_end(), is_end);
        }
        let answer = |id: &str| {
            let json = serde_json::json!({
                "command": "answer", "requestId": id, "answer": { "decision": "allow" },
            });
            serde_json::from_value::<Command>(json).unwrap()
        };
        assert_eq!(outside.command(answer("fix/1")), answer("ann@fix/1"));
        assert_eq!(outside.command(answer("fix-2/1")), answer("fix-2/1"));
        for (here, shown) in [
            ("run ann@fix has ended", "run fix has ended"),
            ("in use by ann@other: wait", "in use by other: wait"),
            ("/runs/ann@fix.3, joann@fix", "/runs/fix.3, joann@fix"),
            (
                "see ann@fix: it waits for ann@other.",
                "see fix: it waits for other.",
            ),
            ("branch teamster/ann@fix", "branch teamster/fix"),
            // Before, the name was cut off of these.
            ("ann@git.example:repo", "ann@git.example:repo"),
            ("by <ann@example.com>", "by <ann@example.com>"),
            ("ann@fix-2, ann@fix.example", "ann@fix-2, ann@fix.example"),
            ("ann@", "ann@"),
        ] {
            assert_eq!(outside.text_with(here, |run| run == "other"), shown);
        }
        let bundle = |refs: &str| format!("# v2 git bundle\n-1 old\n2 {refs}\n\nPACK {refs}");
        assert_eq!(
            outside.bundle(bundle("refs/teamster/ann@fix/head").as_bytes()),
            bundle("refs/teamster/fix/head")
                .replace("PACK refs/teamster/", "PACK refs/teamster/ann@")
                .as_bytes()
        );
    }
}
