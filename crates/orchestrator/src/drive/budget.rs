//! Enforcement of a run's budget over all its attempts.
//!
//! A CLI with a limit of its own also gets the remaining budget as a parameter of each attempt; see `drive`.
//! [`Budget::check`] refuses a budget that cannot be enforced for a candidate.

use std::future::pending;
use std::sync::atomic::Ordering;

use teamster_core::{AgentError, BudgetKind, ErrorCode, ErrorDetail, ErrorKind};
use tokio::task::AbortHandle as TaskHandle;
use tokio::time::sleep;

use super::Driver;
use crate::SharedBudget;
use crate::account::Spent;
use crate::request::Budget;
use crate::shared_budget::{Share, figure};

impl Driver {
    /// Returns an error if the budget is used up, so that no further attempt may begin.
    pub(super) fn over_budget(&self) -> Option<AgentError> {
        let (budget, spent) = (&self.budget, self.account.spent());
        let used = spent.tokens();
        if let Some(most) = budget.tokens.filter(|most| used >= Some(*most)) {
            return Some(budget_error(BudgetKind::Tokens, Some(figure(most))));
        }
        if let Some(most) = budget.usd.filter(|most| spent.used.cost_usd >= Some(*most)) {
            return Some(budget_error(BudgetKind::Usd, Some(most)));
        }
        if let Some(most) = budget.turns.filter(|most| spent.turns >= *most) {
            return Some(budget_error(BudgetKind::Turns, Some(most.into())));
        }
        let shared = budget.shared.as_ref().filter(|shared| shared.is_spent());
        shared.map(SharedBudget::error)
    }

    /// Returns what is left in USD for an attempt that begins now.
    pub(super) fn usd_left(&self) -> Option<f64> {
        let spent = self.account.spent().used.cost_usd.unwrap_or_default();
        let own = self.budget.usd.map(|usd| (usd - spent).max(0.0));
        let shared = (self.budget.shared.as_ref()).and_then(SharedBudget::usd_left);
        own.into_iter().chain(shared).reduce(f64::min)
    }

    /// Returns the error of an attempt that a CLI's own limit, of what was left in USD, has ended.
    pub(super) fn usd_is_spent(&self) -> AgentError {
        match (&self.budget.shared, self.budget.usd) {
            (Some(shared), None) => shared.error(),
            (Some(shared), Some(_)) if shared.is_spent() => shared.error(),
            (_, own) => budget_error(BudgetKind::Usd, own),
        }
    }

    /// Returns whether the run was stopped because the time of the budget is over.
    pub(super) fn out_of_time(&self) -> bool {
        self.out_of_time.load(Ordering::SeqCst)
    }

    pub(super) fn time_is_over(&self) -> AgentError {
        budget_error(
            BudgetKind::Time,
            self.budget.time.map(|time| time.as_secs_f64()),
        )
    }

    /// Aborts the run when the time of its budget is over.
    pub(super) fn time_budget(&self) -> Option<TaskHandle> {
        let time = self.budget.time?;
        let (abort, flag) = (self.abort.clone(), self.out_of_time.clone());
        let left = time.saturating_sub(self.accepted.elapsed());
        let task = tokio::spawn(async move {
            sleep(left).await;
            // A run that the caller has stopped counts as aborted, however long it takes to end.
            if !abort.is_aborted() {
                flag.store(true, Ordering::SeqCst);
                abort.abort();
            }
        });
        Some(task.abort_handle())
    }
}

/// Waits until the budget that the run shares is spent, forever without one. Returns the error of the run.
pub(super) async fn shared_spent(share: Option<&Share>) -> AgentError {
    match share {
        Some(share) => {
            share.budget.spent().await;
            share.budget.error()
        }
        None => pending().await,
    }
}

/// Returns an error if more was used than the budget allows.
pub(super) fn over(budget: &Budget, spent: &Spent) -> Option<AgentError> {
    if let (Some(most), Some(used)) = (budget.tokens, spent.tokens())
        && used > most
    {
        return Some(budget_error(BudgetKind::Tokens, Some(figure(most))));
    }
    if let (Some(most), Some(used)) = (budget.usd, spent.used.cost_usd)
        && used > most
    {
        return Some(budget_error(BudgetKind::Usd, Some(most)));
    }
    None
}

/// Creates the error of a run whose token budget cannot be enforced, because its turns report no usage.
pub(super) fn unheld(provider: &str, most: u64) -> AgentError {
    AgentError::new(
        ErrorCode::BudgetExceeded,
        ErrorKind::Budget,
        format!(
            "the limit of {most} tokens cannot be enforced: {provider} reports no usage; its version \
             may be too old, or the model's service does not count"
        ),
    )
    .detail(ErrorDetail::budget(
        BudgetKind::Tokens,
        Some(figure(most)),
    ))
}

/// Creates the error of a run whose budget in USD cannot be enforced, because the price of its tokens is unknown.
pub(super) fn unpriced(provider: &str, model: Option<&str>, most: f64) -> AgentError {
    let model = match model {
        Some(model) => format!("the model {}", teamster_core::text::one_line(model)),
        None => format!("the model of {provider}, which it does not name"),
    };
    AgentError::new(
        ErrorCode::BudgetExceeded,
        ErrorKind::Budget,
        format!(
            "the limit of {most} USD cannot be enforced: there is no price for {model}; add one to a file of prices \
             (`TEAMSTER_PRICES`), choose another model, or limit tokens instead"
        ),
    )
    .detail(ErrorDetail::budget(BudgetKind::Usd, Some(most)))
}

/// Creates the error of a run that has exceeded its budget.
pub(super) fn budget_error(budget: BudgetKind, limit: Option<f64>) -> AgentError {
    // What is left of a session's budget has the digits of a subtraction.
    let most = limit.map(|most| (most * 1e6).round() / 1e6);
    let most = most.map_or_else(String::new, |most| format!("{most} "));
    let unit = match budget {
        BudgetKind::Time => "seconds",
        BudgetKind::Usd => "USD",
        _ => budget.as_str(),
    };
    AgentError::new(
        ErrorCode::BudgetExceeded,
        ErrorKind::Budget,
        format!("the run's budget of {most}{unit} is spent"),
    )
    .detail(ErrorDetail::budget(budget, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_in_an_error_has_no_digits_of_a_subtraction() {
        for (kind, limit, expected) in [
            (BudgetKind::Usd, 0.02 - 0.0144, "0.0056 USD"),
            (BudgetKind::Time, 30.0, "30 seconds"),
            (BudgetKind::Tokens, 123_456_789.0, "123456789 tokens"),
        ] {
            let error = budget_error(kind, Some(limit));
            assert_eq!(
                error.message,
                format!("the run's budget of {expected} is spent")
            );
        }
    }
}
