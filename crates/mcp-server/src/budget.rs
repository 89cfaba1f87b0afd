//! The budget shared by all runs of a server.

use teamster_core::{CostSource, Usage};

/// Cost and tokens of runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) usd: f64,
    /// A part of the cost is an estimate.
    pub(crate) is_estimate: bool,
    pub(crate) tokens: u64,
}

impl Spent {
    pub(crate) fn add(
        &mut self,
        usd: Option<f64>,
        source: Option<CostSource>,
        usage: Option<Usage>,
    ) {
        self.usd += usd.unwrap_or_default();
        self.is_estimate |= source == Some(CostSource::Estimated);
        let tokens = usage.and_then(|usage| usage.total_tokens());
        self.tokens = self.tokens.saturating_add(tokens.unwrap_or_default());
    }
}

/// Returns the budget of a run: the requested one, limited to the rest of the server's. Fails if nothing is left.
pub(crate) fn share(
    spent: Spent,
    (max_usd, max_tokens): (Option<f64>, Option<u64>),
    (requested_usd, requested_tokens): (Option<f64>, Option<u64>),
) -> Result<(Option<f64>, Option<u64>), String> {
    let over = |what: &str| {
        Err(format!(
            "the budget of this server is spent ({what}): no run can be started; ask the user for more"
        ))
    };
    let usd = match max_usd.map(|most| most - spent.usd) {
        Some(left) if left <= 0.0 => return over("USD"),
        Some(left) => Some(requested_usd.map_or(left, |requested| requested.min(left))),
        None => requested_usd,
    };
    let tokens = match max_tokens.map(|most| most.saturating_sub(spent.tokens)) {
        Some(0) => return over("tokens"),
        Some(left) => Some(requested_tokens.map_or(left, |requested| requested.min(left))),
        None => requested_tokens,
    };
    Ok((usd, tokens))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_gets_what_is_left() {
        let mut spent = Spent::default();
        assert_eq!(share(spent, (None, None), (None, None)), Ok((None, None)));
        assert_eq!(
            share(spent, (Some(1.0), Some(100)), (Some(2.0), Some(10))),
            Ok((Some(1.0), Some(10)))
        );
        spent.add(Some(0.75), None, Some(Usage::default().input_tokens(60)));
        spent.add(None, None, None);
        assert_eq!(
            share(spent, (Some(1.0), Some(100)), (None, None)),
            Ok((Some(0.25), Some(40)))
        );
        spent.add(Some(0.25), None, None);
        let error = share(spent, (Some(1.0), None), (None, None)).unwrap_err();
        assert!(error.contains("spent (USD)"), "{error}");
        spent.add(None, None, Some(Usage::default().output_tokens(40)));
        let error = share(spent, (None, Some(100)), (None, None)).unwrap_err();
        assert!(error.contains("spent (tokens)"), "{error}");
    }
}
