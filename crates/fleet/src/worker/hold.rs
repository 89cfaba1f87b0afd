//! Limits that agents of this machine have reported, and those of the fleet that hold them back here.

use teamster_api::{LogLine, RunLogEntry, ServiceError, Spec, either};
use teamster_core::sync::lock;
use teamster_core::{AgentError, AgentEvent, ErrorKind};

use super::Shared;
use crate::Hold;

/// Returns whether a run uses its agents' own logins alone. A named account has limits of its own, which its machine knows.
pub(super) fn has_own_logins(spec: &Spec) -> bool {
    either!(spec, spec => spec.accounts.is_empty())
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
        let Some(login) = self.login_of(provider) else {
            return;
        };
        let hold = Hold {
            provider: provider.to_owned(),
            login,
            limit,
            until,
        };
        if self.remember(&hold) {
            self.fleet.hold(&hold).await;
        }
    }

    /// Returns the mark of the login of an agent of this machine, if it is known.
    fn login_of(&self, provider: &str) -> Option<String> {
        let agents = lock(&self.agents);
        let agent = agents.iter().find(|agent| agent.id == provider)?;
        agent.login.clone()
    }

    /// Remembers a hold. Returns whether it was not known.
    fn remember(&self, hold: &Hold) -> bool {
        let mut holds = lock(&self.holds);
        let is_new = !holds.contains(hold);
        if is_new {
            holds.push(hold.clone());
        }
        is_new
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
        let login = self.login_of(provider)?;
        let holds = lock(&self.holds);
        let holds = holds.iter().filter(|hold| hold.until > now);
        let of_login = holds.filter(|hold| hold.provider == provider && hold.login == login);
        of_login.map(|hold| hold.until).max()
    }

    /// Refuses an agent that is held back, also by a report that was not read yet.
    pub(super) async fn check_hold(&self, provider: &str) -> Result<(), ServiceError> {
        if let Some(login) = self.login_of(provider)
            && let Some(hold) = self.fleet.hold_of(provider, &login).await?
        {
            self.remember(&hold);
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
