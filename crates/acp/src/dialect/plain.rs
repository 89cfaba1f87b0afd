//! The dialect of agents that have none of their own.

use serde_json::{Map, Value};
use teamster_core::{AgentError, PermissionMode, Usage};

use super::{Dialect, Figures, no_mode, only_always};
use crate::cost::{SessionCost, SessionOrigin};
use crate::errors::{RequestKind, RpcError};
use crate::known::{Known, TokensOf};
use crate::peer;
use crate::settings::{Approve, ModeSwitch};
use crate::tokens::{SessionTokens, cost_beside};
use crate::tool::{PermissionOption, Tool, ToolCall, ToolEnd};
use crate::turn::TurnSoFar;

/// Dialect of an agent that has none of its own.
#[derive(Debug, Clone)]
pub struct PlainDialect {
    name: String,
    cost: SessionCost,
    /// Tokens of the session at the end of the last turn; `None` if they are unknown, as for a resumed session.
    tokens: Option<SessionTokens>,
    /// Tokens of the session so far, if the agent reports them beside its updates.
    tokens_now: Option<SessionTokens>,
    is_teamster: bool,
    known: Known,
}

impl PlainDialect {
    /// Creates the dialect of an agent with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            cost: SessionCost::default(),
            tokens: None,
            tokens_now: None,
            is_teamster: false,
            known: Known::default(),
        }
    }

    /// Sets whether the agent is another teamster, whose permission modes have the same names.
    pub(crate) fn teamster(mut self, is_teamster: bool) -> Self {
        self.is_teamster = is_teamster;
        self
    }

    /// Returns the tokens of the turn that has just ended, if it is known what the agent counts.
    fn tokens_of_turn(&mut self, result: &Value) -> Option<Usage> {
        self.known.tokens?;
        let now = SessionTokens::of(result).or(self.tokens_now)?;
        now.since(self.tokens.replace(now)?)
    }
}

/// Names that agents give to the mode in which they ask before tools with side effects.
const ASKS: &[&str] = &["default", "ask", "manual"];
/// Names that agents give to modes in which they allow all tools.
const ALLOWS_ALL: &[&str] = &["bypassPermissions", "bypass", "full-access", "yolo"];
/// Names that agents give to modes in which they allow edits.
const ALLOWS_EDITS: &[&str] = &["acceptEdits", "accept-edits", "auto-edit", "autoEdit"];

impl Dialect for PlainDialect {
    fn name(&self) -> &str {
        &self.name
    }

    /// The permission mode is kept by the answers to the agent's requests, so the agent must ask. Its user may have
    /// configured otherwise, as `claude-agent-acp` takes its first mode from the user's settings. A mode of the agent's
    /// that seems to fit would allow more than is approved here, and would remain when the session is brought to a
    /// stricter one.
    fn initial_mode(
        &self,
        current: &str,
        offered: &[&str],
        approve: Approve,
    ) -> Result<Option<String>, AgentError> {
        if self.is_teamster || ASKS.contains(&current) {
            return Ok(None);
        }
        if let Some(asking) = ASKS.iter().find(|mode| offered.contains(mode)) {
            return Ok(Some((*asking).to_owned()));
        }
        let fits = match approve {
            Approve::Everything => true,
            Approve::Edits => !ALLOWS_ALL.contains(&current),
            _ => !ALLOWS_ALL.contains(&current) && !ALLOWS_EDITS.contains(&current),
        };
        if fits {
            return Ok(None);
        }
        Err(AgentError::refused(
            "permission",
            format!(
                "{} is in its mode {current} and has no mode that asks for permission; choose another in its settings, or allow \
                 everything",
                self.name
            ),
        ))
    }

    fn session_meta(&mut self, agent: &str) -> Option<Map<String, Value>> {
        self.known = Known::of(agent);
        self.known.session_meta.clone()
    }

    fn always<'a>(&self, options: &'a [PermissionOption]) -> Option<&'a PermissionOption> {
        only_always(options).filter(|_| !self.known.always_is_more)
    }

    fn session_opened(&mut self, origin: SessionOrigin) {
        self.cost = SessionCost::new(origin);
        let is_zero = origin == SessionOrigin::New || self.known.tokens == Some(TokensOf::Process);
        self.tokens = is_zero.then(SessionTokens::default);
        self.tokens_now = None;
    }

    fn figures_so_far(&mut self, meta: &Value) -> Option<f64> {
        self.tokens_now = SessionTokens::beside(meta).or(self.tokens_now);
        cost_beside(meta)
    }

    fn set_earlier_cost(&mut self, usd: f64) {
        self.cost.was(usd);
    }

    fn set_session_cost(&mut self, usd: f64) {
        self.cost.is_now(usd);
    }

    /// Token counts are omitted unless it is known what they are those of: some agents report those of the turn, others
    /// those of the session.
    fn figures(&mut self, result: &Value, _: &TurnSoFar) -> Figures {
        let cost = self.cost.of_turn();
        let usage = self.tokens_of_turn(result);
        peer::figures(result).unwrap_or_else(|| Figures {
            usage,
            cost,
            ..Figures::default()
        })
    }

    /// Hermes (0.19.0) prints nothing more of a call until it ends.
    fn can_emit(&self, call: &ToolCall) -> bool {
        call.has_arguments() || call.shown_command().is_some()
    }

    fn tool(&mut self, call: &ToolCall) -> Tool {
        peer::tool(call, call.plain())
    }

    fn tool_end(&mut self, call: &ToolCall, _: &Tool) -> ToolEnd {
        let mut end = call.plain_end();
        if let Some(output) = peer::output(call) {
            output.clone_into(&mut end.output);
        }
        if let Some(changes) = peer::changes(call) {
            end.effects = changes;
        }
        end
    }

    fn error(&self, error: &RpcError, during: RequestKind) -> AgentError {
        peer::error(error).unwrap_or_else(|| error.plain(during))
    }

    /// fast-agent (0.10.48) announces a command without its arguments, runs it, and prints nothing more of it.
    fn reports_every_call(&self) -> bool {
        false
    }

    fn mode(&self, mode: PermissionMode) -> Result<ModeSwitch, AgentError> {
        if self.is_teamster {
            let approve = Approve::of(mode);
            // This side approves these tools itself, so the other side must request them.
            let on_its_side = approve.map_or(mode, |_| PermissionMode::Default);
            let on_its_side = on_its_side.as_str().to_owned();
            return Ok(ModeSwitch::ModeAndAnswers(
                on_its_side,
                approve.unwrap_or_default(),
            ));
        }
        let approve = Approve::of(mode).ok_or_else(|| no_mode(&self.name, mode))?;
        Ok(ModeSwitch::Answers(approve))
    }
}

#[cfg(test)]
mod tests {
    //! Made-up figures.

    use serde_json::json;

    use super::*;

    /// Returns the input of two turns, of which the agent reports 100 and 160 tokens.
    fn inputs(agent: &str, origin: SessionOrigin) -> [Option<u64>; 2] {
        let mut dialect = PlainDialect::new("x");
        dialect.session_meta(agent);
        dialect.session_opened(origin);
        [100, 160].map(|input| {
            let result = json!({"stopReason": "end_turn", "usage": {"inputTokens": input}});
            let figures = dialect.figures(&result, &TurnSoFar::default());
            figures.usage?.input_tokens
        })
    }

    #[test]
    fn tokens_are_reported_of_agents_whose_count_is_known() {
        let (new, continued) = (SessionOrigin::New, SessionOrigin::Continued);
        for (agent, origin, expected) in [
            ("hermes-agent", new, [Some(100), Some(60)]),
            ("hermes-agent", continued, [Some(100), Some(60)]),
            ("@mistralai/mistral-vibe", new, [Some(100), Some(60)]),
            ("@mistralai/mistral-vibe", continued, [None, Some(60)]),
            ("my-agent", new, [None, None]),
        ] {
            assert_eq!(inputs(agent, origin), expected, "{agent} {origin:?}");
        }
    }
}
