//! Limits that agents of this machine have reported, and those of the fleet that hold them back here.

use std::fmt::Write as _;
use std::fs;

use ring::hmac;
use serde_json::Value;
use teamster_api::{LogLine, ProviderLogin, RunLogEntry, ServiceError};
use teamster_core::sync::lock;
use teamster_core::{AgentError, AgentEvent, ErrorKind};

use super::Shared;
use crate::Hold;
use crate::protocol::Tag;

/// Field of the file of Codex's login with the id of the account, which is the same on all machines. The file of Claude
/// Code's login has none.
const ACCOUNT: &str = "/tokens/account_id";
/// Length of a variable from which on it is taken for a key, in bytes.
const SHORTEST_KEY: usize = 6;
/// Length of a mark, in hexadecimal digits.
const MARK: usize = 32;

/// Returns the mark of an agent's login: the same on all machines that have the key or the account, if its id is known.
/// Without the fleet's salt, which is not on any machine, it tells nothing about them.
pub(super) fn mark(salt: &[u8], machine: Tag, provider: &str, login: &ProviderLogin) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, salt);
    let (kind, identity) = identity(machine, login);
    let mut context = hmac::Context::with_key(&key);
    for part in [provider, kind, &identity] {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part.as_bytes());
    }
    let mut text = String::new();
    for byte in &context.sign().as_ref()[..MARK / 2] {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns what a login is known by.
fn identity(machine: Tag, login: &ProviderLogin) -> (&'static str, String) {
    let of_machine = ("machine", machine.to_string());
    let Some(from) = &login.from else {
        return of_machine;
    };
    if !from.contains('/') {
        return match std::env::var(from) {
            Ok(key) if key.len() >= SHORTEST_KEY => ("key", key),
            // Not a key, but a switch such as `CLAUDE_CODE_USE_BEDROCK=1`.
            _ => of_machine,
        };
    }
    let json = fs::read_to_string(from).ok();
    let json: Option<Value> = json.and_then(|text| serde_json::from_str(&text).ok());
    let account = json
        .as_ref()
        .and_then(|json| json.pointer(ACCOUNT)?.as_str());
    account.map_or(of_machine, |account| ("account", account.to_owned()))
}

/// A limit that is reached: its name, and its end in milliseconds since the Unix epoch.
type Reached = (Option<String>, u64);

/// Returns the limit that an entry of a log reports as reached at this time.
fn reached(line: &LogLine, now: u64) -> Option<Reached> {
    // Most entries are not read.
    let json = std::str::from_utf8(line.json()).ok()?;
    if !json.contains("\"resetsAt\"") {
        return None;
    }
    let RunLogEntry::Agent(entry) = serde_json::from_str(json).ok()? else {
        return None;
    };
    let of_error = |error: &AgentError| {
        (error.kind == ErrorKind::Quota).then_some((None, error.resets_at_ms?))
    };
    let reached = match &entry.event {
        AgentEvent::RateLimit(limit) if !limit.is_allowed() => {
            Some((limit.kind.clone(), limit.resets_at_ms?))
        }
        AgentEvent::Error(event) => of_error(&event.error),
        AgentEvent::Retry(retry) => of_error(&retry.error),
        AgentEvent::Done(done) => done.result.errors.iter().find_map(of_error),
        _ => None,
    };
    reached.filter(|(_, until)| *until > now)
}

impl Shared {
    /// Holds an agent back on all machines with the login of this one if these entries report that a limit is reached.
    pub(super) async fn note_limits(&self, provider: &str, lines: &[LogLine]) {
        let now = self.fleet.now().await;
        let Some((limit, until)) = lines
            .iter()
            .filter_map(|line| reached(line, now))
            .max_by_key(|(_, until)| *until)
        else {
            return;
        };
        let login = {
            let agents = lock(&self.agents);
            let agent = agents.iter().find(|agent| agent.id == provider);
            agent.and_then(|agent| agent.login.clone())
        };
        let Some(login) = login else {
            return;
        };
        let hold = Hold {
            provider: provider.to_owned(),
            login,
            limit,
            until,
        };
        let is_new = {
            let mut holds = lock(&self.holds);
            let is_new = !holds.contains(&hold);
            if is_new {
                holds.push(hold.clone());
            }
            is_new
        };
        if is_new {
            self.fleet.hold(&hold).await;
        }
    }

    /// Reads which agents are held back.
    pub(super) async fn read_holds(&self) {
        // Without an answer, those that are known hold.
        if let Ok(holds) = self.fleet.holds().await {
            *lock(&self.holds) = holds;
        }
    }

    /// Returns until when an agent is held back here, in milliseconds since the Unix epoch.
    pub(super) async fn held_until(&self, provider: &str) -> Option<u64> {
        let now = self.fleet.now().await;
        let agents = lock(&self.agents);
        let agent = agents.iter().find(|agent| agent.id == provider)?;
        let login = agent.login.as_deref()?;
        let holds = lock(&self.holds);
        let holds = holds.iter().filter(|hold| hold.until > now);
        let of_login = holds.filter(|hold| hold.provider == provider && hold.login == login);
        of_login.map(|hold| hold.until).max()
    }

    /// Refuses an agent that is held back, also by a report that was not read yet.
    pub(super) async fn check_hold(&self, provider: &str) -> Result<(), ServiceError> {
        let login = {
            let agents = lock(&self.agents);
            let agent = agents.iter().find(|agent| agent.id == provider);
            agent.and_then(|agent| agent.login.clone())
        };
        if let Some(login) = login
            && let Some(hold) = self.fleet.hold_of(provider, &login).await?
        {
            let mut holds = lock(&self.holds);
            if !holds.contains(&hold) {
                holds.push(hold);
            }
        }
        if self.held_until(provider).await.is_none() {
            return Ok(());
        }
        let problem = "it has reached the limit of its login";
        Err(AgentError::refused("provider", problem).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(from: &str) -> ProviderLogin {
        serde_json::from_value(serde_json::json!({ "state": "yes", "from": from })).unwrap()
    }

    #[test]
    fn a_mark_is_that_of_the_account_on_all_machines() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::write(&file, text).unwrap();
            login(file.to_str().unwrap())
        };
        // Made by hand: the part of Codex's file that is read.
        let one = file("1", r#"{"tokens":{"account_id":"a-1","access_token":"x"}}"#);
        let same = file("2", r#"{"tokens":{"account_id":"a-1","access_token":"y"}}"#);
        let other = file("3", r#"{"tokens":{"account_id":"a-2","access_token":"x"}}"#);
        let [w1, w2] = [1, 2].map(Tag::of);
        let of = |machine, login: &ProviderLogin| mark(b"salt", machine, "codex", login);
        assert_eq!(of(w1, &one), of(w2, &same));
        assert_ne!(of(w1, &one), of(w1, &other));
        assert_ne!(of(w1, &one), mark(b"other", w1, "codex", &one));
        assert_ne!(of(w1, &one), mark(b"salt", w1, "claude", &one));
        assert_eq!(of(w1, &one).len(), MARK);
        // Of an account that is not known, a limit holds on its machine alone.
        let unknown = file("4", "{}");
        assert_ne!(of(w1, &unknown), of(w2, &unknown));
        assert_eq!(of(w1, &unknown), of(w1, &login("/no/file")));
    }

    #[test]
    fn a_limit_is_reached_only_if_it_is_refused_and_not_over() {
        // Made by hand: entries of a log.
        let line = |event: &str| {
            let json = format!(r#"{{"seq":1,"atMs":1,"attempt":1,{event}}}"#);
            LogLine::from_json(json.into_bytes(), "r").unwrap()
        };
        let future = 60_000;
        let limit = |status: &str, at: u64| {
            line(&format!(
                r#""type":"rate_limit","status":"{status}","resetsAt":{at},"kind":"five_hour""#
            ))
        };
        let named = Some("five_hour".to_owned());
        assert_eq!(
            reached(&limit("rejected", future), 1),
            Some((named, future))
        );
        assert_eq!(reached(&limit("allowed_warning", future), 1), None);
        assert_eq!(reached(&limit("rejected", 1), 1), None);
        assert_eq!(
            reached(&line(r#""type":"text","text":"\"resetsAt\"""#), 1),
            None
        );
    }
}
