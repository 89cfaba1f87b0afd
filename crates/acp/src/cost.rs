//! The cost of a turn, of an agent that reports the cost of the session.

use teamster_core::CostSource;

/// What a session has cost, from turn to turn.
#[derive(Debug, Clone, Default)]
pub struct SessionCost {
    /// When the last turn ended; unknown for a session that goes on.
    before: Option<f64>,
    now: Option<f64>,
}

impl SessionCost {
    /// Of a session that was just opened: a new one, or one in which something was said before.
    pub fn new(is_new: bool) -> Self {
        Self {
            before: is_new.then_some(0.0),
            now: None,
        }
    }

    /// What the session had cost before it was opened, in USD, where that is known.
    pub fn was(&mut self, usd: f64) {
        self.before = Some(usd);
    }

    /// The cost of the session so far that the agent reports, in USD.
    pub fn is_now(&mut self, usd: f64) {
        self.now = Some(usd);
    }

    /// What the turn has cost that has just ended. `None` for a turn before which it is not
    /// known what the session had cost, nor if it was nothing: that is what agents say who do not know
    /// the price.
    pub fn of_turn(&mut self) -> Option<(f64, CostSource)> {
        let spent = self.now.zip(self.before).map(|(now, before)| now - before);
        self.before = self.now.or(self.before);
        // Sums of such numbers are not exact.
        let spent = spent.map(|usd| (usd * 1e9).round() / 1e9);
        let spent = spent.filter(|usd| *usd > 0.0);
        spent.map(|usd| (usd, CostSource::Reported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_costs_what_it_added() {
        let usd = |cost: &mut SessionCost| cost.of_turn().map(|(usd, _)| usd);
        let mut cost = SessionCost::new(true);
        assert_eq!(usd(&mut cost), None);
        cost.is_now(0.1);
        assert_eq!(usd(&mut cost), Some(0.1));
        assert_eq!(usd(&mut cost), None);
        cost.is_now(0.3);
        assert_eq!(usd(&mut cost), Some(0.2));

        let mut cost = SessionCost::new(false);
        cost.is_now(1.0);
        assert_eq!(usd(&mut cost), None);
        cost.is_now(1.5);
        assert_eq!(usd(&mut cost), Some(0.5));

        let mut cost = SessionCost::new(false);
        cost.was(1.0);
        cost.is_now(1.2);
        assert_eq!(usd(&mut cost), Some(0.2));
    }
}
