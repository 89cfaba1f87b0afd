//! Cost of a turn, for agents that report the cost of the session.

use teamster_core::CostSource;

/// Beginning of a session that was just opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionOrigin {
    /// It has no turns yet.
    New,
    /// It has earlier turns.
    Continued,
}

/// Cost of a session from turn to turn.
#[derive(Debug, Clone, Default)]
pub struct SessionCost {
    /// Cost at the end of the last turn, in USD; `None` if unknown, as for a resumed session.
    before: Option<f64>,
    now: Option<f64>,
}

impl SessionCost {
    /// Creates the cost of a session that was just opened.
    pub fn new(origin: SessionOrigin) -> Self {
        Self {
            before: (origin == SessionOrigin::New).then_some(0.0),
            now: None,
        }
    }

    /// Sets the cost of the session before it was opened, in USD.
    pub fn was(&mut self, usd: f64) {
        self.before = Some(usd);
    }

    /// Sets the session's current cost as the agent reports it, in USD.
    pub fn is_now(&mut self, usd: f64) {
        self.now = Some(usd);
    }

    /// Returns the cost of the turn that has just ended, in USD. `None` if the cost before the turn is unknown, or if
    /// the result is 0: agents report 0 when they do not know the price.
    pub fn of_turn(&mut self) -> Option<(f64, CostSource)> {
        let spent = self.now.zip(self.before).map(|(now, before)| now - before);
        self.before = self.now.or(self.before);
        // Round: sums of floating-point numbers are inexact.
        let spent = spent.map(|usd| (usd * 1e9).round() / 1e9);
        let spent = spent.filter(|usd| *usd > 0.0);
        spent.map(|usd| (usd, CostSource::Reported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_turn_is_the_increase() {
        let usd = |cost: &mut SessionCost| cost.of_turn().map(|(usd, _)| usd);
        let mut cost = SessionCost::new(SessionOrigin::New);
        assert_eq!(usd(&mut cost), None);
        cost.is_now(0.1);
        assert_eq!(usd(&mut cost), Some(0.1));
        assert_eq!(usd(&mut cost), None);
        cost.is_now(0.3);
        assert_eq!(usd(&mut cost), Some(0.2));

        let mut cost = SessionCost::new(SessionOrigin::Continued);
        cost.is_now(1.0);
        assert_eq!(usd(&mut cost), None);
        cost.is_now(1.5);
        assert_eq!(usd(&mut cost), Some(0.5));

        let mut cost = SessionCost::new(SessionOrigin::Continued);
        cost.was(1.0);
        cost.is_now(1.2);
        assert_eq!(usd(&mut cost), Some(0.2));
    }
}
